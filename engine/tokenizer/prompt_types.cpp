#include "engine/tokenizer/prompt_types.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"

namespace troupe::engine::tokenizer {
namespace {

enum class Bos { none, once, each_round };
enum class End {
  none,
  token,
  once
};  // behind an answer: nothing, the end token, or one end token behind the last answer

/// The texts around each message. {idx} is the number of the round, counted from 0.
struct Slots {
  std::string_view name;
  std::string_view default_system;
  std::string_view prefix;
  std::string_view before_system, after_system;
  std::string_view before_user, after_user;
  std::string_view before_answer, after_answer;
  std::string_view separator;  // before every round except the first
  Bos bos = Bos::none;
  End end = End::none;
  bool system_in_user = false;  // within the first user's text
};

constexpr std::string_view reasoning =
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about "
    "the reasoning process in the mind and then provides the user with the answer. The reasoning "
    "process and answer are enclosed within "
    "<think> </think> and <answer> </answer> tags, respectively, i.e., <think> reasoning process "
    "here </think><answer> answer here "
    "</answer>";

Slots chat_ml(std::string_view name, std::string_view default_system = "") {
  return {.name = name,
          .default_system = default_system,
          .before_system = "<|im_start|>system\n",
          .after_system = "<|im_end|>\n",
          .before_user = "<|im_start|>user\n",
          .after_user = "<|im_end|>\n<|im_start|>assistant\n",
          .after_answer = "<|im_end|>",
          .separator = "\n"};
}

Slots chat_ml_reasoning(std::string_view name, std::string_view before_user) {
  Slots out = chat_ml(name, "You are a helpful assistant.");
  out.before_user = before_user;
  return out;
}

Slots intern(std::string_view name) {
  Slots out = chat_ml(name);
  out.bos = Bos::once;
  out.after_answer = "<|im_end|>\n";
  out.separator = "";
  return out;
}

Slots with_bos(std::string_view name, std::string_view before_user, std::string_view after_user,
               End end = End::token, std::string_view after_system = "") {
  return {.name = name,
          .after_system = after_system,
          .before_user = before_user,
          .after_user = after_user,
          .bos = Bos::once,
          .end = end};
}

Slots glm(std::string_view name, std::string_view prefix, std::string_view default_system = "",
          std::string_view before_system = "<|system|>\n", End end = End::once) {
  return {.name = name,
          .default_system = default_system,
          .prefix = prefix,
          .before_system = before_system,
          .before_user = "<|user|>\n",
          .after_user = "<|assistant|>",
          .before_answer = "\n",
          .end = end};
}

std::vector<Slots> plain_types() {
  return {
      {.name = "default",
       .after_system = "\n",
       .before_user = "Human: ",
       .after_user = "\nAssistant:",
       .separator = "\n",
       .end = End::token},
      {.name = "empty"},
      with_bos("trl", "", "", End::none),
      {.name = "alpaca",
       .default_system = "Below is an instruction that describes a task. Write a response that "
                         "appropriately completes the request.\n\n",
       .before_user = "### Instruction:\n",
       .after_user = "\n\n### Response:\n",
       .separator = "\n\n",
       .end = End::token},
      {.name = "baichuan2",
       .before_user = "<reserved_106>",
       .after_user = "<reserved_107>",
       .end = End::once},
      with_bos("cpm", "<用户>", "<AI>"),
      with_bos("mistral", "[INST] ", " [/INST]"),
      with_bos("mixtral", "[INST] ", " [/INST]"),
      with_bos("deepseek2", "User: ", "\n\nAssistant:", End::token, "\n\n"),
      with_bos("deepseek2-lite", "User: ", "\n\nAssistant:", End::token, "\n\n"),
      with_bos("minicpm3", "User: ", "\n\nAssistant:", End::token, "\n\n"),
      with_bos("deepseek3", "<｜User｜>", "<｜Assistant｜>"),
  };
}

std::vector<Slots> chat_ml_types() {
  static const std::string r1 =
      cat("<|im_start|>user\n", reasoning, "Put your final answer within \\\\boxed{}. ");
  static const std::string r1_rl =
      cat("<|im_start|>user\n", reasoning, ". Put your final answer within \\boxed{}.\n");
  return {
      chat_ml("qwen", "You are a helpful assistant."),
      chat_ml("chatml"),
      chat_ml("chatml_de", "Du bist ein freundlicher und hilfsbereiter KI-Assistent."),
      chat_ml("qwen_math_r1",
              "Please reason step by step, and put your final answer within \\boxed{}."),
      chat_ml("qwen3"),
      chat_ml_reasoning("qwen_r1", r1),
      chat_ml_reasoning("qwen_r1_rl", r1_rl),
      intern("intern2"),
  };
}

std::vector<Slots> family_types() {
  return {
      {.name = "llama2",
       .before_system = "<<SYS>>\n",
       .after_system = "\n<</SYS>>\n\n",
       .before_user = "[INST] ",
       .after_user = " [/INST]",
       .bos = Bos::each_round,
       .end = End::token,
       .system_in_user = true},
      {.name = "llama3",
       .before_system = "<|start_header_id|>system<|end_header_id|>\n\n",
       .after_system = "<|eot_id|>",
       .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
       .after_user = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
       .after_answer = "<|eot_id|>",
       .bos = Bos::once},
      {.name = "gemma",
       .before_user = "<start_of_turn>user\n",
       .after_user = "<end_of_turn>\n<start_of_turn>model\n",
       .separator = "<end_of_turn>\n",
       .bos = Bos::once,
       .end = End::once},
      {.name = "chatglm2",
       .prefix = "[gMASK]sop",
       .before_user = "[Round {idx}]\n\n问：",
       .after_user = "\n\n答：",
       .separator = "\n\n",
       .end = End::once},
      glm("chatglm3", "[gMASK]sop"),
      glm("chatglm3_system", "",
          "You are ChatGLM3, a large language model trained by Zhipu.AI. Follow the user's "
          "instructions carefully. Respond using markdown.",
          "[gMASK]sop<|system|>\n"),
      glm("glm4", "[gMASK]<sop>", "", "<|system|>\n", End::once),
  };
}

const std::vector<Slots>& table() {
  static const std::vector<Slots> all = [] {
    std::vector<Slots> out = plain_types();
    for (const Slots& slots : chat_ml_types()) out.push_back(slots);
    for (const Slots& slots : family_types()) out.push_back(slots);
    return out;
  }();
  return all;
}

// A string literal of the template language, with the number of the round in place of {idx}.
std::string literal(std::string_view text) {
  std::string out = "'";
  for (; !text.empty(); text.remove_prefix(1)) {
    constexpr std::string_view mark = "{idx}";
    if (text.starts_with(mark)) {
      out += "' ~ ns.turn ~ '";
      text.remove_prefix(mark.size() - 1);
    } else if (text[0] == '\n') {
      out += "\\n";
    } else {
      if (text[0] == '\'' || text[0] == '\\') out += '\\';
      out += text[0];
    }
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

std::string head_of(const Slots& slots) {
  const std::string system =
      cat(literal(slots.before_system), " ~ ns.system ~ ", literal(slots.after_system));
  std::string out(macros);
  out += cat("{%- set ns = namespace(turn=0, system=", literal(slots.default_system),
             ", inside='') -%}");
  out +=
      "{%- for m in messages if m.role == 'system' -%}{%- set ns.system = m.content -%}{%- endfor "
      "-%}";
  out += "{%- if tools -%}{%- set ns.system = ns.system ~ tool_text(tools) -%}{%- endif -%}";
  out += cat("{{- ", slots.bos == Bos::once ? "bos_token ~ " : "", literal(slots.prefix), " }}");
  const std::string_view place = slots.system_in_user ? "{%- set ns.inside = " : "{{- ";
  return out + cat("{%- if ns.system -%}", place, system, slots.system_in_user ? " -%}" : " }}",
                   "{%- endif -%}");
}

// The result of a tool has the position of a user message; qwen3 adds tags around it.
std::string user_of(const Slots& slots) {
  std::string said = "ns.inside ~ m.content";
  if (slots.name == "qwen3")
    said =
        "(m.content if m.role == 'user' else '<tool_response>\\n' ~ m.content ~ "
        "'\\n</tool_response>')";
  std::string out = "{%- if m.role in ['user', 'tool', 'observation'] -%}";
  out += cat("{%- if ns.turn -%}{{- ", literal(slots.separator), " }}{%- endif -%}");
  out += cat("{{- ", slots.bos == Bos::each_round ? "bos_token ~ " : "", literal(slots.before_user),
             " ~ ", said, " ~ ", literal(slots.after_user), " }}");
  return out + "{%- set ns.turn = ns.turn + 1 -%}{%- set ns.inside = '' -%}";
}

std::string answer_of(const Slots& slots) {
  std::string out = "{%- elif m.role == 'assistant' -%}{%- generation -%}";
  out += cat("{{- ", literal(slots.before_answer), " ~ answer_text(m) ~ ",
             literal(slots.after_answer), " }}");
  if (slots.end == End::token) out += "{{- eos_token }}";
  if (slots.end == End::once) out += "{%- if loop.last -%}{{- eos_token }}{%- endif -%}";
  return out + "{%- endgeneration -%}{%- endif -%}";
}

std::string source_of(const Slots& slots) {
  return cat(head_of(slots), "{%- for m in messages -%}", user_of(slots), answer_of(slots),
             "{%- endfor -%}");
}

const Slots* find(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const Slots& slots) { return slots.name == name; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string_view> prompt_type_names() {
  std::vector<std::string_view> out;
  for (const Slots& slots : table()) out.push_back(slots.name);
  return out;
}

bool is_prompt_type(std::string_view name) {
  return find(name) != nullptr;
}

Result<ChatTemplate> prompt_type(std::string_view name) {
  if (const Slots* slots = find(name))
    return ChatTemplate::parse(source_of(*slots), cat("prompt type ", name));
  std::string known;
  for (const auto& one : prompt_type_names()) known += cat(known.empty() ? "" : ", ", one);
  return fail(Errc::not_found, cat("no prompt type ", quote(name), "; there are ", known));
}

Result<ChatTemplate> load_file_or_prompt_type(const std::string& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(given, ignored) && is_prompt_type(given)) return prompt_type(given);
  return ChatTemplate::load(given);
}

}  // namespace troupe::engine::tokenizer
