#include "engine/tokenizer/prompt_slots.h"

#include <array>
#include <string_view>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {
namespace {

// An expression of the template language: string literals, joined with what stands for the
// placeholders.
std::string expression(std::string_view text, std::string_view content) {
  const std::array<std::pair<std::string_view, std::string_view>, 5> placeholders{{
      {"{{role}}", "m.role"},
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
      "{%- if messages and messages[0].role == 'system' -%}{%- set ns.system = "
      "messages[0].content -%}{%- endif -%}";
  out += "{%- if tools -%}{%- set ns.system = ns.system ~ tool_text(tools) -%}{%- endif -%}";
  out += cat("{{- ", expression(slots.prefix, "''"), " }}");
  const std::string_view place = slots.system_in_user ? "{%- set ns.inside = " : "{{- ";
  return out + cat("{%- if ns.system -%}", place, expression(slots.system, "ns.system"),
                   slots.system_in_user ? " -%}" : " }}", "{%- endif -%}");
}

constexpr std::array<RoleFrame, 2> frames{
    {{"<|im_start|>assistant\n", "<|im_start|>{{role}}\n{{content}}<|im_end|>\n"},
     {"<|start_header_id|>assistant<|end_header_id|>\n\n",
      "<|start_header_id|>{{role}}<|end_header_id|>\n\n{{content}}<|eot_id|>"}}};

// The text without what begins the answer.
std::string_view without_answer(std::string_view text, const RoleFrame* frame) {
  if (frame && text.ends_with(frame->answer)) text.remove_suffix(frame->answer.size());
  return text;
}

// The first message has been written if it is the system's.
constexpr std::string_view not_head = "not (loop.first and m.role == 'system')";

// The messages of users and tools, in each round behind the separator.
std::string user_of(const PromptSlots& slots, const RoleFrame* frame) {
  const std::string user = expression(without_answer(slots.user, frame), "(ns.inside ~ m.content)");
  std::string out = "{%- if m.role in ['user', 'tool', 'observation'] -%}";
  if (!frame)
    out += cat("{%- if ns.turn -%}{{- ", expression(slots.separator, "''"), " }}{%- endif -%}");
  if (slots.observation.empty()) {
    out += cat("{{- ", user, " }}");
  } else {
    out +=
        cat("{%- if m.role == 'user' -%}{{- ", user, " }}{%- else -%}{{- ",
            expression(without_answer(slots.observation, frame), "m.content"), " }}{%- endif -%}");
  }
  return out + "{%- set ns.turn = ns.turn + 1 -%}{%- set ns.inside = '' -%}";
}

std::string answer_of(const PromptSlots& slots, const RoleFrame* frame) {
  std::string out = "{%- elif m.role == 'assistant' -%}";
  if (frame) out += cat("{{- ", expression(frame->answer, "''"), " }}");
  out += cat("{%- generation -%}{{- ", expression(slots.assistant, "answer_text(m)"), " }}");
  if (slots.eos_at_end) out += "{%- if loop.last -%}{{- eos_token }}{%- endif -%}";
  return out + "{%- endgeneration -%}";
}

std::string other_of(const PromptSlots& slots, const RoleFrame* frame) {
  if (frame) return cat("{%- else -%}{{- ", expression(frame->message, "m.content"), " }}");
  return cat("{%- else -%}{{- raise_exception(",
             expression(cat("the prompt type ", slots.name,
                            " has no place for a message of the "
                            "role {{role}}"),
                        "''"),
             " ~ (' that is not the first' if m.role == 'system' else '')) }}");
}

// Messages that are framed stand one behind the other; the begin of an answer is written before
// each answer, and at the end unless the last message is one.
std::string between(const PromptSlots& slots) {
  return cat("{%- if loop.previtem is defined and loop.previtem.role == 'assistant' -%}{{- ",
             expression(slots.separator, "''"), " }}{%- endif -%}");
}

std::string end_of(const PromptSlots& slots, const RoleFrame& frame) {
  return cat("{%- if messages and messages[-1].role == 'assistant' -%}",
             "{%- if add_generation_prompt -%}{{- ", expression(slots.separator, "''"), " ~ ",
             expression(frame.answer, "''"), " }}{%- endif -%}",
             "{%- elif messages and not (messages | length == 1 and messages[0].role == 'system') "
             "-%}{{- ",
             expression(frame.answer, "''"), " }}{%- endif -%}");
}

}  // namespace

const RoleFrame* role_frame(const PromptSlots& slots) {
  for (const RoleFrame& frame : frames)
    if (std::string_view(slots.user).ends_with(frame.answer)) return &frame;
  return nullptr;
}

std::string template_source(const PromptSlots& slots) {
  const RoleFrame* frame = role_frame(slots);
  return cat(head_of(slots), "{%- for m in messages -%}{%- if ", not_head, " -%}",
             frame ? between(slots) : "", user_of(slots, frame), answer_of(slots, frame),
             other_of(slots, frame), "{%- endif -%}{%- endif -%}{%- endfor -%}",
             frame ? end_of(slots, *frame) : "");
}

}  // namespace troupe::engine::tokenizer
