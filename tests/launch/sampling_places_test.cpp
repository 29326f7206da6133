// Every parameter of SamplingParams::each_field() has the same name and range in the run file, in
// JSON lines, and as an option. Requests of the server: serve_protocol_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/config/schema.h"
#include "launch/recipes/resolve.h"
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

TEST(SamplingPlaces, ARunIsWarnedOfWhatItsLossDoesNotKnow) {
  const auto warnings = [](std::vector<std::string> sets) {
    sets.insert(sets.end(),
                {"model=m", "data.path=d", "output=o", "reward=exact_match", "train.steps=1"});
    return value_or_throw(
               recipes::resolve(
                   {.algorithm = "grpo", .file = "", .sets = sets, .check_files = false}))
        .warnings;
  };
  EXPECT_THAT(warnings({"rollout.top_p=0.9", "rollout.no_repeat_ngram_size=3"}),
              testing::AllOf(testing::Contains(HasSubstr("rollout.top_p")),
                             testing::Contains(HasSubstr("rollout.no_repeat_ngram_size"))));
  EXPECT_THAT(warnings({"rollout.temperature=0.7", "rollout.max_new_tokens=9", "rollout.stop=x"}),
              testing::Not(testing::Contains(HasSubstr("another distribution"))));
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
