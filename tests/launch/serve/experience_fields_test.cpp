// The body of /v1/experience: which tokens are trained on, and what is refused.
#include "launch/serve/live/experience_fields.h"

#include <gtest/gtest.h>

#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::live {
namespace {

constexpr const char* two_turns = R"({
  "sample_id": 7,
  "lease": "0123",
  "token_ids":       [3, 4, 5, 6, 8, 8, 7, 1],
  "loss_mask":       [0, 0, 1, 1, 0, 0, 1, 1],
  "logprobs":        [null, null, -0.5, -0.25, null, 9, -1, 0],
  "weight_versions": [null, null, 2, 2, null, null, 3, 3],
  "reward": 0.75
})";

Json body(const std::string& from = "", const std::string& to = "") {
  std::string text = two_turns;
  if (!from.empty()) {
    const auto at = text.find(from);
    if (at == std::string::npos) throw std::logic_error(from);
    text.replace(at, from.size(), to);
  }
  return value_or_throw(parse_json(text, "test"));
}

serve::live::SentSample read(const Json& json,
                             const serve::live::SampleLimits& limits = {10, 8, 3}) {
  return serve::live::read_sent_sample(json, limits);
}

/// The error, as its client receives it; "" where there is none.
std::string refusal(const std::string& from, const std::string& to,
                    const std::vector<std::int32_t>& prompt = {3, 4}) {
  try {
    serve::live::completion_of(read(body(from, to)), prompt);
    return "";
  } catch (const serve::api::ApiFailure& failure) {
    return failure.response().body;
  }
}

TEST(Experience, MarksTheTokensThatThePolicySampled) {
  const auto sample = serve::live::completion_of(read(body()), {3, 4});
  EXPECT_EQ(sample.sample_id, 7u);
  EXPECT_EQ(sample.ids, (std::vector<std::int32_t>{5, 6, 8, 8, 7, 1}));
  EXPECT_EQ(sample.sampled, (std::vector<std::uint8_t>{1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(sample.logp, (std::vector<float>{-0.5f, -0.25f, 0, 0, -1, 0}));
  EXPECT_EQ(sample.versions, (std::vector<actors::protocol::VersionRun>{{2, 4}, {3, 2}}));
  EXPECT_EQ(sample.reward, 0.75);
  EXPECT_EQ(sample.finish_reason, actors::protocol::FinishReason::stop);
}

TEST(Experience, TokensBeforeTheFirstSampledOneHaveItsVersion) {
  const auto sample = serve::live::completion_of(read(body()), {3});
  EXPECT_EQ(sample.ids.size(), 7u);
  EXPECT_EQ(sample.sampled.front(), 0);
  EXPECT_EQ(sample.versions, (std::vector<actors::protocol::VersionRun>{{2, 5}, {3, 2}}));
}

TEST(Experience, RefusalsNameTheField) {
  const auto names = [](const std::string& answer, const std::string& field) {
    return answer.find("\"param\":\"" + field + "\"") != std::string::npos;
  };
  EXPECT_TRUE(names(refusal("\"sample_id\": 7", "\"sample_id\": -1"), "sample_id"));
  EXPECT_TRUE(names(refusal("\"sample_id\": 7,", ""), "sample_id"));
  EXPECT_TRUE(names(refusal("\"lease\": \"0123\",", ""), "lease"));
  EXPECT_TRUE(names(refusal("\"lease\": \"0123\"", "\"lease\": 123"), "lease"));
  EXPECT_TRUE(names(refusal("7, 1]", "7, 10]"), "token_ids[7]"));
  EXPECT_TRUE(names(refusal("7, 1]", "7, 1, 1]"), "token_ids"));  // longer than 8
  EXPECT_TRUE(names(refusal("0, 0, 1, 1, 0, 0, 1, 1", "0, 0, 1, 1, 0, 0, 1"), "loss_mask"));
  EXPECT_TRUE(names(refusal("0, 0, 1, 1, 0, 0, 1, 1", "0, 0, 1, 1, 0, 0, 1, 0.5"), "loss_mask[7]"));
  EXPECT_TRUE(names(refusal("0, 0, 1, 1, 0, 0, 1, 1", "0, 0, 0, 0, 0, 0, 0, 0"), "loss_mask"));
  EXPECT_TRUE(names(refusal("0, 0, 1, 1, 0, 0, 1, 1", "0, 1, 1, 1, 0, 0, 1, 1"), "logprobs[1]"));
  EXPECT_TRUE(names(refusal("-0.25", "0.25"), "logprobs[3]"));
  EXPECT_TRUE(names(refusal("-0.25", "null"), "logprobs[3]"));
  EXPECT_TRUE(names(refusal("-0.25", "-1e300"), "logprobs[3]"));
  EXPECT_TRUE(names(refusal("null, null, 3, 3", "null, null, 3, 4"), "weight_versions[7]"));
  EXPECT_TRUE(names(refusal("\"reward\": 0.75", "\"reward\": null"), "reward"));
  EXPECT_TRUE(names(refusal("\"reward\": 0.75", "\"reward\": 1000001"), "reward"));
  EXPECT_TRUE(names(refusal("\"reward\": 0.75", "\"reward\": 1, \"rewards\": 2"), "rewards"));
  EXPECT_TRUE(names(refusal("\"reward\": 0.75", "\"reward\": 1, \"finish_reason\": \"end\""),
                    "finish_reason"));
  EXPECT_TRUE(names(refusal("", "", {3, 5}), "token_ids"));
  EXPECT_TRUE(names(refusal("", "", {3, 4, 5}), "loss_mask"));
  EXPECT_EQ(refusal("", ""), "");
}

constexpr serve::live::SampleLimits with_masks{
    .vocabulary = 10, .longest = 8, .newest = 3, .mask_bytes = 64, .masks_required = true};

std::string quoted(const std::vector<std::int32_t>& ids, std::int64_t vocabulary = 10) {
  return cat('"', encode_base64(encode_id_set(ids, vocabulary)), '"');
}

/// The sample with sampling masks: `third` for token 5, {0, 7} for token 7.
Json masked(const std::string& third, const std::string& more = "") {
  return body("\"reward\"", cat("\"sampling_masks\": [null, null, ", third, ", \"\", null, 1, ",
                                quoted({0, 7}), ", \"\"", more, "], \"reward\""));
}

TEST(Experience, SamplingMasksAreThoseOfTheSampledTokens) {
  const auto sample = serve::live::completion_of(read(masked(quoted({5, 8})), with_masks), {3, 4});
  ASSERT_EQ(sample.masks.size(), 6u);
  EXPECT_EQ(sample.masks[0], encode_id_set(std::vector<std::int32_t>{5, 8}, 10));
  EXPECT_EQ(sample.masks[4], encode_id_set(std::vector<std::int32_t>{0, 7}, 10));
  for (const std::size_t whole : {1, 2, 3, 5}) EXPECT_EQ(sample.masks[whole], "") << whole;
  EXPECT_TRUE(serve::live::completion_of(read(body()), {3, 4}).masks.empty());
}

TEST(Experience, SamplingMasksThatCannotBeAreRefused) {
  const auto refused = [](const Json& sent, const serve::live::SampleLimits& limits) {
    try {
      read(sent, limits);
      return std::string();
    } catch (const serve::api::ApiFailure& failure) {
      const std::string answer = failure.response().body, name = "\"param\":\"";
      const auto at = answer.find(name) + name.size();
      return answer.substr(at, answer.find('"', at) - at);
    }
  };
  const std::string good = quoted({5, 8}), place = "sampling_masks[2]";
  EXPECT_EQ(refused(masked(good), with_masks), "");
  EXPECT_EQ(refused(masked("null"), with_masks), place);
  EXPECT_EQ(refused(masked("[5, 8]"), with_masks), place);
  EXPECT_EQ(refused(masked("\"*\""), with_masks), place) << "no base64";
  EXPECT_EQ(refused(masked("\"AAAA\""), with_masks), place) << "no set";
  EXPECT_EQ(refused(masked(quoted({6, 8})), with_masks), place) << "without the sampled token";
  EXPECT_EQ(refused(masked(quoted({5, 10}, 11)), with_masks), place) << "beyond the vocabulary";
  EXPECT_EQ(refused(masked("\"" + std::string(400, 'A') + "\""), with_masks), place);
  EXPECT_EQ(refused(masked(good, ", null"), with_masks), "sampling_masks") << "of nine tokens";
  EXPECT_EQ(refused(body(), with_masks), "sampling_masks") << "they are required";
  auto limits = with_masks;
  limits.mask_bytes = 5;  // two sets of three
  EXPECT_EQ(refused(masked(good), limits), "sampling_masks");
  limits.mask_bytes = 0;
  limits.masks_required = false;
  EXPECT_EQ(refused(masked(good), limits), "sampling_masks") << "the run takes none";
}

TEST(Experience, ATruncatedSampleIsMarked) {
  const auto sample = serve::live::completion_of(
      read(body("\"reward\"", "\"finish_reason\": \"length\", \"reward\"")), {3, 4});
  EXPECT_EQ(sample.finish_reason, actors::protocol::FinishReason::length);
}

}  // namespace
}  // namespace troupe::launch::serve::live
