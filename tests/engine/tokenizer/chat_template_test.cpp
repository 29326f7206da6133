// Chat templates against renderings made with Jinja2 itself, and the language against what Jinja2
// does.
#include "engine/tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/engine/tokenizer/test_data.h"

namespace troupe::engine::tokenizer {
namespace {

/// The template that a row of renders.jsonl names.
Result<ChatTemplate> named_template(const std::string& name) {
  constexpr std::string_view prefix = "tokenizer_config:";
  if (!name.starts_with(prefix))
    return ChatTemplate::load(data + "/chat_templates/" + name + ".jinja");
  const std::string folder = name.substr(prefix.size());
  return ChatTemplate::load(data + (folder == "digit-completion" ? "/models/" : "/tokenizers/") +
                            folder);
}

std::optional<std::string> optional_text(const Json& row, std::string_view key) {
  const Json* value = row.find(key);
  return value && value->is_string() ? std::optional(value->string()) : std::nullopt;
}

RenderInput input_of(const Json& row, const Json& conversations) {
  RenderInput input;
  const Json& conversation = *conversations.find(row.find("conversation")->string());
  input.messages = *conversation.find("messages");
  if (const Json* tools = conversation.find("tools")) input.tools = *tools;
  if (const Json* documents = conversation.find("documents")) input.documents = *documents;
  input.add_generation_prompt = row.find("add_generation_prompt")->boolean();
  for (const char* name : {"bos_token", "eos_token"})
    if (const auto text = optional_text(row, name)) input.tokens.emplace(name, *text);
  input.kwargs = *row.find("kwargs");
  input.now = "2025-01-15T12:00:00";
  return input;
}

TEST(ChatTemplate, RendersWhatJinja2Renders) {
  const Json conversations = value_or_throw(read_json(data + "/expected/chat/conversations.json"));
  const std::string rows = value_or_throw(read_file(data + "/expected/chat/renders.jsonl"));
  int seen = 0;
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t end = std::min(rows.find('\n', at), rows.size());
    const Json row = value_or_throw(parse_json(rows.substr(at, end - at), "renders.jsonl"));
    at = end + 1;
    ++seen;
    SCOPED_TRACE(cat(row.find("template")->string(), " ", row.find("conversation")->string()));
    const auto chat = named_template(row.find("template")->string());
    ASSERT_TRUE(chat) << chat.error().what;
    const auto rendered = chat->render(input_of(row, conversations));
    if (row.find("error")) {
      EXPECT_FALSE(rendered) << rendered->text;
      continue;
    }
    ASSERT_TRUE(rendered) << rendered.error().what;
    EXPECT_EQ(rendered->text, row.find("expected")->string());
    if (const Json* spans = row.find("assistant_spans")) {
      Json::Array found;
      for (const auto& [begin, stop] : rendered->assistant_spans)
        found.push_back(
            Json::Array{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(stop)});
      EXPECT_EQ(Json(found), *spans);
      EXPECT_TRUE(chat->has_generation());
    }
  }
  EXPECT_EQ(seen, 144);
}

/// The text of a template, or "error: ..." with what it says.
std::string shown(const std::string& source, const std::string& kwargs = "{}") {
  const auto chat = ChatTemplate::parse(source, "test");
  if (!chat) return "error: " + chat.error().what;
  RenderInput input;
  input.kwargs = value_or_throw(parse_json(kwargs, "kwargs"));
  input.now = "2025-01-15T12:00:00";
  const auto rendered = chat->render(input);
  return rendered ? rendered->text : "error: " + rendered.error().what;
}

// Output of Jinja2 3.1, with which each line was compared.
TEST(Jinja, PrintsWhatJinja2Prints) {
  const std::map<std::string, std::string> cases = {
      {"{{ 7 // -2 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 1 / 4 }} {{ -2 ** 2 }}", "-4 -2 1024 0.25 4"},
      {"{{ 1.0 }} {{ 1e20 }} {{ 0.00001 }} {{ 3 * 'ab' }} {{ [1, 'a', None, true] }}",
       "1.0 1e+20 1e-05 ababab [1, 'a', None, True]"},
      {"{{ {'a': [1, (2,)], 'b': {}} }}", "{'a': [1, (2,)], 'b': {}}"},
      {"{{ 'a' ~ 1 ~ none }} {{ 'x' if false }}|", "a1None |"},
      {"{{ 'héllo'[1] }} {{ 'héllo'[::-1] }} {{ [1,2,3,4][-3:-1] }} {{ 'héllo'|length }}",
       "é olléh [2, 3] 5"},
      {"{{ 1 < 2 < 3 }} {{ 1 in [1] }} {{ 'b' not in 'abc' }} {{ not 1 == 2 }}",
       "True True False True"},
      {"{% for a, b in {'x': 1, 'y': 2}.items() %}{{ loop.index }}{{ a }}{{ b }}{{ ',' if not "
       "loop.last }}{% endfor %}",
       "1x1,2y2"},
      {"{% for i in range(5) if i is odd %}{{ i }}{{ loop.length }}{% else %}none{% endfor %}",
       "1232"},
      {"{% for i in [] %}x{% else %}none{% endfor %}", "none"},
      {"{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break "
       "%}{% endif %}{{ i }}{% endfor %}",
       "013"},
      {"{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor "
       "%}{{ ns.n }}",
       "3"},
      {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", "1"},
      {"{% macro m(a, b='B') %}<{{ a }}{{ b }}{{ varargs }}{{ kwargs }}>{% endmacro %}{{ m(1) }}{{ "
       "m(1, 2, 3, z=4) }}",
       "<1B(){}><12(3,){'z': 4}>"},
      {"{% macro m() %}[{{ caller(2) }}]{% endmacro %}{% call(x) m() %}{{ x * 2 }}{% endcall %}",
       "[4]"},
      {"{% set x %}a{{ 1 }}{% endset %}{{ x|upper }}{% filter upper %}b{% endfilter %}", "A1B"},
      {"{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", "3False"},
      {"{% for x in [[1, [2]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x "
       "}}{% endif %}{% endfor %}",
       "(1(2))"},
      {"{{ [3,1,2]|sort|join(',') }} {{ ['b','A']|sort }} {{ [1,2,3]|sum }} {{ [1,2,2]|unique|list "
       "}}",
       "1,2,3 ['A', 'b'] 6 [1, 2]"},
      {"{{ [{'a':1},{'a':2}]|map(attribute='a')|list }} {{ [{'a':1},{'b':2}]|selectattr('a', "
       "'defined')|list }}",
       "[1, 2] [{'a': 1}]"},
      {"{{ ['a','b']|map('upper')|join }} {{ [1,2,3]|reject('odd')|list }} {{ 'abc'|reverse }} {{ "
       "[1,2]|first }}{{ [1,2]|last }}",
       "AB [2] cba 12"},
      {"{{ x|default('d') }} {{ ''|default('e', true) }} {{ none|default('f') }}", "d e None"},
      {"{{ '  a b '|trim }}|{{ 'a-b c'|title }}|{{ 'aXbX'|replace('X', '-', 1) }}|{{ "
       "'a\nb'|indent(2) }}",
       "a b|A-B C|a-bX|a\n  b"},
      {"{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b "
       "c'.rsplit(' ', 1) }}",
       "['a', 'b', '', 'c'] ['a', 'b'] ['a', 'b c'] ['a b', 'c']"},
      {"{{ 'xxaxx'.strip('x') }} {{ 'abc'.startswith(('z', 'a')) }} {{ 'abc'.find('c') }} {{ "
       "'%s=%05.1f' % ('a', 2) }} {{ "
       "'{}-{1}'.format(1, 2) if false }}",
       "a True 2 a=002.0 "},
      {"{{ {'b': 'é', 'a': [1.5, none, true]}|tojson }}",
       "{\"b\": \"é\", \"a\": [1.5, null, true]}"},
      {"{{ {'b': 1, 'a': []}|tojson(indent=2, sort_keys=true) }}",
       "{\n  \"a\": [],\n  \"b\": 1\n}"},
      {"{{ 'é<>'|tojson(ensure_ascii=true) }} {{ 'a<b'|e }}", "\"\\u00e9<>\" a&lt;b"},
      {"{{ strftime_now('%d %b %Y') }}", "15 Jan 2025"},
      {"{{ x }}[{{ x.y if x is not undefined else '' }}]{{ ''.__class__ }}{{ {}.a }}{{ {}['a'] "
       "}}{{ [1][5] }}",
       "[]"},
      {"{{ {'items': 1}['items'] }} {{ {'a': 1}.get('b', 2) }} {{ {'a': 1}.keys()|list }}",
       "1 2 ['a']"},
      {"{{ 5 is divisibleby 5 }} {{ 'a' is string }} {{ {} is mapping }} {{ 1 is sameas 1 }} {{ "
       "none is none }} {{ 1 is in [1] }}",
       "True True True True True True"},
      {"{{ 'it''s' }}{{ \"\\u00e9\\x41\\n\" }}{{ 1_000 }}", "itséA\n1000"},
      {"{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|slice(2)|list }}",
       "[[1, 2], [3, 4], [5]] [[1, 2], [3]]"},
      {"{% for k, v in [{'r':'a','n':1},{'r':'b','n':2},{'r':'a','n':3}]|groupby('r') %}{{ k }}{{ "
       "v|length }}{% endfor %}",
       "a2b1"},
      {"{{ '3'|int + '2.5'|float }} {{ 2.5|round }} {{ 3.14159|round(2) }} {{ -3|abs }} {{ "
       "'x'|int(7) }}",
       "5.5 2.0 3.14 3 7"},
      {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{{ true }}{{ True and 'yes' or 'no' }}", "12Trueyes"},
      {"{% raw %}{{ x }}{% endraw %}{# gone #}!", "{{ x }}!"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(shown(source), expected) << source;
}

TEST(Jinja, TreatsWhiteSpaceAsTransformersSetsItUp) {
  EXPECT_EQ(shown("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(shown("a \n {%- if true -%} \n b {%- endif %}\nc"), "abc");
  EXPECT_EQ(shown("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(shown("  {{ 1 }}\n  {{- 2 -}}  \n 3"), "  123");
  EXPECT_EQ(shown("a\n  {# note #}\nb"), "a\nb");
  EXPECT_EQ(shown("a\r\nb\rc"), "a\nb\nc");
  EXPECT_EQ(shown("x {% if true %}\ny{% endif %}"), "x y");
}

TEST(Jinja, StatesWhatIsWrong) {
  const std::map<std::string, std::string> cases = {
      {"{{ a.b }}", "'a' is undefined"},
      {"{{ a + 1 }}", "'a' is undefined"},
      {"{{ {}.a.b }}", "has no attribute 'a'"},
      {"{{ raise_exception('no system role') }}", "no system role"},
      {"{{ 1 / 0 }}", "division by zero"},
      {"{{ 'a' + 1 }}", "can only concatenate str"},
      {"{{ [].append(1) }}", "unsafe"},
      {"{{ ''.__class__.__mro__ }}", "unsafe"},
      {"{{ 1 if x is defined if y }}", "expected"},
      {"{{ messages[:2] }}", "subscriptable"},
      {"{{ 1|nosuch }}", "nosuch"},
      {"{{ 1 is nosuch }}", "nosuch"},
      {"a\nb {% if %}", "line 2"},
      {"{% for x in y %}", "endfor"},
      {"{% endif %}", "endif"},
      {"{{ 'a }}", "does not end"},
      {"{{ (1 }}", "unexpected"},
      {"{% include 'x' %}", "include"},
      {"{% break %}", "outside a loop"},
      {"{{ x|tojson }}", "not JSON serializable"},
      {"{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"{% for a, b in [[1]] %}{% endfor %}", "unpack"},
  };
  for (const auto& [source, part] : cases) {
    const std::string found = shown(source);
    EXPECT_TRUE(found.starts_with("error: test: ")) << source << " gave " << found;
    EXPECT_NE(found.find(part), std::string::npos) << source << " gave " << found;
  }
}

TEST(Jinja, StopsHostileTemplates) {
  const auto repeated = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const std::vector<std::string> hostile = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x "
      "%}{% endfor %}{{ ns.x|length }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}{{ ns.x }}",
      "{{ 'a' * 999999999999 }}",
      "{{ [1] * 999999999 }}",
      "{{ 'x'|center(9999999999) }}",
      "{{ range(99999999999) }}",
      repeated("{% if true %}", 5000),
      "{{ " + repeated("(", 5000),
      "{{ " + repeated("-", 5000) + "1 }}",
      "{{ " + repeated("not ", 5000) + "1 }}",
      "{{ 1" + repeated("+1", 100000) + " }}",
      "{{ x" + repeated(".y", 100000) + " }}",
      "{{ 1" + repeated("|abs", 100000) + " }}",
      "{{ 1" + repeated(" if 1", 100000) + " }}",
      "{% if 1 %}" + repeated("{% elif 1 %}", 50000) + "{% endif %}",
  };
  for (const std::string& source : hostile)
    EXPECT_TRUE(shown(source).starts_with("error: ")) << source.substr(0, 80);
}

TEST(Jinja, LetsNamespacesHoldThemselves) {
  EXPECT_EQ(shown("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me is defined }}"),
            "True");
  EXPECT_EQ(shown("{% set ns = namespace() %}{% for i in range(99999) %}{% if i % 1000 == 0 %}{% "
                  "set ns.p = namespace(p=ns) %}{% endif "
                  "%}{% endfor %}ok"),
            "ok");
}

TEST(ChatTemplate, CountsSpansInCodePoints) {
  const auto chat = value_or_throw(ChatTemplate::parse(
      "é{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}|{% endfor %}",
      "test"));
  RenderInput input;
  input.messages = value_or_throw(
      parse_json(R"([{"content": "日本"}, {"content": ""}, {"content": "abc"}])", "test"));
  const auto rendered = value_or_throw(chat.render(input));
  EXPECT_EQ(rendered.text, "é日本||abc|");
  using Spans = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(rendered.assistant_spans, (Spans{{1, 3}, {4, 4}, {5, 8}}));
}

TEST(ChatTemplate, IsLoadedFromAFolder) {
  EXPECT_TRUE(ChatTemplate::load(data + "/tokenizers/qwen2.5"));
  EXPECT_TRUE(ChatTemplate::load(data + "/tokenizers/qwen2.5/tokenizer_config.json"));
  const auto none = ChatTemplate::load(data + "/models/tinystories-656k");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::not_found);
  EXPECT_NE(none.error().what.find("chat_template"), std::string::npos);
}

}  // namespace
}  // namespace troupe::engine::tokenizer
