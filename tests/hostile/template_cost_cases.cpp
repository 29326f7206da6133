// Chat templates of a few hundred bytes whose every step is expensive: the cost of a step follows
// the size of what it handles.
#include <string>

#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace template_costs {
namespace {

constexpr const char* steps = "@/chat.jinja: line 1: the template takes more than 5000000 steps";
constexpr const char* memory =
    "@/chat.jinja: line 1: the template's values take more than 67108864 bytes";
constexpr const char* text_size = "bytes; at most 16777216 are allowed";

// Defines n.x: tuples nested 40 deep, each with the one before twice.
const std::string shared_halves =
    "{% set n = namespace(x=(1, 2), y=(1, 2)) %}{% for i in range(40) %}{% set n.x = (n.x, n.x) "
    "%}{% set n.y = (n.y, n.y) %}{% endfor %}";
// Defines x and y, alike but for their ends.
const std::string texts =
    "{% set x = 'a' * 8000000 %}{% set y = 'a' * 4000000 ~ 'b' %}{% set z = x ~ 'b' %}{% set w = x "
    "~ 'c' %}";

Case cost(std::string name, const std::string& text, std::string says = steps) {
  return {std::move(name),
          [text](const Folder& folder) { folder.write("chat.jinja", text); },
          "render --template @/chat.jinja",
          0,
          std::move(says),
          R"({"messages":[{"role":"user","content":"hello"}]})"};
}

// `call` a hundred thousand times.
Case repeated(std::string name, const std::string& before, const std::string& call,
              std::string says = steps) {
  return cost(std::move(name),
              before + "{% for i in range(100000) %}{% set r = " + call + " %}{% endfor %}",
              std::move(says));
}

const std::vector<Case> cases = {
    cost("SharedTuplesAsAKey", shared_halves + "{{ {n.x: 1} }}"),
    cost("SharedTuplesThatAreUnique", shared_halves + "{{ [n.x, n.y]|unique|list|length }}"),
    cost("SharedTuplesThatAreCompared", shared_halves + "{{ n.x == n.y }}", text_size),
    cost("SharedTuplesThatAreOrdered", shared_halves + "{{ n.x < n.y }}", text_size),
    cost("SharedTuplesAsABeginning", shared_halves + "{{ 'a'.startswith(n.x) }}",
         "must be a string, not tuple"),
    cost("SharedTuplesInANamespace", shared_halves + "{{ n }}"),
    cost("SharedTuplesAsJson", shared_halves + "{{ n.x|tojson }}", text_size),
    repeated("TextsThatAreFound", texts, "x.find(y)"),
    repeated("TextsThatAreFoundFromTheEnd", texts, "x.rfind('b' ~ x)"),
    repeated("TextsThatAreIn", texts, "y in x"),
    repeated("TextsThatAreCounted", texts, "x.count(y)"),
    repeated("TextsThatAreSplit", texts, "x.split(y)"),
    repeated("TextsThatAreSplitFromTheEnd", texts, "x.rsplit('b' ~ 'a' * 4000000)"),
    repeated("TextsThatAreParted", texts, "x.partition(y)"),
    repeated("TextsThatAreReplaced", texts, "x.replace(y, '')"),
    repeated("TextsThatAFilterReplaces", texts, "x|replace(y, '')"),
    repeated("TextsThatAreStripped", texts, "x.strip(y)"),
    repeated("TextsThatAreEqual", texts, "z == w"),
    repeated("TextsThatAreOrdered", texts, "z < w"),
    repeated("TextsOfWhichTheLengthIsTaken", texts, "x|length"),
    repeated("TextsAsNumbers", texts, "x|int"),
    repeated("TextsAsKeys", texts + "{% set d = {z: 1} %}", "d[w]"),
    repeated("TextsWithoutTheirKey", texts + "{% set d = {} %}", "d[w]", R"({"text":""})"),
    repeated("TextsByTheCharacter", "{% set x = 'a' * 1000000 %}", "x[0]"),
    repeated("TextsOfWhichTheWordsAreCounted", texts, "x|wordcount"),
    repeated("TextsThatAreFormatted", texts, "x.format(1)"),
    repeated("TextsThatAreTested", texts, "x is lower"),
    repeated("TextsThatEndAlike", texts, "x.endswith(x)"),
    repeated("TextsThatAreEscaped", "{% set x = '\"' * 2000000 %}", "x|e"),
    cost("TextThatGrowsWhenEscaped", "{% set x = '\"' * 8000000 %}{{ x|e }}", text_size),
    cost("TextsThatAreSorted", texts + "{{ ([x] * 1000)|sort|length }}", memory),
    cost("TextOfAMillionLines", "{{ ('\n' * 16000000).splitlines()|length }}", memory),
    cost("IndentOfAMillionLines", "{{ ('\n' * 16000000)|indent(1, true, true)|length }}",
         text_size),
    cost("TabsOfAMillion", "{{ ('\t' * 8000000).expandtabs(1000)|length }}", text_size),
    cost("JsonWithAMillionSpaces",
         "{% set n = namespace(x=[]) %}{% for i in range(90) %}{% set n.x = [n.x] %}{% endfor %}{{ "
         "n.x|tojson(indent='x' * 1000000) }}",
         text_size),
    cost("NumberWithAMillionCommas", "{{ '{:0100000000,}'.format(1) }}", text_size),
    cost("WidthThatOverflows", "{{ 'a'.center(4611686018427387905, '\xF0\x9F\x98\x80') }}",
         text_size),
    cost("CapturesInCaptures",
         "{% set x = 'x' * 8000000 %}{% macro m() %}{{ x }}{{ m() }}{% endmacro %}{{ m() }}",
         memory),
    cost("ReasonsOfMegabytes",
         texts +
             "{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = n.l + [n[x]] "
             "%}{% endfor %}"),
    cost("NamesByTheThousand",
         [] {
           std::string text;
           for (int i = 0; i < 40'000; ++i) text += "{% set a" + std::to_string(i) + " = 1 %}";
           return text + "{% for i in range(99999) %}{{ a39999 }}{{ missing }}{% endfor %}";
         }()),
    cost("UniqueOfAThousandNumbers",
         "{% for i in range(1000) %}{% set r = range(99999)|unique|list %}{% endfor %}"),
    cost("MarkedTextWithoutAnEnd", "{{ 'abcdefghijklmnop'|safe|truncate(5) }}", "ab..."),
    cost("MethodsInMethods",
         "{% set n = namespace(x=1) %}{% for i in range(99999) %}{% set n.x = [[n.x].count] %}{% "
         "endfor %}",
         "@/chat.jinja: line 1: lists and dicts nested deeper than 100"),
};

}  // namespace
}  // namespace template_costs

const std::vector<Case>& template_cost_cases() {
  return template_costs::cases;
}

}  // namespace troupe::hostile
