// Chat templates that never end, grow without bound, or reach for what is not theirs.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace template_files {
namespace {

constexpr const char* render = "render --template @/chat.jinja";
constexpr const char* talk = R"({"messages":[{"role":"user","content":"hello"}]})";

auto chat(std::string text) {
  return [text = std::move(text)](const Folder& folder) { folder.write("chat.jinja", text); };
}

std::string times(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

const std::vector<Case> cases = {
    {"LoopOfABillion", chat("{% for i in range(1000000000) %}x{% endfor %}"), render, 0,
     "@/chat.jinja: line 1: a range of more than 100000 items", talk},
    {"LoopsInLoops",
     chat("{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% "
          "endfor %}{% endfor %}{% endfor %}"),
     render, 0, "@/chat.jinja: line 1: the template takes more than 5000000 steps", talk},
    {"RangeOfStepZero", chat("{% for i in range(0, 9, 0) %}x{% endfor %}"), render, 0,
     "@/chat.jinja: line 1: range() arg 3 must not be zero", talk},
    {"MacroThatCallsItself", chat("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), render, 0,
     "@/chat.jinja: line 1: the template recurses too deeply", talk},
    {"LoopThatCallsItself",
     chat("{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}"), render, 0,
     "@/chat.jinja: line 1: the template recurses too deeply", talk},
    {"NamespaceThatHoldsItself",
     chat("{% set n = namespace() %}{% set n.a = n %}{{ n }}{{ n.a.a.a == n }}{{ [n]|tojson }}"),
     render, 0, "@/chat.jinja: line 1: Object of type Namespace is not JSON serializable", talk},
    {"TextThatDoubles",
     chat("{% set n = namespace(t='x') %}{% for i in range(64) %}{% set n.t = n.t + n.t %}{% "
          "endfor %}{{ n.t }}"),
     render, 0, "@/chat.jinja: line 1: a text of 33554432 bytes; at most 16777216 are allowed",
     talk},
    {"ListThatDoubles",
     chat("{% set n = namespace(t=[1]) %}{% for i in range(64) %}{% set n.t = n.t + n.t %}{% "
          "endfor %}{{ n.t|length }}"),
     render, 0, "@/chat.jinja: line 1: a list of 2097152 items; at most 1048576 are allowed", talk},
    {"LaughsInABillion",
     chat("{% set a = ['ha'] * 1000 %}{% set b = [a] * 1000 %}{% set c = [b] * 1000 %}{{ c }}"),
     render, 0, "@/chat.jinja: line 1: a text of 16777218 bytes; at most 16777216 are allowed",
     talk},
    {"TextTimesABillion", chat("{{ 'x' * 1000000000000 }}"), render, 0,
     "@/chat.jinja: line 1: a text of 1000000000000 bytes; at most 16777216 are allowed", talk},
    {"NumberWithoutEnd", chat("{{ 10 ** 10 ** 10 }}"), render, 0,
     "@/chat.jinja: line 1: an integer beyond 64 bits", talk},
    {"NumberThatOverflows", chat("{{ 9223372036854775807 + 1 }}"), render, 0,
     "@/chat.jinja: line 1: an integer beyond 64 bits", talk},
    {"DivisionByZero", chat("{{ 1 // 0 }}"), render, 0, "@/chat.jinja: line 1: division by zero",
     talk},
    {"SmallestNumberDivided", chat("{{ (0 - 9223372036854775807 - 1) // (0 - 1) }}"), render, 0,
     "@/chat.jinja: line 1: an integer beyond 64 bits", talk},
    {"IndentOfABillion", chat("{{ 'a\nb' | indent(1000000000) }}"), render, 0,
     "a text of 1000000000 bytes; at most 16777216 are allowed", talk},
    {"CentredInABillion", chat("{{ 'a' | center(1000000000000) }}"), render, 0,
     "@/chat.jinja: line 1: a text of 1000000000000 bytes; at most 16777216 are allowed", talk},
    {"FormatOfABillion", chat("{{ '%1000000000d' | format(1) }}"), render, 0,
     "@/chat.jinja: line 1: a width or precision that is too large", talk},
    {"ReplacedByMore",
     chat("{% set n = namespace(t='aaaaaaaa') %}{% for i in range(20) %}{% set n.t = "
          "n.t.replace('a', 'aaaaaaaa') %}{% endfor %}"),
     render, 0, "@/chat.jinja: line 1: the template takes more than 5000000 steps", talk},
    {"BracketsByTheThousand",
     chat("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}"), render, 3,
     "@/chat.jinja: line 1: expressions nested deeper than 100", talk},
    {"IfsByTheThousand", chat(times("{% if true %}", 100'000)), render, 3,
     "@/chat.jinja: 1300000 bytes, at most 1048576 are read", talk},
    {"NotsByTheThousand", chat("{{ " + times("not ", 100'000) + "1 }}"), render, 3,
     "@/chat.jinja: line 1: expressions nested deeper than 100", talk},
    {"DotsByTheThousand", chat("{{ a" + times(".a", 100'000) + " }}"), render, 3,
     "@/chat.jinja: line 1: an expression of more than 600 steps", talk},
    {"PlusesByTheThousand", chat("{{ 1" + times("+1", 100'000) + " }}"), render, 3,
     "@/chat.jinja: line 1: an expression of more than 600 steps", talk},
    {"FiltersByTheThousand", chat("{{ 1" + times("|string", 100'000) + " }}"), render, 3,
     "@/chat.jinja: line 1: an expression of more than 600 steps", talk},
    {"ElifsByTheThousand", chat("{% if a %}" + times("{% elif a %}", 100'000) + "{% endif %}"),
     render, 3, "@/chat.jinja: 1200021 bytes, at most 1048576 are read", talk},
    {"BlockNotClosed", chat("{% for m in messages %}"), render, 3,
     "@/chat.jinja: line 1: the template ends where {% endfor %} is missing", talk},
    {"TagNotClosed", chat("{{ messages"), render, 3,
     "@/chat.jinja: line 1: an expression {{ that does not end", talk},
    {"FilterUnknown", chat("{{ 1 | launch }}"), render, 3,
     "@/chat.jinja: line 1: no filter named \"launch\"", talk},
    {"TemplateThatIncludes", chat("{% include '/etc/passwd' %}"), render, 3,
     "@/chat.jinja: line 1: the tag {% include %} is not one that chat templates have here", talk},
    {"TemplateThatReachesForClasses", chat("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
     render, 0, "@/chat.jinja: line 1: access to attribute '__class__' of 'str' object is unsafe.",
     talk},
    {"TemplateThatRaises", chat("{{ raise_exception('no \x1b[2J') }}"), render, 0,
     "@/chat.jinja: line 1: no \\u001b[2J", talk},
    {"TemplateNotUtf8", chat("{{ '\xff' }}"), render, 3, "@/chat.jinja: not UTF-8 at byte 4", talk},
    {"TemplateOfTwoMegabytes",
     [](const Folder& f) { f.repeat("chat.jinja", "", std::string(1024, 'x'), 2048, ""); }, render,
     3, "@/chat.jinja: 2097152 bytes, at most 1048576 are read", talk},
    {"TemplateADirectory", [](const Folder& f) { f.directory("chat.jinja"); }, render, 4,
     "@/chat.jinja: neither chat_template.jinja nor tokenizer_config.json is there; a chat needs a "
     "template",
     talk},
    {"TemplateANumber",
     [](const Folder& f) { f.model().set("tokenizer_config.json", "chat_template", 7); },
     "render --model @", 4,
     "@/tokenizer_config.json: no \"chat_template\"; a chat needs one, or give a template file",
     talk},
    {"MessagesAText", chat("{{ messages }}"), render, 0, "messages: expected a list of messages",
     R"({"messages":"hello"})"},
};

}  // namespace
}  // namespace template_files

const std::vector<Case>& template_cases() {
  return template_files::cases;
}

}  // namespace troupe::hostile
