#include "engine/tokenizer/prompt_types.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/tokenizer/prompt_slots.h"
#include "engine/tokenizer/prompt_type_file.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::string_view reasoning =
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about "
    "the reasoning process in the mind and then provides the user with the answer. The reasoning "
    "process and answer are enclosed within "
    "<think> </think> and <answer> </answer> tags, respectively, i.e., <think> reasoning process "
    "here </think><answer> answer here "
    "</answer>";

PromptSlots chat_ml(std::string name, std::string default_system = "") {
  return {.name = std::move(name),
          .default_system = std::move(default_system),
          .system = "<|im_start|>system\n{{content}}<|im_end|>\n",
          .user = "<|im_start|>user\n{{content}}<|im_end|>\n<|im_start|>assistant\n",
          .observation = "<|im_start|>tool\n{{content}}<|im_end|>\n<|im_start|>assistant\n",
          .assistant = "{{content}}<|im_end|>",
          .separator = "\n"};
}

PromptSlots chat_ml_reasoning(std::string name, std::string_view before_content) {
  PromptSlots out = chat_ml(std::move(name), "You are a helpful assistant.");
  out.user =
      cat("<|im_start|>user\n", before_content, "{{content}}<|im_end|>\n<|im_start|>assistant\n");
  return out;
}

// MindSpeed-RL's: the system text describes the one tool of the task.
PromptSlots chat_ml_tool(std::string name, std::string_view tool) {
  PromptSlots out = chat_ml(std::move(name));
  out.default_system =
      cat("You are a helpful assistant.\n\n# Tools\n\nYou may call one or more functions to assist "
          "with the user query.\n\nYou are provided with function signatures within "
          "<tools></tools> XML tags:\n<tools>\n{\"type\": \"function\", \"function\": ",
          tool,
          "}\n</tools>\n\nFor each function call, return a json object with function name and "
          "arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": "
          "<function-name>, \"arguments\": <args-json-object>}\n</tool_call>");
  out.user =
      "<|im_start|>user\n{{content}}<|im_end|>\nThe answer format must be: \\boxed{'The final "
      "answer goes here.'}\n<|im_start|>assistant\n";
  return out;
}

// Each answer ends with a newline, the last one too.
PromptSlots chat_ml_lines(std::string name) {
  PromptSlots out = chat_ml(std::move(name));
  out.observation.clear();
  out.assistant = "{{content}}<|im_end|>\n";
  out.separator = "";
  return out;
}

PromptSlots intern(std::string name) {
  PromptSlots out = chat_ml_lines(std::move(name));
  out.prefix = "{{bos_token}}";
  return out;
}

PromptSlots qwen3(std::string name) {
  PromptSlots out = chat_ml_lines(std::move(name));
  out.observation =
      "<|im_start|>user\n<tool_response>\n{{content}}\n</tool_response><|im_end|>\n"
      "<|im_start|>assistant\n";
  return out;
}

PromptSlots with_bos(std::string name, std::string user, std::string system = "{{content}}") {
  return {.name = std::move(name),
          .prefix = "{{bos_token}}",
          .system = std::move(system),
          .user = std::move(user)};
}

PromptSlots glm(std::string name, std::string prefix,
                std::string system = "<|system|>\n{{content}}") {
  return {.name = std::move(name),
          .prefix = std::move(prefix),
          .system = std::move(system),
          .user = "<|user|>\n{{content}}<|assistant|>",
          .observation = "<|observation|>\n{{content}}<|assistant|>",
          .assistant = "\n{{content}}",
          .eos_at_end = true};
}

PromptSlots chatglm3_system() {
  PromptSlots out = glm("chatglm3_system", "", "[gMASK]sop<|system|>\n{{content}}");
  out.default_system =
      "You are ChatGLM3, a large language model trained by Zhipu.AI. Follow the user's "
      "instructions carefully. Respond using markdown.";
  return out;
}

std::vector<PromptSlots> plain_types() {
  static const std::string deepseek = "User: {{content}}\n\nAssistant:";
  PromptSlots trl = with_bos("trl", "{{content}}");
  trl.assistant = "{{content}}";
  return {
      {.name = "default",
       .system = "{{content}}\n",
       .user = "Human: {{content}}\nAssistant:",
       .separator = "\n"},
      {.name = "empty", .assistant = "{{content}}"},
      trl,
      {.name = "hunyuan",
       .default_system = "You are a helpful assistant.",
       .assistant = "{{content}}"},
      {.name = "alpaca",
       .default_system = "Below is an instruction that describes a task. Write a response that "
                         "appropriately completes the request.\n\n",
       .user = "### Instruction:\n{{content}}\n\n### Response:\n",
       .separator = "\n\n"},
      {.name = "baichuan2",
       .user = "<reserved_106>{{content}}<reserved_107>",
       .assistant = "{{content}}",
       .eos_at_end = true},
      with_bos("cpm", "<用户>{{content}}<AI>"),
      with_bos("mistral", "[INST] {{content}} [/INST]"),
      with_bos("mixtral", "[INST] {{content}} [/INST]"),
      with_bos("deepseek2", deepseek, "{{content}}\n\n"),
      with_bos("deepseek2-lite", deepseek, "{{content}}\n\n"),
      with_bos("minicpm3", deepseek, "{{content}}\n\n"),
      with_bos("deepseek3", "<｜User｜>{{content}}<｜Assistant｜>"),
      with_bos("deepseek3_r1", cat(reasoning,
                                   ". Put your final answer within \\boxed{}. "
                                   "<｜User｜>{{content}}<｜Assistant｜>")),
  };
}

std::vector<PromptSlots> chat_ml_types() {
  return {
      chat_ml("qwen", "You are a helpful assistant."),
      chat_ml("chatml"),
      chat_ml("chatml_de", "Du bist ein freundlicher und hilfsbereiter KI-Assistent."),
      chat_ml("qwen_math_r1",
              "Please reason step by step, and put your final answer within \\boxed{}."),
      qwen3("qwen3"),
      chat_ml_reasoning("qwen_r1", cat(reasoning, "Put your final answer within \\\\boxed{}. ")),
      chat_ml_reasoning("qwen_r1_rl",
                        cat(reasoning, ". Put your final answer within \\boxed{}.\n")),
      chat_ml_tool("qwen_retool",
                   R"({"name": "code_interpreter", "description": "A tool for executing code.", )"
                   R"("parameters": {"type": "object", "properties": {"code": {"type": "string", )"
                   R"("description": "The code to execute."}}, "required": ["code"]}})"),
      chat_ml_tool(
          "qwen_search_tool",
          R"({"name": "search", "description": "Searches the web for relevant information based )"
          R"(on the given query.", "parameters": {"type": "object", "properties": {"query_list": )"
          R"({"type": "array", "item": {"type": "string"}, "description": "A list of )"
          R"(fully-formed semantic queries. The tool will return search results for each )"
          R"(query."}}, "required": ["query_list"]}})"),
      intern("intern2"),
  };
}

std::vector<PromptSlots> family_types() {
  static const std::string llama3 = "<|start_header_id|>", behind = "<|end_header_id|>\n\n",
                           answer = cat("<|eot_id|>", llama3, "assistant", behind);
  return {
      {.name = "llama2",
       .system = "<<SYS>>\n{{content}}\n<</SYS>>\n\n",
       .user = "{{bos_token}}[INST] {{content}} [/INST]",
       .system_in_user = true},
      {.name = "llama3",
       .prefix = "{{bos_token}}",
       .system = cat(llama3, "system", behind, "{{content}}<|eot_id|>"),
       .user = cat(llama3, "user", behind, "{{content}}", answer),
       .observation = cat(llama3, "tool", behind, "{{content}}", answer),
       .assistant = "{{content}}<|eot_id|>"},
      {.name = "gemma",
       .prefix = "{{bos_token}}",
       .user = "<start_of_turn>user\n{{content}}<end_of_turn>\n<start_of_turn>model\n",
       .observation = "<start_of_turn>tool\n{{content}}<end_of_turn>\n<start_of_turn>model\n",
       .assistant = "{{content}}",
       .separator = "<end_of_turn>\n",
       .eos_at_end = true},
      {.name = "chatglm2",
       .prefix = "[gMASK]sop",
       .user = "[Round {{idx}}]\n\n问：{{content}}\n\n答：",
       .assistant = "{{content}}",
       .separator = "\n\n",
       .eos_at_end = true},
      glm("chatglm3", "[gMASK]sop"),
      chatglm3_system(),
      glm("glm4", "[gMASK]<sop>"),
  };
}

const std::vector<PromptSlots>& table() {
  static const std::vector<PromptSlots> all = [] {
    std::vector<PromptSlots> out = plain_types();
    for (PromptSlots& slots : chat_ml_types()) out.push_back(std::move(slots));
    for (PromptSlots& slots : family_types()) out.push_back(std::move(slots));
    return out;
  }();
  return all;
}

const PromptSlots* find(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &PromptSlots::name);
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string_view> prompt_type_names() {
  std::vector<std::string_view> out;
  for (const PromptSlots& slots : table()) out.push_back(slots.name);
  return out;
}

bool is_prompt_type(std::string_view name) {
  return find(name) != nullptr;
}

Result<ChatTemplate> prompt_type(std::string_view name) {
  if (const PromptSlots* slots = find(name))
    return ChatTemplate::parse(template_source(*slots), cat("prompt type ", name));
  std::string known;
  for (const auto& one : prompt_type_names()) known += cat(known.empty() ? "" : ", ", one);
  return fail(Errc::not_found, cat("no prompt type ", quote(name), "; there are ", known));
}

std::string template_file_of(const std::string& given) {
  std::error_code ignored;
  if (std::filesystem::exists(given, ignored)) return given;
  const auto hash = given.rfind('#');
  if (hash != std::string::npos) return given.substr(0, hash);
  return is_prompt_type(given) ? "" : given;
}

Result<ChatTemplate> load_file_or_prompt_type(const std::string& given) {
  const std::string file = template_file_of(given);
  if (file.empty()) return prompt_type(given);
  if (file == given) return ChatTemplate::load(given);
  const std::string name = given.substr(file.size() + 1);
  if (file.ends_with("tokenizer_config.json")) return ChatTemplate::load(file, name);
  const auto slots = read_prompt_type(file, name);
  RETURN_IF_ERROR(slots);
  return ChatTemplate::parse(template_source(*slots), given);
}

}  // namespace troupe::engine::tokenizer
