// Patterns, literals and templates of Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "engine/base/text/text.h"
#include "launch/evaluation/doc_template.h"
#include "launch/evaluation/python_literal.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::evaluation {
namespace {

using testing::HasSubstr;

std::vector<Json> cases() {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/evaluation/python_re.jsonl");
  std::vector<Json> out;
  for (std::string line; std::getline(file, line);)
    out.push_back(value_or_throw(parse_json(line, "python_re.jsonl")));
  return out;
}

/// re.findall() as lists of texts.
Json findall(const Regex& regex, const std::string& text) {
  Json::Array out;
  for (const auto& match : value_or_throw(regex.find_groups(text))) {
    Json::Array groups;
    for (std::size_t g = match.size() == 1 ? 0 : 1; g < match.size(); ++g)
      groups.emplace_back(text.substr(match[g].begin, match[g].end - match[g].begin));
    out.emplace_back(std::move(groups));
  }
  return out;
}

TEST(PythonText, PatternsFindWhatPythonFinds) {
  std::vector<Json> all = cases();
  const Json texts = *all.back().find("texts");
  all.pop_back();
  EXPECT_GT(all.size(), 30U);
  for (const Json& each : all) {
    const std::string& pattern = each.find("pattern")->string();
    const Regex regex = value_or_throw(python_regex(pattern, "test"));
    for (std::size_t i = 0; i < texts.array().size(); ++i)
      EXPECT_EQ(findall(regex, texts.array()[i].string()).dump(),
                each.find("found")->array()[i].dump())
          << pattern << " in " << texts.array()[i].dump();
  }
}

TEST(PythonText, PatternsThatPythonRefusesAreRefused) {
  for (const char* pattern : {R"(\p{L})", R"(\h)", "(*FAIL)", "(?<x>a)", "(?|a|b)", "(?a)x", "[a",
                              R"(\N{DASH})", "(", R"(\u12)", "a(?i)b"})
    EXPECT_FALSE(python_regex(pattern, "test")) << pattern;
}

TEST(PythonText, APatternOfDotsOnALongTextEndsOrGivesUp) {
  const Regex regex = value_or_throw(python_regex(R"((?s).*#### )", "test"));
  const auto found = regex.find_groups(std::string(100'000, 'x'));
  EXPECT_TRUE(!found || found->empty());
}

TEST(PythonText, LiteralsAreReadAsPythonReadsThem) {
  const auto parsed = [](std::string_view text) {
    const auto found = parse_python_literal(text);
    return found ? found->dump() : std::string("none");
  };
  EXPECT_EQ(parsed("['a', \"b'c\", 'd\\n\\u00e9']"), "[\"a\",\"b'c\",\"d\\né\"]");
  EXPECT_EQ(parsed(" [1, -2.5, True, None, (3,), {'k': []}] "),
            "[1,-2.5,true,null,[3],{\"k\":[]}]");
  for (const char* wrong : {"[1", "a", "['x' 'y'", "{1: 2}", "", "[1 2]", "'a\n'"})
    EXPECT_EQ(parsed(wrong), "none") << wrong;
}

Result<std::string> render(const std::string& source, const Json& row) {
  const auto made = DocTemplate::compile(source, "task.yaml:3");
  RETURN_IF_ERROR(made);
  return made->render(row);
}

TEST(PythonText, TemplatesKeepWhiteSpaceAndRefuseUndefinedNames) {
  const Json row = Json::Object{{"a", " x "}, {"list", Json::Array{"p", "q"}}};
  EXPECT_EQ(render("{{a.strip()}}\n{% if a %}\nyes{% endif %}\n", row).value(), "x\n\nyes\n");
  EXPECT_EQ(render("{{list}} {{list.index('q')}}", row).value(), "['p', 'q'] 1");
  EXPECT_EQ(render("{{ b if b is defined else a }}", row).value(), " x ");
  for (const char* wrong : {"{{b}}", "{% if b %}x{% endif %}", "{{ a ~ b }}", "{{ b == a }}",
                            "{% for i in b %}{% endfor %}", "{{ list[5] }}", "{{ 'x' in b }}",
                            "{{ b | length }}", "{{ b is defined and b }}{{ a.c }}"}) {
    const auto made = render(wrong, row);
    ASSERT_FALSE(made) << wrong << " gave " << *made;
    EXPECT_THAT(made.error().what, HasSubstr("task.yaml:3")) << wrong;
  }
}

}  // namespace
}  // namespace troupe::launch::evaluation
