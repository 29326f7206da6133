// The suite mindspeed: answers, cells and prompts, on texts of docs and rows made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/base/text/text.h"
#include "launch/evaluation/mindspeed/answer_rules.h"
#include "launch/evaluation/mindspeed/pandas_cells.h"
#include "launch/evaluation/mindspeed/programs.h"
#include "launch/evaluation/mindspeed/prompts.h"
#include "launch/evaluation/mindspeed/suite_tasks.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::vector<std::string> texts_in(const Json& list) {
  std::vector<std::string> out;
  for (const Json& each : list.array()) out.push_back(each.string());
  return out;
}

// Made by pandas 2.2.3 (tests/evaluation/pandas_cells.py).
TEST(Mindspeed, CellsAreThoseOfPandas) {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/evaluation/pandas_cells.jsonl");
  int columns = 0;
  for (std::string line; std::getline(file, line); ++columns) {
    const Json row = value_or_throw(parse_json(line, "pandas_cells.jsonl"));
    EXPECT_EQ(pandas_column(row.find("cells")->array()), texts_in(*row.find("printed"))) << line;
  }
  EXPECT_EQ(columns, 559);
  EXPECT_THAT(pandas_column({Json(), Json("2")}), ElementsAre("nan", "2.0"));
}

TEST(Mindspeed, AnswersOfMmluAreTheLastLetterBeforeAPoint) {
  for (const char* text : {"B", " B", "B. because"})
    EXPECT_EQ(mmlu_answer(left_stripped(text)), "B") << text;
  EXPECT_EQ(mmlu_answer("The answer is C."), "C");
  EXPECT_EQ(mmlu_answer("Maybe A. or D. end"), "D");
  EXPECT_EQ(mmlu_answer("A\nC. x"), "A");
  EXPECT_EQ(mmlu_answer("|"), "|");
  for (const char* text : {"(B)", "xA", "答案：B", ""})
    EXPECT_EQ(mmlu_answer(text), std::nullopt) << text;
}

TEST(Mindspeed, CapitalsAreOfAnyScript) {
  EXPECT_EQ(first_capital("Yes it is A"), "Y");
  EXPECT_EQ(first_capital("no. B"), "B");
  EXPECT_EQ(first_capital("Éa"), "É");
  EXPECT_EQ(first_capital("abc"), "");
  EXPECT_EQ(first_capital("ⅳⅣ"), "Ⅳ");  // a number in category, upper case for str.isupper()
}

TEST(Mindspeed, AnswersOfBigBench) {
  EXPECT_EQ(bbh_answer("(B)\n\nQ: x", false), "B");
  EXPECT_EQ(bbh_answer("The answer is (C) 12", false), "C");
  EXPECT_EQ(bbh_answer("24.", false), "24");
  EXPECT_EQ(bbh_answer("-3.5", false), "-3");
  EXPECT_EQ(bbh_answer("No, it is plausible", true), "No");
  EXPECT_EQ(bbh_answer("answer: Invalid", true), "Invalid");
  EXPECT_EQ(bbh_reasoned_choice("So the answer is (C)."), "C");
  EXPECT_EQ(bbh_reasoned_choice("I pick (D"), "D");
  EXPECT_EQ(bbh_reasoned_choice("foo"), "foo");
  EXPECT_EQ(bbh_reasoned_text("So the answer is 24.\nQ: next", false), "24");
  EXPECT_EQ(bbh_reasoned_text("The answer is **No, because**.", true), "No");
}

TEST(Mindspeed, AnswersOfGsm8kAndWhatFixedCorrects) {
  EXPECT_EQ(gsm8k_answer("A: 3+4. The answer is 7.", false), "7");
  EXPECT_EQ(gsm8k_answer("The answer is $1,234.", false), "1234");
  EXPECT_EQ(gsm8k_answer("The answer is 3.50.", false), "3");
  EXPECT_EQ(gsm8k_answer("The answer is 3.50.", true), "3.50");
  EXPECT_EQ(gsm8k_answer("x. The answer is 5 apples. Q: The answer is 6.", false), "5");
  EXPECT_EQ(gsm8k_answer("no", false), std::nullopt);
  EXPECT_EQ(gsm8k_reasoned("The answer is 12. Question: 13", false), "12");
  EXPECT_EQ(gsm8k_reasoned("x = -3.5", false), "-3.5");
  EXPECT_EQ(gsm8k_reasoned("none", false), std::nullopt);
  EXPECT_EQ(gsm8k_reasoned("The answer is 1,234", false), "234");
  EXPECT_EQ(gsm8k_reasoned("The answer is 1,234", true), "1234");
}

TEST(Mindspeed, AnswersOfAgieval) {
  EXPECT_EQ(agieval_cloze("\\boxed{x=5}"), "5");
  EXPECT_EQ(agieval_cloze("The answer is therefore $\\frac{1}{2}$"), "\\frac{1}{2}");
  EXPECT_EQ(agieval_cloze("the result = 12."), "12");
  EXPECT_EQ(agieval_cloze("there are 3 and 4.5 left"), "4.5");
  EXPECT_EQ(agieval_letters("ABD are right"), "ABD");
  EXPECT_EQ(agieval_letters("The answer is (E)"), "");
  EXPECT_EQ(agieval_line("$(A)$ or B\nC"), "A or B");
}

/// What a text has with one pattern more than those that follow every list.
std::string letter(const std::string& pattern, const std::string& options, LetterOf what,
                   const std::string& text) {
  return value_or_throw(
      value_or_throw(LetterSearch::create({{pattern, true}}, options, what)).find(text));
}

TEST(Mindspeed, LettersFollowTheOrderOfThePatterns) {
  const std::string says = "is:?\\s+\\(?([{options}])\\)?";
  const auto last = LetterOf::last_character, group = LetterOf::first_group;
  EXPECT_EQ(letter(says, "ABCD", last, "The answer is C"), "C");
  EXPECT_EQ(letter(says, "ABCD", last, "I think B is right"), "B");
  EXPECT_EQ(letter(says, "ABCD", last, "答案是D。"), "D");
  EXPECT_EQ(letter(says, "ABCD", last, "ABC"), "A");
  EXPECT_EQ(letter(says, "ABCD", last, ""), "");
  EXPECT_EQ(letter(says, "ABCD", last, "none"), "");
  EXPECT_EQ(letter(says, "ABCD", last, "X\nB: yes\nit is (C)"), "B");  // the parenthesis is last
  EXPECT_EQ(letter(says, "ABCD", group, "X\nB: yes\nit is (C)"), "C");
  EXPECT_EQ(letter(says, "ABCDE", group, "ABD are right"), "A");
  EXPECT_EQ(letter(says, "ABCDE", group, "The answer is (E)"), "E");
}

TEST(Mindspeed, StringsOfASourceAreJoinedAsPythonJoinsThem) {
  const std::string source =
      "x = 1\npatterns = [\n    f'a\\s*([{options}])',  # comment\n    f'b{{1}}'\n    f'c',\n"
      "    r\"d\\n\",\n    'e\\n',\n]\nother = ['f']\n";
  const auto found = value_or_throw(source_strings(source, "patterns = [", "file.py"));
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(with_options(found[0], "AB"), "a\\s*([AB])");
  EXPECT_EQ(with_options(found[1], "AB"), "b{1}c");
  EXPECT_EQ(with_options(found[2], "AB"), "d\\n");
  EXPECT_EQ(with_options(found[3], "AB"), "e\n");
  EXPECT_THAT(source_strings(source, "missing = [", "file.py").error().what, HasSubstr("file.py"));
  EXPECT_FALSE(source_strings("patterns = [f(1)]", "patterns = [", "file.py"));
  EXPECT_FALSE(source_strings("patterns = ['a'", "patterns = [", "file.py"));
}

TEST(Mindspeed, LongTextsTakeNoTime) {
  const std::string text = std::string(50'000, 'x') + std::string(50'000, '(') + ".";
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(mmlu_answer(text), std::nullopt);
  EXPECT_EQ(bbh_answer(text, true), "");
  EXPECT_EQ(gsm8k_answer(text, false), std::nullopt);
  EXPECT_EQ(gsm8k_reasoned(text, false), std::nullopt);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(took.count(), 5.0);  // a bound on quadratic time; tests/long.log has the times
}

TEST(Mindspeed, ProgramsEndBehindTheFunction) {
  const Json row = Json::Object{{"prompt", "import os\ndef f(a):\n    '''x'''\n"},
                                {"test", "def check(g):\n    assert g(1) == 2\n"},
                                {"entry_point", "f"}};
  const std::string answer = " return a + 1\n\nprint(f(3))\ndef g():\n    pass\n";
  // The reference compares the word "f(a):" with the name, and drops the call alone.
  EXPECT_EQ(
      human_eval_program(row, answer, false),
      "from typing import List\nimport math\nimport os\ndef f(a):\n    '''x'''\n    return a + "
      "1\ndef g():\n    pass\ndef check(g):\n    assert g(1) == 2\n\ncheck(f)");
  EXPECT_EQ(
      human_eval_program(row, answer, true),
      "from typing import List\nimport math\nimport os\ndef f(a):\n    '''x'''\n    return a + "
      "1\ndef check(g):\n    assert g(1) == 2\n\ncheck(f)");
  EXPECT_THAT(value_or_throw(human_eval_fenced(row, "Sure:\n```python\n    return 2\n```\nDone")),
              HasSubstr("'''x'''\n    return 2\n\ndef check"));
}

RuledAnswer ruled(RuleSettings settings, const std::string& gold, const std::string& text) {
  TaskItem item;
  item.target = gold;
  ItemAnswer answer;
  answer.texts = {text};
  return value_or_throw(make_rule(std::move(settings))->evaluate(item, Json::Object{}, answer, {}));
}

TEST(Mindspeed, VerdictsCountWhatIsMissing) {
  EXPECT_TRUE(ruled({.reads = Reads::mmlu}, "B", " B").right);
  const RuledAnswer none = ruled({.reads = Reads::mmlu}, "B", "x");
  EXPECT_TRUE(!none.right && none.no_answer);
  // BoolQ: a capital that stands for no answer.
  EXPECT_TRUE(ruled({.reads = Reads::capital, .maps_words = true}, "A", "yes or Yes").right);
  EXPECT_TRUE(ruled({.reads = Reads::capital, .maps_words = true}, "A", "X").no_answer);
  EXPECT_FALSE(ruled({.reads = Reads::capital}, "A", "Yes").right);
  // The lenient rule of MMLU.
  RuleSettings lenient{.reads = Reads::letters, .lenient = true};
  lenient.searches["ABCD"] = std::make_shared<const LetterSearch>(
      value_or_throw(LetterSearch::create({}, "ABCD", LetterOf::last_character)));
  EXPECT_EQ(ruled(lenient, "B", "ABC").filtered, Json("A"));
  EXPECT_TRUE(ruled(lenient, "A", "ABC: B:").right);
  lenient.lenient = false;
  EXPECT_EQ(ruled(lenient, "B", "xB: A").filtered, Json("B"));
  EXPECT_FALSE(ruled(lenient, "A", "xB: A").right);
  EXPECT_TRUE(ruled(lenient, "A", "").no_answer);
}

TEST(Mindspeed, OtherTasksAndModesAreRefused) {
  const auto wrong = suite_tasks({"mmlv"}, {});
  EXPECT_THAT(wrong.error().what, HasSubstr("did you mean mmlu?"));
  SuiteSettings cot{.mode = Mode::cot};
  EXPECT_THAT(suite_tasks({"mmlu"}, cot).error().what, HasSubstr("mmlu has no mode cot"));
  EXPECT_THAT(suite_tasks({"bbh"}, {}).error().what, HasSubstr("Give --task-data"));
  SuiteSettings settings;
  settings.data = std::string(TROUPE_TEST_DATA) + "/evaluation/rows";
  EXPECT_THAT(suite_tasks({"mmlu"}, settings).error().what, HasSubstr("give --fewshot-data"));
  settings.checkout = settings.data;
  EXPECT_THAT(suite_tasks({"mmlu"}, settings).error().what,
              HasSubstr("no mmlu_5shot_template.json"));
}

}  // namespace
}  // namespace troupe::launch::evaluation::mindspeed
