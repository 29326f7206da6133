// MindSpeed's prompt types against the renderings that its documentation describes.
#include "engine/tokenizer/prompt_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {
namespace {

Json parsed(const std::string& text) {
  return value_or_throw(parse_json(text, "test"));
}

const std::string two_turns =
    R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"},
    {"role": "user", "content": "V"}, {"role": "assistant", "content": "B"}])";
const std::string one_turn =
    R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}])";

Rendered rendered(const std::string& name, const std::string& messages,
                  const std::string& tools = "null") {
  const auto chat = value_or_throw(prompt_type(name));
  RenderInput input;
  input.messages = parsed(messages);
  input.tools = parsed(tools);
  input.tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return value_or_throw(chat.render(input));
}

const std::string r1 =
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about "
    "the "
    "reasoning process in the mind and then provides the user with the answer. The reasoning "
    "process and answer are enclosed within "
    "<think> "
    "</think> and <answer> </answer> tags, respectively, i.e., <think> reasoning process here "
    "</think><answer> answer here </answer>";

TEST(PromptTypes, RenderTwoTurnsAsTheReferenceSays) {
  const std::map<std::string, std::string> cases = {
      {"default", "S\nHuman: U\nAssistant:A</s>\nHuman: V\nAssistant:B</s>"},
      {"empty", "SUAVB"},
      {"trl", "<s>SUAVB"},
      {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s><s>[INST] V [/INST]B</s>"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_"
       "header_id|>\n\nU<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_"
       "header_id|>\n\nV<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nB<|eot_id|>"},
      {"qwen",
       "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|"
       "im_end|>\n<|im_start|>user\nV<|im_end|>\n"
       "<|im_start|>assistant\nB<|im_end|>"},
      {"intern2",
       "<s><|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>"
       "assistant\nA<|im_end|>\n<|im_start|>user\nV<|im_end|"
       ">"
       "\n<|im_start|>assistant\nB<|im_end|>\n"},
      {"alpaca",
       "S### Instruction:\nU\n\n### Response:\nA</s>\n\n### Instruction:\nV\n\n### "
       "Response:\nB</s>"},
      {"mistral", "<s>S[INST] U [/INST]A</s>[INST] V [/INST]B</s>"},
      {"deepseek2", "<s>S\n\nUser: U\n\nAssistant:A</s>User: V\n\nAssistant:B</s>"},
      {"deepseek3", "<s>S<｜User｜>U<｜Assistant｜>A</s><｜User｜>V<｜Assistant｜>B</s>"},
      {"chatglm2", "[gMASK]sopS[Round 0]\n\n问：U\n\n答：A\n\n[Round 1]\n\n问：V\n\n答：B</s>"},
      {"chatglm3",
       "[gMASK]sop<|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>\nB</s>"},
      {"glm4",
       "[gMASK]<sop><|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>\nB</s>"},
      {"gemma",
       "<s>S<start_of_turn>user\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_"
       "turn>user\nV<end_of_turn>\n"
       "<start_of_turn>model\nB</s>"},
      {"cpm", "<s>S<用户>U<AI>A</s><用户>V<AI>B</s>"},
      {"baichuan2", "S<reserved_106>U<reserved_107>A<reserved_106>V<reserved_107>B</s>"},
      {"qwen_r1", cat("<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n", r1,
                      "Put your final answer within \\\\boxed{}. U<|im_end|>\n",
                      "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\n", r1,
                      "Put your final answer within \\\\boxed{}. "
                      "V<|im_end|>\n<|im_start|>assistant\nB<|im_end|>")},
  };
  for (const auto& [name, expected] : cases)
    EXPECT_EQ(rendered(name, two_turns).text, expected) << name;
}

TEST(PromptTypes, RenderToolsAndReasoningAsMindSpeedRlDoes) {
  EXPECT_EQ(
      rendered("deepseek3_r1", one_turn).text,
      cat("<s>", r1, ". Put your final answer within \\boxed{}. <｜User｜>U<｜Assistant｜>A</s>"));
  EXPECT_EQ(rendered("hunyuan", one_turn).text, "You are a helpful assistant.UA");
  EXPECT_EQ(
      rendered("qwen3", two_turns).text,
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
      "A<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\nB<|im_end|>\n");
  const std::string with_tool =
      R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}, {"role": "tool", "content": "R"}])";
  const std::string retool = rendered("qwen_retool", with_tool).text;
  EXPECT_THAT(retool,
              testing::HasSubstr("<tools>\n{\"type\": \"function\", \"function\": {\"name\": "
                                 "\"code_interpreter\", "));
  EXPECT_THAT(retool,
              testing::EndsWith(
                  "<tool_call>\n{\"name\": <function-name>, \"arguments\": "
                  "<args-json-object>}\n</tool_call><|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
                  "The answer format must be: \\boxed{'The final answer goes here.'}\n"
                  "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>tool\nR<|im_end|>\n"
                  "<|im_start|>assistant\n"));
  EXPECT_THAT(
      rendered("qwen_search_tool", one_turn).text,
      testing::HasSubstr("\"query_list\": {\"type\": \"array\", \"item\": {\"type\": \"string\"}"));
}

TEST(PromptTypes, AreReadFromATemplateFile) {
  const std::string file = cat(testing::TempDir(), "templates-", getpid(), ".json");
  std::ofstream(file) << R"json([{"name": "plain"}, {"name": "mine",
    "format_prefix": {"slots": [["bos_token"], {"token": "[P]"}]}, "format_system": {"slots": ["<S>{{content}}\n"]},
    "format_user": {"slots": ["{{idx}}:", "{{content}}>"]}, "format_observation": {"slots": ["T:{{content}}>"]},
    "format_separator": {"slots": ["|"]}, "default_system": "it's a \\ text", "stop_words": ["<end>"], "replace_eos": true},
    {"name": "llama2_mine", "format_system": {"slots": ["({{content}})"]},
     "format_user": {"slots": [["bos_token"], "[{{content}}]"]}},
    {"name": "short", "efficient_eos": true},
    {"name": "own", "format_assistant": {"slots": ["\n{{content}}", ["eos_token"]]}},
    {"name": "bad", "format_user": {"slots": [["cls_token"]]}}, {"name": "worse", "replace_eos": true}])json";
  const auto render = [&](const std::string& name, const std::string& messages) {
    RenderInput input;
    input.messages = parsed(messages);
    input.tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    return value_or_throw(value_or_throw(load_file_or_prompt_type(file + "#" + name)).render(input))
        .text;
  };
  EXPECT_EQ(render("plain", two_turns), "SUA</s>VB</s>");
  EXPECT_EQ(render("mine", two_turns), "<s>[P]<S>S\n0:U>A<end>|1:V>B<end>");
  EXPECT_EQ(render("mine", one_turn), "<s>[P]<S>it's a \\ text\n0:U>A<end>");
  EXPECT_EQ(render("llama2_mine", two_turns), "<s>[(S)U]A</s><s>[V]B</s>");
  EXPECT_EQ(render("short", two_turns), "SUAVB</s>");
  EXPECT_EQ(render("own", one_turn), "U\nA</s>");
  const auto error = [&](const std::string& given) {
    const auto found = load_file_or_prompt_type(given);
    return found ? std::string() : found.error().what;
  };
  EXPECT_THAT(error(file + "#none"),
              testing::HasSubstr("no prompt type \"none\"; there are plain, mine"));
  EXPECT_THAT(error(file + "#bad"),
              testing::HasSubstr("prompt type bad: format_user must have slots of the form"));
  EXPECT_THAT(error(file + "#worse"), testing::HasSubstr("stop_words must have a text"));
  EXPECT_THAT(error("no/other.json#x"), testing::HasSubstr("no/other.json"));
  std::filesystem::remove(file);
}

TEST(PromptTypes, HaveTheirOwnSystemTextWhereTheRowHasNone) {
  const auto starts = [](const std::string& name, const std::string& wanted) {
    EXPECT_TRUE(rendered(name, one_turn).text.starts_with(wanted))
        << name << " gave " << rendered(name, one_turn).text;
  };
  starts("default", "Human: U");
  starts("llama2", "<s>[INST] U [/INST]A</s>");
  starts("qwen", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nU");
  starts("chatml", "<|im_start|>user\nU");
  starts(
      "chatml_de",
      "<|im_start|>system\nDu bist ein freundlicher und hilfsbereiter KI-Assistent.<|im_end|>\n");
  starts("qwen_math_r1",
         "<|im_start|>system\nPlease reason step by step, and put your final answer within "
         "\\boxed{}.<|im_end|>\n");
  starts("alpaca",
         "Below is an instruction that describes a task. Write a response that appropriately "
         "completes the request.\n\n### Instruction:\nU");
  starts("chatglm3_system",
         "[gMASK]sop<|system|>\nYou are ChatGLM3, a large language model trained by Zhipu.AI.");
  starts("qwen_r1_rl",
         "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n" + r1 +
             ". Put your final answer within \\boxed{}.\nU<|im_end|>");
}

TEST(PromptTypes, MarkEveryAnswerWithItsEnd) {
  for (const auto& name : prompt_type_names()) {
    const Rendered all = rendered(std::string(name), one_turn);
    ASSERT_EQ(all.assistant_spans.size(), 1u) << name;
    EXPECT_EQ(all.assistant_spans[0].second,
              static_cast<std::size_t>(std::count_if(
                  all.text.begin(), all.text.end(),
                  [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; })))
        << name;
  }
  const Rendered qwen = rendered("qwen", two_turns);
  ASSERT_EQ(qwen.assistant_spans.size(), 2u);
  const auto [begin, end] = qwen.assistant_spans[0];
  EXPECT_EQ(qwen.text.substr(begin, end - begin), "A<|im_end|>");
}

TEST(PromptTypes, TellOfToolsBehindTheSystemText) {
  const std::string tools =
      R"([{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object",
      "properties": {"a": {"type": "integer", "description": "one"}, "how": {"type": "string", "description": "way", "enum": ["x", "y"]},
      "l": {"type": "array", "description": "all", "items": {"type": "string"}}}, "required": ["a"]}}}])";
  const std::string messages =
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]},
      {"role": "tool", "content": "3"}])";
  EXPECT_EQ(rendered("default", messages, tools).text,
            "SYou have access to the following tools:\n> Tool Name: add\nTool Description: "
            "Adds.\nTool Args:\n"
            "  - a (integer, required): one\n  - how (string): way, should be one of [x, y]\n"
            "  - l (array): all, where each item should be string\n\n"
            "Use the following format if using a tool:\n```\nAction: tool name (one of "
            "[add]).\nAction Input: the input to the tool, in a JSON "
            "format representing the kwargs (e.g. ```{\"input\": \"hello world\", \"num_beams\": "
            "5}```).\n```\n\nHuman: U\nAssistant:"
            "Action: add\nAction Input: {\"a\": 1}\n</s>\nHuman: 3\nAssistant:");
  EXPECT_THAT(
      rendered("qwen3", messages).text,
      testing::HasSubstr("<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n"));
}

TEST(PromptTypes, AnUnknownNameGetsTheOthers) {
  const auto none = prompt_type("nosuch");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::not_found);
  EXPECT_THAT(none.error().what,
              testing::AllOf(testing::HasSubstr("\"nosuch\""), testing::HasSubstr("qwen"),
                             testing::HasSubstr("llama3")));
  EXPECT_TRUE(load_file_or_prompt_type("qwen"));
  EXPECT_FALSE(load_file_or_prompt_type("no/such.jinja"));
}

}  // namespace
}  // namespace troupe::engine::tokenizer
