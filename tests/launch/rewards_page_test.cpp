// docs/rewards.md: every rule, every option, and the examples with their values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/rules/rules.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "launch/recipes/rewards.h"

namespace troupe::launch {
namespace {

using actors::rules::Rules;
using testing::HasSubstr;

std::string rewards_page() {
  return value_or_throw(read_file(TROUPE_DOCS "/rewards.md"));
}

/// The text from a heading to the next one.
std::string section_about(const std::string& rule) {
  const std::string page = rewards_page();
  const auto begin = page.find(cat("\n### ", rule, "\n"));
  return begin == std::string::npos ? "" : page.substr(begin, page.find("\n#", begin + 2) - begin);
}

/// The options of a rule, from the error for one that it does not have.
std::vector<std::string> options_of(const std::string& rule) {
  const auto made = actors::rules::make_rule(
      rule, value_or_throw(parse_json(R"({"no_such_option": 1})", "test")), "rule");
  if (made) return {};
  const std::string& text = made.error().what;
  constexpr std::string_view before = "the known keys are ";
  const auto known = text.find(before);
  EXPECT_NE(known, text.npos) << text;
  std::vector<std::string> out;
  for (std::size_t at = known + before.size(); at < text.size();) {
    const auto end = std::min(text.find(", ", at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return out;
}

double value_of(const std::string& rule, const std::string& options, const std::string& completion,
                Json answer = {}) {
  const std::string list = cat(R"([{"name": ")", rule, R"(", "options": )", options, "}]");
  const auto rules =
      value_or_throw(Rules::from_json(value_or_throw(parse_json(list, "test")), "reward"));
  const actors::protocol::RewardRequest request{"", completion, std::move(answer)};
  const auto result = rules.score({&request, 1})[0];
  EXPECT_TRUE(result.reward) << result.failure;
  return result.reward.value_or(-99);
}

TEST(RewardsPage, HasEveryRuleWithEveryOption) {
  for (const std::string& rule : actors::rules::rule_names()) {
    EXPECT_THAT(rewards_page(), HasSubstr(cat("\n| `", rule, "` |"))) << rule;
    const bool program = rule == "command";  // has a chapter of its own
    for (const std::string& option : options_of(rule))
      EXPECT_THAT(program ? rewards_page() : section_about(rule), HasSubstr(cat("`", option, "`")))
          << rule;
  }
  const auto documents = [&](const auto& item, const char* rule) {
    std::decay_t<decltype(item)>::each_field(item, [&](const char* option, const auto&...) {
      EXPECT_THAT(section_about(rule), HasSubstr(cat("`", option, "`"))) << rule;
    });
  };
  documents(recipes::OutcomeItem{}, "model");
  documents(recipes::ProcessItem{}, "process");
}

TEST(RewardsPage, TheExamplesHaveTheValuesThatItStates) {
  EXPECT_EQ(value_of("exact_match", R"({"tag": "answer"})",
                     "<think>3 + 4</think><answer> 7 </answer>", "7"),
            1);
  EXPECT_EQ(value_of("gsm8k", R"({"flexible": true})", "So she pays 18 dollars.", "... #### 18"),
            1);
  EXPECT_EQ(value_of("gsm8k", "{}", "#### 1,234.0", 1234), 1);
  for (const char* same : {"\\frac12", "0.5", "50\\%"})
    EXPECT_EQ(value_of("boxed", "{}", "\\boxed{\\dfrac{1}{2}}", same), 1) << same;
  EXPECT_EQ(value_of("boxed", R"({"format_score": 0.1})", "\\boxed{3}", "2"), 0.1);
  EXPECT_EQ(value_of("boxed", R"({"format_score": 0.1})", "3", "2"), 0);
  EXPECT_EQ(value_of("format", "{}", "<think>a</think> <answer>b</answer>"), 1);
  EXPECT_EQ(value_of("format", R"({"tags": ["plan", "code", "answer"]})",
                     "<plan>a</plan><code>b</code><answer>c</answer>"),
            1);
  const std::string reasoning = R"({"pattern": "(?m)\\A.*?</think>\\s*\\S"})";
  EXPECT_EQ(value_of("regex", reasoning, "first\nthen</think>\nit is 7"), 1);
  EXPECT_EQ(value_of("regex", reasoning, "first\nthen</think>\n"), 0);
  EXPECT_EQ(value_of("regex", R"({"pattern": "[A-D]", "full": true})", "B"), 1);
  EXPECT_EQ(value_of("regex", R"({"pattern": "[A-D]", "full": true})", "B."), 0);
  EXPECT_EQ(value_of("regex", R"({"pattern": "(?i)as an ai"})", "As an AI, I"), 1);
  const auto words = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "word ";
    return value_of("length", R"({"unit": "words", "max": 100, "buffer": 20})", text);
  };
  EXPECT_EQ(words(80), 0);
  EXPECT_EQ(words(90), -0.5);
  EXPECT_EQ(words(100), -1);
}

}  // namespace
}  // namespace troupe::launch
