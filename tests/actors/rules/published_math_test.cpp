// Forms and verdicts of the published graders. The expected values come from running the published
// Python functions by hand on these texts.
#include "actors/roles/rules/published_math.h"

#include <gtest/gtest.h>

#include "actors/roles/rules/math_answer.h"
#include "actors/roles/rules/rule.h"

namespace troupe::actors::rules::published_math {
namespace {

TEST(PublishedMath, FormsAreThoseOfStripString) {
  const std::pair<const char*, const char*> forms[] = {
      {"\\sqrt2", "\\sqrt{2}"},
      {"3\\sqrt5", "3\\sqrt{5}"},
      {"\\frac{\\sqrt3}{2}", "\\frac{\\sqrt{3}}{2}"},
      {"a=\\sqrt7", "\\sqrt{7}"},
      {"\\sqrt[3]{8}", "\\sqrt[3]{8}"},
      {"\\sqrtπ", "\\sqrt{π}"},
      {"\\frac12", "\\frac{1}{2}"},
      {"\\frac1{72}", "\\frac{1}{72}"},
      {"\\dfrac ab", "\\frac{a}{b}"},
      {"1/2", "\\frac{1}{2}"},
      {"-3/4", "\\frac{-3}{4}"},
      {"01/2", "01/2"},
      {"1/2/3", "1/2/3"},
      {"0.5", "\\frac{1}{2}"},
      {".25", "0.25"},
      {"5\\text{ cm}", "5"},
      {"90^\\circ", "90"},
      {"50\\%", "50"},
      {"\\$18", "18"},
      {"xyz=5", "xyz=5"},
      {"\\left( 1, 2 \\right)", "(1,2)"},
      {"\\frac1", "\\frac1"},
  };
  for (const auto& [text, form] : forms)
    EXPECT_EQ(math_normal_form(text).value_or("fails"), form) << text;
  for (const char* text : {"\\frac", "2\\sqrt", "a\\text{ b}\\text{ c}"})
    EXPECT_FALSE(math_normal_form(text)) << text;
}

TEST(PublishedMath, BoxesAreThoseOfLastBoxedOnlyString) {
  const std::pair<const char*, const char*> boxes[] = {
      {"So \\boxed 5", "5"},
      {"So $\\boxed 5$.", "5"},
      {"\\boxed{3}, or \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"},
      {"\\boxed{3", "none"},
      {"\\boxed5", "none"},
      {"no box", "none"},
  };
  for (const auto& [text, box] : boxes) EXPECT_EQ(math_boxed(text).value_or("none"), box) << text;
}

TEST(PublishedMath, NumbersAreThoseOfTheFirstMark) {
  const std::pair<const char*, const char*> numbers[] = {{"#### 18 dollars (eighteen)", "18"},
                                                         {"#### 1,234", "1234"},
                                                         {"#### -5", "-5"},
                                                         {"#### 18.", "18."},
                                                         {"#### 7\n#### 8", "7"},
                                                         {"#### x\n#### 8", "8"},
                                                         {"####18", "none"},
                                                         {"#### $18", "none"},
                                                         {"18", "none"}};
  for (const auto& [text, number] : numbers)
    EXPECT_EQ(gsm8k_answer(text).value_or("none"), number) << text;
}

double reward(const char* rule, const std::string& completion, const std::string& answer) {
  const protocol::RewardRequest request{.completion = completion, .answer = Json(answer)};
  const auto made = value_or_throw(make_rule(rule, Json(), "reward"));
  return made.score(std::span(&request, 1)).front().value().reward;
}

TEST(PublishedMath, RulesGiveThePublishedVerdicts) {
  EXPECT_EQ(reward("gsm8k_published", "#### 18 (eighteen)", "... #### 18"), 1);
  EXPECT_EQ(reward("gsm8k_published", "#### 18.0", "18"), 0);
  EXPECT_EQ(reward("math_published", "\\boxed{1/2}", "thus \\boxed{\\frac12}"), 1);
  EXPECT_EQ(reward("math_published", "\\boxed{1/4}", "0.25"), 0);
  // The stricter rule and the rule that compares numbers.
  EXPECT_EQ(reward("gsm8k", "#### 18 (eighteen)", "18"), 0);
  EXPECT_EQ(reward("boxed", "\\boxed{1/4}", "0.25"), 1);
}

TEST(PublishedMath, BoxedReadsMathsSpellings) {
  const std::pair<const char*, const char*> rows[] = {
      {"\\sqrt{2}", " So \\boxed{\\sqrt2}"},
      {"3\\sqrt{5}", " So \\boxed{3\\sqrt5}"},
      {"\\frac{\\sqrt{3}}{2}", " So \\boxed{\\frac{\\sqrt3}{2}}"},
      {"\\sqrt{7}", " So \\boxed{a=\\sqrt7}"},
      {"5", " So \\boxed 5"},
      {"\\sqrt2", " So \\boxed{\\sqrt{2}}"},
      {"\\frac{a}{b}", "\\boxed{\\dfrac ab}"},
      {"5", "\\boxed{5}. I used \\boxed to mark it"}};
  for (const auto& [answer, completion] : rows)
    EXPECT_EQ(reward("boxed", completion, answer), 1) << completion;
  EXPECT_EQ(reward("boxed", "\\boxed{\\sqrt[3]{8}}", "\\sqrt{8}"), 0);
}

}  // namespace
}  // namespace troupe::actors::rules::published_math
