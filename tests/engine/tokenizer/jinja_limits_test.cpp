// Templates that want too much: each ends soon, with a sentence that names the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "engine/base/text/text.h"
#include "engine/tokenizer/chat_template.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::tokenizer {
namespace {

using testing::HasSubstr;

// Sanitizers check each access of a search through megabytes.
constexpr double max_seconds = test::sanitized ? 60 : 10;

std::string rendered(const std::string& source) {
  const auto chat = ChatTemplate::parse(source, "t.jinja");
  if (!chat) return "error: " + chat.error().what;
  RenderInput input;
  input.messages = Json(Json::Array{});
  const auto rendered = chat->render(input);
  return rendered ? rendered->text : "error: " + rendered.error().what;
}

struct Hostile {
  std::string source, part;
};

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::vector<Hostile> endless() {
  return {
      {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
      {"{% for a in range(99999) %}{% for b in range(99999) %}{{ a ~ b }}{% endfor %}{% endfor %}",
       "steps"},
      {"{% for a in range(99999) %}{% for b in range(99999) %}{% set c = [a, b]|sort|join(',') "
       "%}{% endfor %}{% endfor %}",
       "steps"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recurses"},
      {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
       "steps"},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "recurses"},
      {"{{ range(10 ** 12) }}", "range"},
      {"{{ 9 ** 9 ** 9 }}", "64 bits"},
      {"{{ 1.5 ** 99999 }}", "too large"},
      {"{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{% set y = x.replace('a', 'b') %}{% "
       "endfor %}",
       "steps"},
      {"{% set x = 'é' * 1000000 %}{% for i in range(99999) %}{% set y = x.title() %}{% endfor %}",
       "steps"},
      {"{% set x = 'Σ' * 1000000 %}{% for i in range(99999) %}{% set y = x.capitalize() %}{% "
       "endfor %}",
       "steps"},
      {"{% set x = 'ab ' * 100000 %}{% for i in range(99999) %}{% set y = x.split() %}{% endfor %}",
       "steps"},
      {"{% set x = range(99999)|list %}{% for i in x %}{{ i in x }}{% endfor %}", "steps"},
      {"{% for i in range(999) %}{% set x = range(99999)|unique|list %}{% endfor %}", "steps"},
      {"{{ '%.999999999f' % 1.5 }}", "precision"},
      {"{{ '{:99999999}'.format(1) }}", "bytes"},
      {"{{ '%*d' % (999999999, 1) }}", "width"},
  };
}

std::vector<Hostile> large() {
  return {
      {"{{ 'x' * 10 ** 10 }}", "bytes"},
      {"{{ [1] * 10 ** 10 }}", "items"},
      {"{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}", "bytes"},
      {"{{ ('a' * 1000000).replace('', 'b' * 1000) }}", "bytes"},
      {"{{ 'x'|center(10 ** 10) }}{{ 'x'.zfill(10 ** 10) }}", "bytes"},
      {"{{ ('a\\n' * 100000)|indent(1000) }}", "bytes"},
      {"{{ ('a' * 4000000)|list|join('-' * 1000) }}", ""},
      {"{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x "
       "%}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor "
       "%}",
       "nested"},
      {"{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% "
       "endfor %}{{ ns.x }}",
       "bytes"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ['x' * "
       "100000 ~ i] %}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + [('y' * "
       "200000)|list] %}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(x={}) %}{% for i in range(99999) %}{% set ns.x = dict(ns.x, **{'k' ~ "
       "i: 'v' * 10000}) %}{% endfor %}",
       ""},
      {"{% macro m(n) %}{{ 'x' * 1000000 }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", ""},
      {"{% for i in range(99999) %}{% for j in range(99999) %}{% macro m() %}{% endmacro %}{% "
       "endfor %}{% endfor %}",
       "steps"},
      {"{% for i in range(99999) %}{% set n = namespace(a=i) %}{% for j in range(99) %}{% set n = "
       "namespace(b=n) %}{% endfor %}{% endfor "
       "%}",
       ""},
  };
}

std::vector<Hostile> deep() {
  return {
      {repeated("{% if true %}", 5000), "nested"},
      {"{{ " + repeated("(", 5000) + repeated(")", 5000) + " }}", "nested"},
      {"{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "nested"},
      {"{{ " + repeated("-", 5000) + "1 }}", "nested"},
      {"{{ " + repeated("not ", 5000) + "1 }}", "nested"},
      {"{{ 1" + repeated("+1", 100000) + " }}", "steps"},
      {"{{ x" + repeated(".y", 100000) + " }}", "steps"},
      {"{{ x" + repeated("[0]", 100000) + " }}", "steps"},
      {"{{ 1" + repeated("|abs", 100000) + " }}", "steps"},
      {"{{ 1" + repeated(" if 1", 100000) + " }}", "steps"},
      {"{% if 1 %}" + repeated("{% elif 1 %}", 50000) + "{% endif %}", "elif"},
      {"{{ " + repeated("'a' ", 200000), "does not end"},
      {repeated("{{", 200000), "does not end"},
      {repeated("{#", 300000), "does not end"},
      {repeated("{% raw %}", 100000), "endraw"},
  };
}

// A second of processor time is the promise; with sanitizers it is several.
TEST(JinjaLimits, EveryHostileTemplateEndsSoonWithItsLine) {
  for (const auto& table : {endless(), large(), deep()})
    for (const auto& [source, part] : table) {
      const std::clock_t begin = std::clock();
      const std::string said = rendered("line one\n" + source);
      const double spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      EXPECT_TRUE(said.starts_with("error: t.jinja: line 2: "))
          << source.substr(0, 120) << " gave " << said.substr(0, 200);
      EXPECT_THAT(said, HasSubstr(part)) << source.substr(0, 120);
      EXPECT_LT(said.size(), 400u) << source.substr(0, 120);
      EXPECT_LT(spent, max_seconds) << source.substr(0, 120);
    }
}

TEST(JinjaLimits, FilesAndObjectsAreOutOfReach) {
  for (const std::string tag : {"include 'x'", "import 'x' as y", "from 'x' import y",
                                "extends 'x'", "block b", "do x", "autoescape true"})
    EXPECT_THAT(rendered("a\n{% " + tag + " %}"),
                HasSubstr("line 2: the tag {% " + tag.substr(0, tag.find(' ')) + " %}"))
        << tag;
  for (const std::string reach :
       {"''.__class__", "messages['__class__']", "''|attr('__class__')", "(''.format).__globals__",
        "{}.__init__", "namespace.__init__", "raise_exception.__globals__", "[].append",
        "{}.update", "'{0.__class__}'.format(1)"})
    EXPECT_EQ(rendered("{{ " + reach + " }}"), "") << reach;
  EXPECT_THAT(rendered("{{ ''.__class__.__mro__ }}"), HasSubstr("unsafe"));
  EXPECT_THAT(rendered("{{ [].append(1) }}"), HasSubstr("unsafe"));
  EXPECT_THAT(rendered("{{ [1]|random }}"), HasSubstr("no filter named"));
  EXPECT_THAT(rendered("{{ lipsum() }}"), HasSubstr("same each time"));
}

TEST(JinjaLimits, AnErrorNamesTheLineOfTheInnermostStatement) {
  EXPECT_EQ(
      rendered(
          "{% for i in [1] %}\n\n{% if i %}\n{{ raise_exception('no') }}\n{% endif %}{% endfor %}"),
      "error: t.jinja: line 4: no");
  EXPECT_EQ(rendered("{% macro m() %}\n{{ 1 // 0 }}\n{% endmacro %}\n\n{{ m() }}"),
            "error: t.jinja: line 2: division by zero");
}

}  // namespace
}  // namespace troupe::engine::tokenizer
