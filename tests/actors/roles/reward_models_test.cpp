// Reward models as actors: the tokens at which scores are read, the rewards, and the rejected
// models and samples.
#include "actors/roles/reward_models.h"

#include <gmock/gmock.h>

#include <cmath>

#include "engine/data/layouts/steps.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/data/byte_encoder.h"
#include "tests/support/random_decoder.h"

namespace troupe::actors::roles {
namespace {

using engine::data::ByteEncoder;
using protocol::RewardRequest;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> bytes(std::string_view text) {
  return value_or_throw(ByteEncoder().encode(text, false));
}

RewardRequest sample(std::string_view prompt, const std::string& completion) {
  auto ids = bytes(completion);
  ids.push_back(ByteEncoder::end);
  return {.completion = completion, .prompt_ids = bytes(prompt), .completion_ids = std::move(ids)};
}

std::string text_of(std::span<const std::int32_t> ids) {
  std::string out;
  for (const auto id : ids)
    if (id != ByteEncoder::end) out += engine::data::text_of_ids({id});
  return out;
}

ProcessScoring by_lines() {
  ProcessScoring scoring;
  scoring.encoder = std::make_shared<ByteEncoder>();
  scoring.decode = text_of;
  return scoring;
}

ProcessScoring by_placeholders() {
  ProcessScoring scoring = by_lines();
  scoring.tokens = value_or_throw(engine::data::find_step_tokens("k", {"+", "-"}, ByteEncoder()));
  scoring.step_end = " k\n";
  scoring.right = 0;
  return scoring;
}

// The text up to each scored token of the query's sequence n.
std::vector<std::string> scored_texts(const ScoringBatch& query, std::size_t n) {
  std::vector<std::string> out;
  std::vector<std::int32_t> ids;
  for (auto t = static_cast<std::size_t>(query.batch.offsets[n]);
       t < static_cast<std::size_t>(query.batch.offsets[n + 1]); ++t) {
    ids.push_back(query.batch.tokens[t]);
    if (query.batch.mask[t] != 0) out.push_back(engine::data::text_of_ids(ids));
  }
  return out;
}

TEST(RewardScoring, AnOutcomeIsReadAtTheLastToken) {
  const auto query = scoring_batch({sample("q", "yes"), sample("qq", "")}, OutcomeScoring{});
  EXPECT_THAT(scored_texts(query, 0), ElementsAre("qyes<eos>"));
  EXPECT_THAT(scored_texts(query, 1), ElementsAre("qq<eos>"));
  const std::vector<float> scores{9, 9, 9, 9, 2, 9, 9, -1};
  const auto results = reward_results(
      query, scores, OutcomeScoring{{.mean = 1, .std_dev = 0.5, .clip = 3}}, "model", 2);
  EXPECT_EQ(results[0].reward, 2 * 2.0);
  EXPECT_EQ(results[1].reward, 2 * -3.0) << "(-1 - 1) / 0.5, clipped";
  EXPECT_THAT(results[1].parts, ElementsAre(std::pair<std::string, double>("model", -3)));
}

TEST(RewardScoring, StepsAreScoredWhereTheModelWasTrainedToScoreThem) {
  const auto query = scoring_batch({sample("q:", "one\n\ntwo")}, by_lines());
  EXPECT_THAT(scored_texts(query, 0), ElementsAre("q:one\n", "q:one\ntwo\n"));
  EXPECT_THAT(query.ends[0], ElementsAre(3, 7))
      << "the tokens of the completion that end the steps";
  EXPECT_THAT(scored_texts(scoring_batch({sample("q:", "one\ntwo")}, by_placeholders()), 0),
              ElementsAre("q:one k", "q:one k\ntwo k"));
}

TEST(RewardScoring, AStepThatEndsInsideATokenEndsWithIt) {
  auto scoring = by_lines();
  scoring.separator = "a";
  EXPECT_THAT(split_steps(sample("q", "1ab2"), scoring).ends, ElementsAre(1, 2))
      << "\"ab\" is one token";
}

TEST(RewardScoring, ProbabilitiesOfRightStepsAreTakenTogether) {
  auto scoring = by_lines();
  const auto query = scoring_batch({sample("q:", "one\ntwo")}, scoring);
  std::vector<float> scores(2 * query.batch.tokens.size(), 0.0f);  // [T, 2]
  scores[2 * 5 + 1] = static_cast<float>(std::log(3.0));           // p = 3/4 behind "one\n"
  scores[2 * 9 + 0] = static_cast<float>(std::log(4.0));           // p = 1/5 behind "two\n"
  const auto with = [&](Aggregation how) {
    scoring.aggregation = how;
    return reward_results(query, scores, scoring, "steps", 10).front();
  };
  EXPECT_NEAR(*with(Aggregation::min).reward, 2, 1e-5);
  EXPECT_NEAR(*with(Aggregation::last).reward, 2, 1e-5);
  EXPECT_NEAR(*with(Aggregation::mean).reward, 4.75, 1e-5);
  const auto product = with(Aggregation::product);
  EXPECT_NEAR(*product.reward, 1.5, 1e-5);
  EXPECT_EQ(product.from_steps, *product.reward);
  ASSERT_EQ(product.steps.size(), 2u);
  EXPECT_EQ(product.steps[0].end, 3);
  EXPECT_NEAR(product.steps[0].reward, 7.5, 1e-5);
  EXPECT_EQ(product.steps[1].end, 6);
}

TEST(RewardScoring, ACompletionWithoutAStepIsWorthNothing) {
  const auto query = scoring_batch({sample("q", " \n")}, by_lines());
  const auto result =
      reward_results(query, std::vector<float>(2, 1.0f), by_lines(), "steps", 1).front();
  EXPECT_EQ(result.reward, 0);
  EXPECT_TRUE(result.steps.empty());
}

TEST(RewardScoring, AScoreThatIsNoNumberIsAFailureAndNotAReward) {
  const auto query = scoring_batch({sample("q", "a")}, OutcomeScoring{});
  const std::vector<float> scores{0, 0, std::nanf("")};
  const auto result = reward_results(query, scores, OutcomeScoring{}, "model", 1).front();
  EXPECT_FALSE(result.reward);
  EXPECT_THAT(result.failure, HasSubstr("model: the model's score is not a finite number"));
}

TEST(RewardScoring, AStepEndWithoutItsPlaceholderIsRefused) {
  auto scoring = by_placeholders();
  EXPECT_TRUE(validate_scoring(scoring));
  scoring.step_end = "\n";
  EXPECT_THAT(validate_scoring(scoring).error().what, HasSubstr("expected the placeholder \"k\""));
  auto lines = by_lines();
  lines.separator.clear();
  EXPECT_FALSE(validate_scoring(lines));
}

TEST(RewardScoring, ResultsOfSeveralModelsAddUpAndFailTogether) {
  protocol::RewardResult one{
      .reward = 1, .parts = {{"a", 1}}, .failure = "", .steps = {{4, 1}}, .from_steps = 0.5};
  const protocol::RewardResult two{
      .reward = 2, .parts = {{"b", 4}}, .failure = "", .steps = {{2, 7}}, .from_steps = 0.25};
  add(two, one);
  EXPECT_EQ(one.reward, 3);
  EXPECT_EQ(one.parts.size(), 2u);
  EXPECT_EQ(one.steps.front().end, 2);
  EXPECT_EQ(one.from_steps, 0.75);
  add({.reward = {}, .parts = {}, .failure = "broken"}, one);
  EXPECT_FALSE(one.reward);
  EXPECT_EQ(one.failure, "broken");
}

TEST(RewardScoring, AResultThatDoesNotApplyAddsItsPartsOnly) {
  const protocol::RewardResult model{
      .reward = 2, .parts = {{"m", 4}}, .failure = "", .steps = {{2, 7}}, .from_steps = 2};
  protocol::RewardResult rules{.reward = {},
                               .parts = {{"r/style", 1}},
                               .failure = "no rule applies",
                               .steps = {},
                               .failure_kinds = {},
                               .not_applicable = true};
  const protocol::RewardResult none = rules;
  auto other_way = model;
  add(none, other_way);
  add(model, rules);
  for (const auto& sum : {rules, other_way}) {
    EXPECT_EQ(sum.reward, 2);
    EXPECT_EQ(sum.failure, "");
    EXPECT_FALSE(sum.not_applicable);
    EXPECT_EQ(sum.parts.size(), 2u);
    EXPECT_EQ(sum.from_steps, 2);
  }
  auto all_none = none;
  add(none, all_none);
  EXPECT_FALSE(all_none.reward);
  EXPECT_TRUE(all_none.not_applicable);
  EXPECT_EQ(all_none.failure, "no rule applies");
  auto failed = none;
  add({.reward = {}, .parts = {}, .failure = "broken"}, failed);
  EXPECT_FALSE(failed.reward);
  EXPECT_EQ(failed.failure, "broken");
  EXPECT_FALSE(failed.not_applicable);
}

std::unique_ptr<engine::models::Decoder> scoring_model(engine::ops::Device& device, int labels) {
  auto spec = test::random_spec(3);
  spec.labels = labels;
  spec.tied = false;
  spec.vocabulary = 259;
  auto model = std::make_unique<engine::models::Decoder>(device, spec, false);
  test::randomize(model->parameters(), 9, 0.3);
  return model;
}

std::vector<protocol::RewardResult> rewards_of(engine::ops::Device& device,
                                               std::vector<RewardRequest> samples,
                                               std::int32_t micro_batch_tokens) {
  std::vector<RewardPart> parts;
  parts.push_back({"outcome", 1, scoring_model(device, 1), OutcomeScoring{}});
  parts.push_back({"process", 0.5, scoring_model(device, 2), by_lines()});
  parts.push_back({"placeholder", 2, scoring_model(device, 0), by_placeholders()});
  auto models = value_or_throw(
      RewardModels::create(std::move(parts), {.micro_batch_tokens = micro_batch_tokens}));
  return value_or_throw(models.on(protocol::ComputeRewards{std::move(samples)}));
}

TEST(RewardModels, RewardEachSampleAsIfItWereAlone) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const std::vector<RewardRequest> samples{sample("q:", "one\ntwo"), sample("why?", "because"),
                                           sample("q:", "three\n")};
  const auto together = rewards_of(*device, samples, 1000);
  ASSERT_EQ(together.size(), 3u);
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const auto alone = rewards_of(*device, {samples[n]}, 1).front();
    EXPECT_EQ(together[n].reward, alone.reward);
    EXPECT_EQ(together[n].parts, alone.parts);
    EXPECT_EQ(together[n].parts.size(), 3u);
    EXPECT_EQ(together[n].steps.size(), alone.steps.size());
    const double sum = together[n].parts[0].second + 0.5 * together[n].parts[1].second +
                       2 * together[n].parts[2].second;
    EXPECT_NEAR(*together[n].reward, sum, 1e-12);
  }
  EXPECT_EQ(together[0].steps.size(), 4u) << "two steps, by two process models";
  EXPECT_NE(together[0].reward, together[2].reward);
}

TEST(RewardModels, AModelWithTheWrongHeadIsRefusedByName) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const auto refused = [&](int labels, RewardScoring scoring) {
    std::vector<RewardPart> parts;
    parts.push_back({"scorer", 1, scoring_model(*device, labels), std::move(scoring)});
    const auto made = RewardModels::create(std::move(parts), {});
    return made ? std::string() : made.error().what;
  };
  EXPECT_THAT(refused(0, OutcomeScoring{}),
              testing::AllOf(HasSubstr("scorer"), HasSubstr("found a language model")));
  EXPECT_THAT(refused(2, OutcomeScoring{}), HasSubstr("score head of 2 labels"));
  EXPECT_THAT(refused(1, by_lines()), HasSubstr("--algorithm prm"));
  EXPECT_THAT(refused(2, by_placeholders()),
              HasSubstr("language model that was trained at placeholders"));
  EXPECT_EQ(refused(1, OutcomeScoring{}), "");
}

}  // namespace
}  // namespace troupe::actors::roles
