// Every parameter of SamplingParams::each_field() has the same name and range in the run file, in
// JSON lines, and as an option. Requests of the server: serve_protocol_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/config/schema.h"
#include "launch/recipes/resolve.h"
#include "launch/recipes/sampling.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::generate::SamplingParams;
using testing::HasSubstr;

struct Wrong {
  std::string name, value;
};

/// Numbers beyond both ends of each range, and lists of the wrong kind.
std::vector<Wrong> wrong_values() {
  std::vector<Wrong> all;
  const SamplingParams params;
  SamplingParams::each_field(params, [&](const char* name, const auto& value, const auto&... rest) {
    using Value = std::remove_cvref_t<decltype(value)>;
    const Range range = detail::range_of(rest...);
    if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
      all.push_back({name, to_text(range.low - 1, 0)});
      all.push_back({name, to_text(range.high + 1, 0)});
    } else if constexpr (!std::is_same_v<Value, std::vector<std::string>>) {
      all.push_back({name, std::is_same_v<Value, bool> ? "7" : "[1.5]"});
    }
  });
  return all;
}

TEST(SamplingPlaces, ARunFileRefusesItByItsKey) {
  for (const auto& [name, value] : wrong_values()) {
    const auto got =
        recipes::resolve({.algorithm = "grpo",
                          .file = "",
                          .sets = {"model=m", "data.path=d", "output=o", "reward=exact_match",
                                   cat("rollout.", name, "=", value)},
                          .check_files = false});
    ASSERT_FALSE(got) << name << "=" << value;
    EXPECT_EQ(got.error().code, Errc::usage);
    EXPECT_THAT(got.error().what, HasSubstr(cat("rollout.", name))) << value;
  }
}

TEST(SamplingPlaces, ALineRefusesItByItsName) {
  for (const auto& [name, value] : wrong_values()) {
    SamplingParams params;
    const auto json = parse_json(value, "value");
    ASSERT_TRUE(json) << name << "=" << value;
    const auto read = engine::generate::read_sampling_param(name, *json, params);
    ASSERT_FALSE(read) << name << "=" << value;
    EXPECT_THAT(read.error().what, HasSubstr(name)) << value;
  }
}

TEST(SamplingPlaces, AnOptionRefusesIt) {
  for (const auto& [name, value] : wrong_values()) {
    if (value == "7") continue;  // a flag has no value
    std::string option = cat("--", name);
    std::ranges::replace(option, '_', '-');
    for (const std::string command : {"generate", "chat"}) {
      const auto run = run_program(cat(command, " --model nowhere '", option, "=", value, "'"));
      EXPECT_EQ(run.code, 2) << command << ' ' << option << ' ' << value << run.err;
      EXPECT_THAT(run.err, HasSubstr(option)) << value;
    }
  }
}

/// A configuration of grpo with these settings, or what is wrong with it.
auto resolved(std::vector<std::string> sets) {
  sets.insert(sets.end(), {"data.path=d", "output=o", "reward=exact_match", "train.steps=1",
                           cat("model=", TROUPE_TEST_DATA, "/models/stories260k/hf")});
  return recipes::resolve({.algorithm = "grpo", .file = "", .sets = sets, .check_files = false});
}

TEST(SamplingPlaces, ARunIsWarnedOfWhatItsLossDoesNotKnow) {
  const auto warnings = [](std::vector<std::string> sets) {
    return value_or_throw(resolved(std::move(sets))).warnings;
  };
  const auto other = [](std::string_view key, std::string_view reason) {
    return testing::Contains(testing::AllOf(HasSubstr(std::string(key)),
                                            HasSubstr("another distribution"),
                                            HasSubstr(std::string(reason))));
  };
  const auto none = testing::Not(testing::Contains(HasSubstr("another distribution")));
  EXPECT_THAT(warnings({"rollout.temperature=0.7", "rollout.max_new_tokens=9", "rollout.stop=x"}),
              none);
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "rollout.no_repeat_ngram_size=3"}), none);
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "rollout.no_repeat_ngram_size=3",
                        "rollout.replay_sampling_mask=off"}),
              testing::AllOf(other("rollout.top_p", "replay_sampling_mask is off"),
                             other("rollout.no_repeat_ngram_size", "")));
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "compat=trl"}),
              other("rollout.top_p", "rollout.replay_sampling_mask = on"));
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "compat=trl", "rollout.replay_sampling_mask=on"}),
              none);
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "rollout.presence_penalty=1"}),
              testing::AllOf(other("rollout.top_p", "penalties"),
                             other("rollout.presence_penalty", "penalties")));
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "rollout.mask_bytes=1000"}),
              other("rollout.top_p", "rollout.mask_bytes is 1000"));
}

TEST(SamplingPlaces, MasksThatCannotBeReplayedAreRefusedWhereTheyAreOn) {
  for (const auto& [setting, reason] :
       {std::pair{"rollout.repetition_penalty=1.1", "penalties"},
        {"rollout.sequence_bias=[[[3, 4], -1.5]]", "biases"},
        {"rollout.mask_bytes=1000", "rollout.mask_bytes is 1000"}}) {
    const auto got = resolved({"rollout.top_k=5", "rollout.replay_sampling_mask=on", setting});
    ASSERT_FALSE(got) << setting;
    EXPECT_THAT(got.error().what,
                testing::AllOf(HasSubstr("rollout.replay_sampling_mask"), HasSubstr(reason)));
  }
}

TEST(SamplingPlaces, ComparisonsOverTheVocabularyNeedEqualWeights) {
  EXPECT_TRUE(resolved({"rollout.parity_sample=0.1"}));
  EXPECT_TRUE(resolved({"rollout.parity_sample=0.1", "async.mode=pinned", "async.eta=0"}));
  const auto stale = resolved({"rollout.parity_sample=0.1", "async.mode=pinned", "async.eta=1"});
  ASSERT_FALSE(stale);
  EXPECT_THAT(stale.error().what,
              testing::AllOf(HasSubstr("rollout.parity_sample"), HasSubstr("async.mode = off")));
}

TEST(SamplingPlaces, MasksOfOtherProgramsAreTakenUnlessTheyAreOff) {
  const auto with = [](std::vector<std::string> sets) {
    sets.insert(sets.end(),
                {"rollout.source=service", "serve.listen=unix:/tmp/none", "data.path=d", "output=o",
                 "train.steps=1", cat("model=", TROUPE_TEST_DATA, "/models/stories260k/hf")});
    return recipes::resolve({.algorithm = "grpo", .file = "", .sets = sets, .check_files = false});
  };
  const auto bytes = [&](std::vector<std::string> sets) {
    return recipes::max_sent_mask_bytes(value_or_throw(with(std::move(sets))).config);
  };
  EXPECT_GT(bytes({}), 0);
  EXPECT_GT(bytes({"rollout.replay_sampling_mask=on"}), 0);
  EXPECT_EQ(bytes({"rollout.mask_bytes=1"}), 1);
  EXPECT_EQ(bytes({"rollout.replay_sampling_mask=off"}), 0);
  EXPECT_EQ(bytes({"rollout.presence_penalty=1"}), 0);
  const auto warned = [&](std::vector<std::string> sets) {
    return value_or_throw(with(std::move(sets))).warnings;
  };
  const auto unless = testing::Contains(
      testing::AllOf(HasSubstr("rollout.top_p"), HasSubstr("send no sampling_masks")));
  EXPECT_THAT(warned({"rollout.top_p=0.9"}), unless);
  EXPECT_THAT(warned({"rollout.top_p=0.9", "rollout.replay_sampling_mask=on"}),
              testing::Not(unless));
}

TEST(SamplingPlaces, MasksAreReplayedWhereTokensAreRemoved) {
  const auto replays = [](std::vector<std::string> sets) {
    return recipes::replays_sampling_mask(value_or_throw(resolved(std::move(sets))).config);
  };
  EXPECT_FALSE(replays({}));
  EXPECT_FALSE(replays({"rollout.replay_sampling_mask=on", "rollout.temperature=0.5"}));
  for (const char* setting :
       {"rollout.top_p=0.9", "rollout.top_k=5", "rollout.min_p=0.1", "rollout.typical_p=0.9",
        "rollout.epsilon_cutoff=0.01", "rollout.eta_cutoff=0.01", "rollout.top_h=0.4",
        "rollout.min_new_tokens=2", "rollout.suppress_tokens=5", "rollout.bad_words=[cat]",
        "rollout.no_repeat_ngram_size=2"})
    EXPECT_TRUE(replays({setting})) << setting;
}

TEST(SamplingPlaces, ListsAreReadAndWritten) {
  const auto got = recipes::resolve(
      {.algorithm = "grpo",
       .file = "",
       .sets = {"model=m", "data.path=d", "output=o", "reward=exact_match", "train.steps=1",
                "rollout.bad_words=[cat, [1, 2]]", "rollout.suppress_tokens=5,6",
                "rollout.sequence_bias=[[[3, 4], -1.5]]"},
       .check_files = false});
  ASSERT_TRUE(got) << got.error().what;
  const auto& rules = got->config.rollout.sampling.token_rules;
  EXPECT_EQ(rules.bad_words.at(0).text, "cat");
  EXPECT_THAT(rules.bad_words.at(1).ids, testing::ElementsAre(1, 2));
  EXPECT_THAT(rules.suppress_tokens, testing::ElementsAre(5, 6));
  EXPECT_EQ(rules.sequence_bias.at(0).bias, -1.5);
  const auto again = recipes::config_of(recipes::to_yaml(got->config), "written");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->rollout.sampling, got->config.rollout.sampling);
}

}  // namespace
}  // namespace troupe::launch
