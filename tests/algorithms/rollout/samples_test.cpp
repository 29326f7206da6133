// Completions on their way to a batch: what a rollout returns is checked, and every token keeps the
// version of the weights that sampled it.
#include "algorithms/rollout/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/algorithms/stage.h"

namespace troupe::algorithms {
namespace {

protocol::Completion completion(std::uint64_t sample_id, std::vector<protocol::VersionRun> runs) {
  return {sample_id, {7, 8, 3}, {-1, -2, -3}, {}, "78", protocol::FinishReason::stop, runs, 5};
}

std::string refusal(const std::vector<protocol::Completion>& completions) {
  const auto checked = check_answers({4, 9}, completions);
  return checked ? "accepted" : checked.error().what;
}

TEST(Completions, AreAcceptedWithAVersionForEachToken) {
  EXPECT_EQ(refusal({completion(4, {{2, 3}}), completion(9, {{2, 1}, {3, 2}})}), "accepted");
}

TEST(Completions, OfOtherSamplesAreRejected) {
  EXPECT_THAT(refusal({completion(4, {{2, 3}})}), HasSubstr("expected 2 completions, found 1"));
  EXPECT_THAT(refusal({completion(9, {{2, 3}}), completion(4, {{2, 3}})}),
              HasSubstr("completion 0 (sample 4): found sample 9"));
}

TEST(Completions, WithOtherVersionsThanTokensAreRejected) {
  EXPECT_THAT(refusal({completion(4, {{2, 3}}), completion(9, {{2, 2}})}),
              HasSubstr("expected the versions of 3 tokens, found 2"));
  EXPECT_THAT(refusal({completion(4, {{2, 4294967295u}, {2, 4}}), completion(9, {{2, 3}})}),
              HasSubstr("found 4294967299"));
  EXPECT_THAT(refusal({completion(4, {{2, 3}, {3, 0}}), completion(9, {{2, 3}})}),
              HasSubstr("found 0 tokens of version 3"));
  EXPECT_THAT(refusal({completion(4, {{std::uint64_t{1} << 40, 3}}), completion(9, {{2, 3}})}),
              HasSubstr("expected runs of versions up to 2147483647"));
  auto shorter = completion(4, {{2, 3}});
  shorter.logp.pop_back();
  EXPECT_THAT(refusal({shorter, completion(9, {{2, 3}})}),
              HasSubstr("expected 3 log-probabilities, found 2"));
  auto marked = completion(4, {{2, 3}});
  marked.sampled = {1, 0};
  EXPECT_THAT(refusal({marked, completion(9, {{2, 3}})}), HasSubstr("expected 3 marks, found 2"));
}

std::vector<std::size_t> sizes_of_parts(std::size_t parts, std::size_t unit) {
  std::vector<std::size_t> out;
  for (const auto& part : split_requests(std::vector<protocol::SampleRequest>(12), parts, unit))
    out.push_back(part.size());
  return out;
}

TEST(SampleRequests, OfAPromptStayTogetherWhereARuleNeedsIt) {
  EXPECT_THAT(sizes_of_parts(5, 1), ElementsAre(2, 2, 3, 2, 3));
  EXPECT_THAT(sizes_of_parts(5, 4), ElementsAre(4, 4, 4));
  EXPECT_THAT(sizes_of_parts(2, 4), ElementsAre(4, 8));
  EXPECT_THAT(sizes_of_parts(1, 4), ElementsAre(12));
}

TEST(RewardRequests, HaveTheRowWhereARuleReadsIt) {
  PromptRow row{{1, 2}, "12", Json("3"), Json(Json::Object{{"level", 2}}), Json("messages")};
  const PromptBatch prompts{.examples = {&row, &row}, .ids = {5, 6}};
  RolloutOptions options;
  options.group = 2;
  const std::vector<protocol::Completion> completions{completion(11, {{2, 3}}),
                                                      completion(12, {{2, 3}})};
  EXPECT_TRUE(reward_requests(prompts, completions, 1, options)[0].row.is_null());
  options.send_rows = true;
  const auto requests = reward_requests(prompts, completions, 1, options);
  EXPECT_EQ(requests[0].row.dump(), R"({"level":2})");
  EXPECT_EQ(requests[0].messages, Json("messages"));
  EXPECT_EQ(requests[0].prompt_id, 5u);
  EXPECT_EQ(requests[1].prompt_id, 6u);
}

TEST(PackedSamples, KeepTheVersionOfEachToken) {
  PromptRow row{{1, 2}, "12", Json(), Json()};
  const PromptBatch prompts{.examples = {&row}, .ids = {0}};
  RolloutOptions options;
  options.group = 2;
  const auto batch =
      pack_samples(prompts, {completion(0, {{2, 3}}), completion(1, {{2, 1}, {3, 2}})}, 0, options);
  EXPECT_THAT(batch.token_version, ElementsAre(-1, -1, 2, 2, 2, -1, -1, 2, 3, 3));
  EXPECT_THAT(batch.version, ElementsAre(5u, 5u)) << "losses count updates";
  EXPECT_THAT(batch.slice(1, 2).token_version, ElementsAre(-1, -1, 2, 3, 3));
}

TEST(PackedSamples, HaveNoTokensOfToolsInTheirMask) {
  PromptRow row{{1, 2}, "12", Json(), Json()};
  const PromptBatch prompts{.examples = {&row}, .ids = {0}};
  RolloutOptions options;
  options.group = 2;
  auto sample = completion(0, {{2, 3}});
  sample.sampled = {1, 0, 1};
  sample.reward = 0.5;
  const auto batch = pack_samples(prompts, {sample, completion(1, {{2, 3}})}, 0, options);
  EXPECT_THAT(batch.tokens, ElementsAre(1, 2, 7, 8, 3, 1, 2, 7, 8, 3));
  EXPECT_THAT(batch.mask, ElementsAre(0, 0, 1, 0, 1, 0, 0, 1, 1, 1));
  EXPECT_THAT(batch.token_version, ElementsAre(-1, -1, 2, -1, 2, -1, -1, 2, 2, 2));
  EXPECT_EQ(sent_rewards({sample}).at(0).reward, 0.5);
}

}  // namespace
}  // namespace troupe::algorithms
