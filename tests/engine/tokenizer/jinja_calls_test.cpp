// Every filter, test and method with arguments of every type: a result or a sentence, within the
// limits, whatever they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/template_calls.h"

namespace troupe::engine::tokenizer {
namespace {

using testing::HasSubstr;

std::string result_of(const std::string& source) {
  const auto chat = ChatTemplate::parse(source, "t.jinja");
  if (!chat) return "error: " + chat.error().what;
  RenderInput input;
  input.messages = value_or_throw(parse_json(R"([{"role":"user","content":"hello"}])", "messages"));
  const auto result = chat->render(input);
  return result ? result->text : "error: " + result.error().what;
}

TEST(JinjaCalls, OfRandomArgumentsEndWithATextOrASentence) {
  std::mt19937 random(20241124);
  const auto choose = [&](std::size_t below) { return random() % below; };
  int errors = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string source = testing_support::random_call(choose);
    SCOPED_TRACE(source);
    const std::string said = result_of(source);
    ASSERT_TRUE(valid_utf8(said));
    errors += said.starts_with("error: ");
  }
  EXPECT_GT(errors, 2'000);
  EXPECT_LT(errors, 18'000);
}

// Each filter and each test alone, with no argument, one and two.
TEST(JinjaCalls, OfEveryNameWithEveryValueEndWithATextOrASentence) {
  const auto check = [](const std::string& source) {
    SCOPED_TRACE(source);
    EXPECT_TRUE(valid_utf8(result_of(source)));
  };
  for (const std::string& value : testing_support::value_expressions()) {
    for (const std::string_view name : jinja::filter_names())
      for (const char* arguments : {"", "(none)", "('a', 1)", "(5)", "(missing)"})
        check(cat("{{ ", value, "|", name, arguments, " }}"));
    for (const std::string_view name : jinja::string_method_names())
      for (const char* arguments : {"()", "(none)", "('a', 1)", "(5)", "(missing)"})
        check(cat("{{ (", value, ").", name, arguments, " }}"));
  }
}

TEST(JinjaCalls, AMarkedTextIsTruncatedWithoutAnEnd) {
  EXPECT_EQ(result_of("{{ 'abcdefghijklmnop'|safe|truncate(5) }}"), "ab...");
  EXPECT_EQ(result_of("{{ 'abcdefghijklmnop'|e|truncate(5, true, '<') }}"), "abcd&lt;");
  EXPECT_EQ(result_of("{{ 'abcdefghijklmnop'|e|truncate(5, true, '<'|safe) }}"), "abcd<");
}

TEST(JinjaCalls, HugeNumbersAsWidthsAreRefused) {
  for (const std::string call :
       {"'a'.center(4611686018427387905, '\U0001F600')", "'a'.ljust(9223372036854775807)",
        "'a'.zfill(9223372036854775807)", "'%*d' % (-9223372036854775807 - 1, 1)",
        "'{:0100000000,}'.format(1)", "'abc'|center(9223372036854775807)"})
    EXPECT_THAT(result_of("{{ " + call + " }}"), HasSubstr("error: t.jinja: line 1: a ")) << call;
  EXPECT_EQ(result_of("{{ 'abcdef'|truncate(9223372036854775807, leeway=9223372036854775807) }}"),
            "abcdef");
  EXPECT_EQ(result_of("{{ '{:020,}'.format(1234) }}"), "0,000,000,000,001,234");
}

// Values that hold values are destroyed recursively.
TEST(JinjaCalls, ChainsOfObjectsAreNotLongerThanNestedLists) {
  const std::string loop = "{% set n = namespace(x=1) %}{% for i in range(99999) %}";
  for (const std::string step :
       {"{% set n.x = [n.x].count %}{% set n.x = [n.x] %}", "{% set n.x = joiner(n.x) %}",
        "{% set n.x = cycler(n.x) %}", "{% set n.x = {'a': n.x}.get %}",
        "{% for y in [n.x] %}{% set n.x = loop %}{% endfor %}",
        "{% for y in [1] %}{% set z = loop.changed(n.x) %}{% set n.x = loop %}{% endfor %}",
        "{% set n.x = cycler(n.x).next %}"})
    EXPECT_THAT(result_of(loop + step + "{% endfor %}"), HasSubstr("nested deeper than 100"))
        << step;
}

// Python's str.split and rsplit: what is left over keeps its other end.
TEST(JinjaCalls, SplitAtSpacesKeepsTheRest) {
  EXPECT_EQ(result_of("{{ ' a b c '.split(none, 1) }}"), "['a', 'b c ']");
  EXPECT_EQ(result_of("{{ ' a b c '.rsplit(none, 1) }}"), "[' a b', 'c']");
  EXPECT_EQ(result_of("{{ 'x '.split(none, 0) }}"), "['x ']");
  EXPECT_EQ(result_of("{{ ' x'.rsplit(none, 0) }}"), "[' x']");
  EXPECT_EQ(result_of("{{ '  '.split(none, 1) }}{{ '  '.rsplit(none, 1) }}"), "[][]");
  EXPECT_EQ(result_of("{{ 'a,b,c'.rsplit(',', 1) }}{{ 'aXXbXX'.rsplit('XX') }}"),
            "['a,b', 'c']['a', 'b', '']");
}

// jinja2 refuses an unknown filter when it compiles, but where only a branch would use it.
TEST(JinjaCalls, UnknownFiltersAreErrorsWhereJinja2HasThem) {
  const auto branch = [](const std::string& inside) {
    return result_of("{% if x %}" + inside + "{% endif %}");
  };
  EXPECT_EQ(branch("{% for y in (1|nope) %}{% endfor %}"), "");
  EXPECT_EQ(branch("{% with y = 1|nope %}{% endwith %}"), "");
  for (const std::string inside :
       {"{% for y in 1 if 1|nope %}{% endfor %}", "{% for y in 1 %}{{ 1|nope }}{% endfor %}",
        "{% set v %}{{ 1|nope }}{% endset %}", "{% set v | nope %}{% endset %}",
        "{% with y = 1 %}{{ 1|nope }}{% endwith %}"})
    EXPECT_THAT(branch(inside), HasSubstr("no filter named \"nope\"")) << inside;
}

TEST(JinjaCalls, AnOpeningAtTheVeryEndOpensNothing) {
  EXPECT_EQ(result_of("a{#"), "a");
  EXPECT_EQ(result_of("a {#-"), "a");
  EXPECT_EQ(result_of("a{% raw %}"), "a");
  EXPECT_THAT(result_of("a{# b"), HasSubstr("a comment {# that does not end"));
}

TEST(Cancelling, EndsTemplatesAndEncoding) {
  const auto tokenizer =
      value_or_throw(Tokenizer::load(std::string(TROUPE_TEST_DATA) + "/models/tinystories-656k"));
  const auto chat =
      value_or_throw(ChatTemplate::parse("{% for i in range(9) %}a{% endfor %}", "t"));
  const CancellableReading reading;
  EXPECT_TRUE(chat.render({}));
  EXPECT_FALSE(tokenizer.encode("once", false).empty());
  EXPECT_TRUE(cancel_reading());
  EXPECT_EQ(chat.render({}).error().code, Errc::cancelled);
  EXPECT_THROW(tokenizer.encode("once", false), Failure);
}

TEST(JinjaCalls, ReasoningHasTheNamesOfTransformers) {
  const auto shown = [](const std::string& message) {
    RenderInput input;
    input.messages = value_or_throw(parse_json("[" + message + "]", "messages"));
    const auto chat = ChatTemplate::parse("{{ messages[0] }}", "t.jinja");
    return value_or_throw(chat->render(input)).text;
  };
  EXPECT_EQ(shown(R"({"role":"assistant","reasoning":"why"})"),
            "{'thinking': 'why', 'role': 'assistant', 'reasoning': 'why', "
            "'reasoning_content': 'why'}");
  EXPECT_EQ(shown(R"({"thinking":null,"reasoning_content":null,"reasoning":"why"})"),
            "{'thinking': None, 'reasoning_content': 'why', 'reasoning': 'why'}");
  EXPECT_EQ(shown(R"({"role":"user","reasoning":null})"), "{'role': 'user', 'reasoning': None}");
}

}  // namespace
}  // namespace troupe::engine::tokenizer
