// Reward models as actors: where their scores are read, what becomes of them, and which models and
// samples are refused.
#include "actors/roles/reward.h"

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

ProcessReading by_lines() {
  ProcessReading reading;
  reading.encoder = std::make_shared<ByteEncoder>();
  reading.decode = text_of;
  return reading;
}

ProcessReading by_placeholders() {
  ProcessReading reading = by_lines();
  reading.tokens = value_or_throw(engine::data::find_step_tokens("k", {"+", "-"}, ByteEncoder()));
  reading.step_end = " k\n", reading.right = 0;
  return reading;
}

// The judged tokens of the question's sequence n, as text up to each.
std::vector<std::string> judged(const Question& question, std::size_t n) {
  std::vector<std::string> out;
  std::vector<std::int32_t> ids;
  for (auto t = static_cast<std::size_t>(question.batch.offsets[n]);
       t < static_cast<std::size_t>(question.batch.offsets[n + 1]); ++t) {
    ids.push_back(question.batch.tokens[t]);
    if (question.batch.mask[t] != 0) out.push_back(engine::data::text_of_ids(ids));
  }
  return out;
}

TEST(RewardReading, AnOutcomeIsReadAtTheLastToken) {
  const auto question = question_of({sample("q", "yes"), sample("qq", "")}, OutcomeReading{});
  EXPECT_THAT(judged(question, 0), ElementsAre("qyes<eos>"));
  EXPECT_THAT(judged(question, 1), ElementsAre("qq<eos>"));
  const std::vector<float> scores{9, 9, 9, 9, 2, 9, 9, -1};
  const auto results = verdicts_of(
      question, scores, OutcomeReading{{.mean = 1, .deviation = 0.5, .clip = 3}}, "model", 2);
  EXPECT_EQ(results[0].reward, 2 * 2.0);
  EXPECT_EQ(results[1].reward, 2 * -3.0) << "(-1 - 1) / 0.5, clipped";
  EXPECT_THAT(results[1].parts, ElementsAre(std::pair<std::string, double>("model", -3)));
}

TEST(RewardReading, StepsAreJudgedWhereTheModelWasTrainedToJudgeThem) {
  const auto question = question_of({sample("q:", "one\n\ntwo")}, by_lines());
  EXPECT_THAT(judged(question, 0), ElementsAre("q:one\n", "q:one\ntwo\n"));
  EXPECT_THAT(question.ends[0], ElementsAre(3, 7))
      << "the tokens of the completion that end the steps";
  EXPECT_THAT(judged(question_of({sample("q:", "one\ntwo")}, by_placeholders()), 0),
              ElementsAre("q:one k", "q:one k\ntwo k"));
}

TEST(RewardReading, AStepThatEndsInsideATokenEndsWithIt) {
  auto reading = by_lines();
  reading.separator = "a";
  EXPECT_THAT(steps_of(sample("q", "1ab2"), reading).ends, ElementsAre(1, 2))
      << "\"ab\" is one token";
}

TEST(RewardReading, ProbabilitiesOfRightStepsAreTakenTogether) {
  auto reading = by_lines();
  const auto question = question_of({sample("q:", "one\ntwo")}, reading);
  std::vector<float> scores(2 * question.batch.tokens.size(), 0.0f);  // [T, 2]
  scores[2 * 5 + 1] = static_cast<float>(std::log(3.0));              // p = 3/4 behind "one\n"
  scores[2 * 9 + 0] = static_cast<float>(std::log(4.0));              // p = 1/5 behind "two\n"
  const auto with = [&](Aggregation how) {
    reading.aggregation = how;
    return verdicts_of(question, scores, reading, "steps", 10).front();
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

TEST(RewardReading, ACompletionWithoutAStepIsWorthNothing) {
  const auto question = question_of({sample("q", " \n")}, by_lines());
  const auto result =
      verdicts_of(question, std::vector<float>(2, 1.0f), by_lines(), "steps", 1).front();
  EXPECT_EQ(result.reward, 0);
  EXPECT_TRUE(result.steps.empty());
}

TEST(RewardReading, AScoreThatIsNoNumberIsAFailureAndNotAReward) {
  const auto question = question_of({sample("q", "a")}, OutcomeReading{});
  const std::vector<float> scores{0, 0, std::nanf("")};
  const auto result = verdicts_of(question, scores, OutcomeReading{}, "model", 1).front();
  EXPECT_FALSE(result.reward);
  EXPECT_THAT(result.failure, HasSubstr("model: the model's score is not a finite number"));
}

TEST(RewardReading, AStepEndWithoutItsPlaceholderIsRefused) {
  auto reading = by_placeholders();
  EXPECT_TRUE(check_reading(reading));
  reading.step_end = "\n";
  EXPECT_THAT(check_reading(reading).error().what, HasSubstr("expected the placeholder \"k\""));
  auto lines = by_lines();
  lines.separator.clear();
  EXPECT_FALSE(check_reading(lines));
}

TEST(RewardReading, ResultsOfSeveralModelsAddUpAndFailTogether) {
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

std::unique_ptr<engine::models::Decoder> scoring_model(engine::ops::Device& device, int labels) {
  auto spec = test::random_spec(3);
  spec.labels = labels, spec.tied = false, spec.vocabulary = 259;
  auto model = std::make_unique<engine::models::Decoder>(device, spec, false);
  test::randomize(model->parameters(), 9, 0.3);
  return model;
}

std::vector<protocol::RewardResult> rewards_of(engine::ops::Device& device,
                                               std::vector<RewardRequest> samples,
                                               std::int32_t micro_batch_tokens) {
  std::vector<RewardPart> parts;
  parts.push_back({"outcome", 1, scoring_model(device, 1), OutcomeReading{}});
  parts.push_back({"process", 0.5, scoring_model(device, 2), by_lines()});
  parts.push_back({"placeholder", 2, scoring_model(device, 0), by_placeholders()});
  auto models = value_or_throw(
      RewardModels::create(std::move(parts), {.micro_batch_tokens = micro_batch_tokens}));
  return value_or_throw(models.on(protocol::ComputeRewards{std::move(samples)}));
}

TEST(RewardModels, JudgeEachSampleAsIfItWereAlone) {
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
  const auto refused = [&](int labels, Reading reading) {
    std::vector<RewardPart> parts;
    parts.push_back({"judge", 1, scoring_model(*device, labels), std::move(reading)});
    const auto made = RewardModels::create(std::move(parts), {});
    return made ? std::string() : made.error().what;
  };
  EXPECT_THAT(refused(0, OutcomeReading{}),
              testing::AllOf(HasSubstr("judge"), HasSubstr("found a language model")));
  EXPECT_THAT(refused(2, OutcomeReading{}), HasSubstr("score head of 2 labels"));
  EXPECT_THAT(refused(1, by_lines()), HasSubstr("--algorithm prm"));
  EXPECT_THAT(refused(2, by_placeholders()),
              HasSubstr("language model that was trained at placeholders"));
  EXPECT_EQ(refused(1, OutcomeReading{}), "");
}

}  // namespace
}  // namespace troupe::actors::roles
