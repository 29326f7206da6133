#include "engine/tokenizer/prompt_slots.h"

#include <array>
#include <string_view>
#include <utility>

#include "engine/base/text.h"

namespace troupe::engine::tokenizer {
namespace {

// An expression of the template language: string literals, joined with what stands for the
// placeholders.
std::string expression(std::string_view text, std::string_view content) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> placeholders{{
      {"{{content}}", content},
      {"{{idx}}", "ns.turn"},
      {"{{bos_token}}", "bos_token"},
      {"{{eos_token}}", "eos_token"},
  }};
  std::string out = "'";
  while (!text.empty()) {
    bool replaced = false;
    for (const auto& [mark, value] : placeholders) {
      if (!text.starts_with(mark)) continue;
      out += cat("' ~ ", value, " ~ '");
      text.remove_prefix(mark.size());
      replaced = true;
      break;
    }
    if (replaced) continue;
    if (text[0] == '\'' || text[0] == '\\') out += '\\';
    out += text[0] == '\n' ? "\\n" : std::string(1, text[0]);
    text.remove_prefix(1);
  }
  return out + "'";
}

// The system text about tools and their call format (the default format of the documentation).
constexpr std::string_view macros = R"({%- macro parameter(name, it, required) -%}
{{ '  - ' ~ name ~ ' (' ~ it.type ~ (', required' if name in required else '') ~ '): ' ~ it.description }}
{%- if it.enum %}{{ ', should be one of [' ~ it.enum | join(', ') ~ ']' }}{% endif %}
{%- if 'items' in it %}{{ ', where each item should be ' ~ (it['items'].type or '') }}{% endif %}
{{- '\n' }}
{%- endmacro -%}
{%- macro tool_text(tools) -%}
{%- set ns = namespace(names=[]) -%}
{{ 'You have access to the following tools:\n' }}
{%- for tool in tools %}
{%- set it = tool.function or tool %}
{%- set ns.names = ns.names + [it.name] %}
{{- '> Tool Name: ' ~ it.name ~ '\nTool Description: ' ~ it.description ~ '\nTool Args:\n' }}
{%- for name, value in (it.parameters.properties or {}) | items %}{{ parameter(name, value, it.parameters.required or []) }}{% endfor %}
{{- '\n' }}
{%- endfor %}
{{- 'Use the following format if using a tool:\n```\nAction: tool name (one of [' ~ ns.names | join(', ') ~ ']).\nAction Input: the input to the tool, in a JSON format representing the kwargs (e.g. ```{"input": "hello world", "num_beams": 5}```).\n```\n' }}
{%- endmacro -%}
{%- macro answer_text(message) -%}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
{%- set it = call.function or call %}
{{- 'Action: ' ~ it.name ~ '\nAction Input: ' ~ (it.arguments if it.arguments is string else it.arguments | tojson) ~ '\n' }}
{%- endfor %}
{%- endmacro -%}
)";

std::string head_of(const PromptSlots& slots) {
  std::string out(macros);
  out += cat("{%- set ns = namespace(turn=0, system=", expression(slots.default_system, "''"),
             ", inside='') -%}");
  out +=
      "{%- for m in messages if m.role == 'system' -%}{%- set ns.system = m.content -%}{%- endfor "
      "-%}";
  out += "{%- if tools -%}{%- set ns.system = ns.system ~ tool_text(tools) -%}{%- endif -%}";
  out += cat("{{- ", expression(slots.prefix, "''"), " }}");
  const std::string_view place = slots.system_in_user ? "{%- set ns.inside = " : "{{- ";
  return out + cat("{%- if ns.system -%}", place, expression(slots.system, "ns.system"),
                   slots.system_in_user ? " -%}" : " }}", "{%- endif -%}");
}

std::string user_of(const PromptSlots& slots) {
  const std::string user = expression(slots.user, "(ns.inside ~ m.content)");
  std::string out = "{%- if m.role in ['user', 'tool', 'observation'] -%}";
  out += cat("{%- if ns.turn -%}{{- ", expression(slots.separator, "''"), " }}{%- endif -%}");
  if (slots.observation.empty()) {
    out += cat("{{- ", user, " }}");
  } else {
    out += cat("{%- if m.role == 'user' -%}{{- ", user, " }}{%- else -%}{{- ",
               expression(slots.observation, "m.content"), " }}{%- endif -%}");
  }
  return out + "{%- set ns.turn = ns.turn + 1 -%}{%- set ns.inside = '' -%}";
}

std::string answer_of(const PromptSlots& slots) {
  std::string out = "{%- elif m.role == 'assistant' -%}{%- generation -%}";
  out += cat("{{- ", expression(slots.assistant, "answer_text(m)"), " }}");
  if (slots.eos_at_end) out += "{%- if loop.last -%}{{- eos_token }}{%- endif -%}";
  return out + "{%- endgeneration -%}{%- endif -%}";
}

}  // namespace

std::string template_source(const PromptSlots& slots) {
  return cat(head_of(slots), "{%- for m in messages -%}", user_of(slots), answer_of(slots),
             "{%- endfor -%}");
}

}  // namespace troupe::engine::tokenizer
