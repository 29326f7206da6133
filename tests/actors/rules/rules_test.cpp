#include "actors/roles/rules/rules.h"

#include <gtest/gtest.h>

#include "engine/base/text/text.h"

namespace troupe::actors::rules {
namespace {

Json json(std::string_view text) {
  return value_or_throw(parse_json(text, "test"));
}

protocol::RewardResult score(std::string_view config, std::string completion, Json answer) {
  const auto rules = value_or_throw(Rules::from_json(json(config), "rewards"));
  const protocol::RewardRequest request{"", std::move(completion), std::move(answer)};
  return rules.score({&request, 1})[0];
}

double reward(std::string_view config, std::string completion, Json answer) {
  const auto result = score(config, std::move(completion), std::move(answer));
  EXPECT_TRUE(result.reward) << result.failure;
  return result.reward.value_or(-99);
}

TEST(Rules, ExactComparesWithTheAnswerAsText) {
  EXPECT_EQ(reward(R"([{"name": "exact_match"}])", " 4,5,6 ", "4,5,6"), 1);
  EXPECT_EQ(reward(R"([{"name": "exact_match"}])", "7", 7), 1);
  EXPECT_EQ(reward(R"([{"name": "exact_match", "options": {"strip": false}}])", "7 ", 7), 0);
  EXPECT_EQ(reward(R"([{"name": "exact_match", "options": {"tag": "answer"}}])",
                   "<think>8</think><answer> 7 </answer>", 7),
            1);
}

TEST(Rules, Gsm8kReadsTheAnswerBehindTheMark) {
  const char* strict = R"([{"name": "gsm8k"}])";
  EXPECT_EQ(reward(strict, "so she sold 72.\n#### 72", "48/2 = 24\n#### 72"), 1);
  EXPECT_EQ(reward(strict, "#### $1,072.00", "1072"), 1);
  EXPECT_EQ(reward(strict, "the answer is 72", "#### 72"), 0);
  EXPECT_EQ(reward(strict, "#### 73", 72), 0);
  EXPECT_EQ(reward(R"([{"name": "gsm8k", "options": {"flexible": true}}])", "the answer is 72.",
                   "#### 72"),
            1);
  EXPECT_EQ(
      reward(R"([{"name": "gsm8k", "options": {"format_score": 0.1}}])", "#### 73", "#### 72"),
      0.1);
}

TEST(Rules, BoxedComparesNumbersAndFractions) {
  const char* boxed = R"([{"name": "boxed"}])";
  EXPECT_EQ(reward(boxed, "thus $\\boxed{\\dfrac{1}{2}}$.", "0.5"), 1);
  EXPECT_EQ(reward(boxed, "\\boxed{2}", "We find \\boxed{2}."), 1);
  EXPECT_EQ(reward(boxed, "\\boxed{3}", "2"), 0);
  EXPECT_EQ(reward(boxed, "it is 2", "2"), 0);
}

TEST(Rules, RegexFindsOrMatchesTheWhole) {
  EXPECT_EQ(reward(R"([{"name": "regex", "options": {"pattern": "^[0-9]+$"}}])", "123", nullptr),
            1);
  EXPECT_EQ(reward(R"([{"name": "regex", "options": {"pattern": "[0-9]+"}}])", "a12", nullptr), 1);
  EXPECT_EQ(reward(R"([{"name": "regex", "options": {"pattern": "[0-9]+", "full": true}}])", "a12",
                   nullptr),
            0);
  EXPECT_EQ(reward(R"([{"name": "regex", "options": {"pattern": "[0-9]+", "full": true}}])", "12",
                   nullptr),
            1);
}

TEST(Rules, TheRewardIsTheWeightedSumOfItsParts) {
  const auto result = score(
      R"([{"name": "exact_match", "weight": 2}, {"name": "format", "weight": 0.5, "options": {"tags": ["a"]}},
                                 {"name": "length", "weight": 0.25, "label": "brief", "options": {"max": 3}}])",
      "<a>7</a>", "<a>7</a>");
  ASSERT_TRUE(result.reward) << result.failure;
  EXPECT_EQ(*result.reward, 2 + 0.5 - 0.25);
  const std::vector<std::pair<std::string, double>> parts{
      {"exact_match", 1}, {"format", 1}, {"brief", -1}};
  EXPECT_EQ(result.parts, parts);
}

TEST(Rules, AnAnswerThatNoCompletionCanMatchIsRefusedBeforehand) {
  const auto check = [](const char* rules, const Json& answer) {
    return value_or_throw(Rules::from_json(json(rules), "reward")).check_answer(answer);
  };
  for (const char* rule : {"exact_match", "gsm8k", "boxed"}) {
    const std::string list = cat(R"([{"name": "format"}, {"name": ")", rule, R"("}])");
    EXPECT_TRUE(check(list.c_str(), "7")) << rule;
    EXPECT_TRUE(check(list.c_str(), 7)) << rule;
    const auto none = check(list.c_str(), nullptr);
    ASSERT_FALSE(none) << rule;
    EXPECT_EQ(none.error().code, Errc::bad_input);
    EXPECT_EQ(none.error().what.find(cat("the reward rule ", rule, " needs the row's answer")), 0u)
        << none.error().what;
    EXPECT_FALSE(check(list.c_str(), Json(Json::Array{}))) << rule;
  }
  EXPECT_NE(check(R"([{"name": "gsm8k"}])", "many").error().what.find("not a number: \"many\""),
            std::string::npos);
  EXPECT_TRUE(check(R"([{"name": "format"}, {"name": "length", "options": {"max": 3}}])", nullptr));
}

TEST(Rules, AFailureIsNeverAScore) {
  const auto no_answer = score(R"([{"name": "format"}, {"name": "exact_match"}])", "x", nullptr);
  EXPECT_FALSE(no_answer.reward);
  EXPECT_EQ(no_answer.failure,
            "exact_match: the row's answer should be a text or a number, it is null");
  ASSERT_EQ(no_answer.parts.size(), 1u);
  const auto not_a_number = score(R"([{"name": "gsm8k"}])", "#### 1", "#### many");
  EXPECT_FALSE(not_a_number.reward);
  EXPECT_NE(not_a_number.failure.find("not a number"), std::string::npos);
  const auto not_text =
      score(R"([{"name": "regex", "options": {"pattern": "a"}}])", "\xff\xfe", nullptr);
  EXPECT_FALSE(not_text.reward);
  EXPECT_NE(not_text.failure.find("UTF-8"), std::string::npos);
  EXPECT_FALSE(
      score(R"([{"name": "length", "options": {"max": 3}}])", std::string(17u << 20, 'a'), nullptr)
          .reward);
}

TEST(Rules, APatternThatRunsAwayIsAFailure) {
  const auto result = score(R"([{"name": "regex", "options": {"pattern": "^(a|aa)+c"}}])",
                            std::string(4000, 'a') + "bc", nullptr);
  EXPECT_FALSE(result.reward);
  EXPECT_NE(result.failure.find("regex: "), std::string::npos) << result.failure;
}

TEST(Rules, ConfigurationsThatMeanNothingAreRefused) {
  const auto message = [](std::string_view text) {
    const auto rules = Rules::from_json(json(text), "rewards");
    EXPECT_FALSE(rules) << text;
    return rules ? "" : rules.error().what;
  };
  const auto expect = [&](std::string_view text, std::string_view part) {
    const auto found = message(text);
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  expect("[]", "rewards: expected a list of rules");
  expect("{}", "found object");
  expect("[{}]", "unknown rule");
  expect(R"([{"name": "boxxed"}])", "did you mean boxed?");
  expect(R"([{"name": "exact_match", "wieght": 2}])", "did you mean weight?");
  expect(R"([{"name": "exact_match", "options": {"stripp": true}}])",
         "rewards[0]: unknown key \"stripp\"; did you mean strip? The known keys are strip");
  expect(R"([{"name": "exact_match"}, {"name": "exact_match"}])", "give it another \"label\"");
  expect(R"([{"name": "length"}])", "a min or a max above 0");
  expect(R"([{"name": "length", "options": {"max": 5, "buffer": 6}}])", "buffer");
  expect(R"([{"name": "length", "options": {"max": 5, "unit": "tokens"}}])", "characters, words");
  expect(R"([{"name": "regex"}])", "expected a regular expression");
  expect(R"([{"name": "regex", "options": {"pattern": "("}}])", "rewards[0].pattern");
  expect(R"([{"name": "format", "options": {"tags": ["<a>"]}}])", "expected names like");
  expect(R"([{"name": "format", "options": {"tags": []}}])", "at least one tag");
}

}  // namespace
}  // namespace troupe::actors::rules
