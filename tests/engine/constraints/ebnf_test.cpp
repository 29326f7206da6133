#include "engine/constraints/ebnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints {
namespace {

using testing::HasSubstr;

TEST(Ebnf, RulesMayBeRecursive) {
  const std::string text =
      "root ::= sum\nsum ::= term ([+*] term)*\nterm ::= [0-9]{1,3} |\n"
      "  \"(\" sum \")\"  # nested\n";
  Automaton automaton(value_or_throw(compile_ebnf(text)), {});
  for (const char* good : {"1", "1+2", "(1+2)*3", "((((7))))", "12*(3+(4*5))"})
    EXPECT_TRUE(test::matches(automaton, good)) << good;
  for (const char* bad : {"", "1+", "(1", "1)", "1234", "((7)"})
    EXPECT_FALSE(test::matches(automaton, bad)) << bad;
}

TEST(Ebnf, RightRecursionNeedsNoStack) {
  Automaton automaton(value_or_throw(compile_ebnf("root ::= [a-z] root | \"\"")),
                      {.bytes = 1 << 16});
  EXPECT_TRUE(test::matches(automaton, std::string(100000, 'x')));
}

TEST(Ebnf, LiteralsAndClasses) {
  EXPECT_TRUE(test::matches(compile_ebnf(R"(root ::= "a\n\"é\u00e9\x41" [^\n\]-] . )"),
                            "a\n\"éé"
                            "Ab\n"));
  EXPECT_TRUE(test::matches(compile_ebnf("root ::= x? y+ z{2,}\nx ::= \"x\"\ny ::= \"y\"\n"
                                         "z ::= \"z\""),
                            "yyzzz"));
}

TEST(Ebnf, SpacesStandBeforeRepetitionsAndInThem) {
  for (const char* text :
       {"root ::= \"a\" {2,3}", "root ::= \"a\"{2, 3}", "root ::= \"a\" { 2 , 3 } # two\n",
        "root ::= (\"a\") {2} \"a\" ?", "root ::= (\"a\"\n  {2\n,3})"}) {
    Automaton automaton(value_or_throw(compile_ebnf(text)), {});
    EXPECT_TRUE(test::matches(automaton, "aa")) << text;
    EXPECT_TRUE(test::matches(automaton, "aaa")) << text;
    EXPECT_FALSE(test::matches(automaton, "a")) << text;
    EXPECT_FALSE(test::matches(automaton, "aaaa")) << text;
  }
  EXPECT_TRUE(test::matches(compile_ebnf("root ::= rule *\nrule ::= \"x\" +"), "xxx"));
}

TEST(Ebnf, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no rule \"root\""},
      {"a ::= \"a\"", "no rule \"root\""},
      {"root ::= a", "\"a\" is not defined"},
      {"root ::= \"a\nroot ::= \"b\"", "line 1: \" without \""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule \"root\" is defined twice"},
      {"root = \"a\"", "expected ::="},
      {"root ::= (\"a\"", "( without )"},
      {"root ::= root \"a\" | \"a\"", "left recursion"},
      {"root ::= a\na ::= b? a \"x\" | \"y\"\nb ::= \"b\"", "left recursion"},
      {"root ::= \"a\" root", "no text satisfies"},
      {"root ::= [b-a]", "swapped"},
      {"root ::= \"\\q\"", "escape"}};
  for (const auto& [text, message] : cases) {
    const auto found = compile_ebnf(text);
    ASSERT_FALSE(found) << text;
    EXPECT_THAT(found.error().what, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace troupe::engine::constraints
