#include "launch/serve/api/message/message_reader.h"

#include <gtest/gtest.h>

#include <iterator>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::api {
namespace {

struct Call {
  std::string name, arguments;
  bool operator==(const Call&) const = default;
};

struct Message {
  std::string reasoning, content;
  std::vector<Call> calls;
};

void add(const serve::api::MessagePart& part, Message& message) {
  message.reasoning += part.reasoning;
  message.content += part.content;
  for (const serve::api::CallPart& each : part.calls) {
    const auto index = static_cast<std::size_t>(each.index);
    if (index == message.calls.size()) {
      EXPECT_NE(each.name, "");
      message.calls.push_back({each.name, each.arguments});
      continue;
    }
    ASSERT_EQ(index + 1, message.calls.size()) << "pieces of an earlier call";
    EXPECT_EQ(each.name, "");
    message.calls.back().arguments += each.arguments;
  }
}

Message read(const serve::api::MessageFormat& format, const std::string& text, std::size_t piece) {
  serve::api::MessageReader reader(format);
  Message message;
  for (std::size_t at = 0; at < text.size(); at += piece)
    add(reader.push(std::string_view(text).substr(at, piece)), message);
  add(reader.finish(), message);
  EXPECT_EQ(static_cast<std::size_t>(reader.calls()), message.calls.size());
  return message;
}

/// The text in pieces of every size has the same message.
void expect_message(const serve::api::MessageFormat& format, const std::string& text,
                    const Message& expected) {
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    SCOPED_TRACE(cat(quote(text), " in pieces of ", piece));
    const Message found = read(format, text, piece);
    EXPECT_EQ(found.reasoning, expected.reasoning);
    EXPECT_EQ(found.content, expected.content);
    EXPECT_EQ(found.calls, expected.calls);
  }
}

const serve::api::MessageFormat hermes{.calls = serve::api::CallFormat::hermes};
const serve::api::MessageFormat llama{.calls = serve::api::CallFormat::llama3_json};
const serve::api::MessageFormat mistral{.calls = serve::api::CallFormat::mistral};
const serve::api::MessageFormat list{.calls = serve::api::CallFormat::list};

TEST(MessageReader, ReadsCallsOfHermes) {
  const std::string one = R"(<tool_call>
{"name": "add", "arguments": {"a": [1, {"b": "}<\"]"}], "c": "\\"}}
</tool_call>)";
  const Call add{"add", R"({"a": [1, {"b": "}<\"]"}], "c": "\\"})"};
  expect_message(hermes, one, {"", "", {add}});
  expect_message(hermes, "I add.\n" + one + "\n" + one, {"", "I add.\n", {add, add}});
  expect_message(hermes, one + "\n\nDone <tool", {"", "Done <tool", {add}});
  expect_message(hermes, R"(<tool_call>{"arguments": {"x": 1}, "name":"f"}</tool_call>)",
                 {"", "", {{"f", R"({"x": 1})"}}});
}

TEST(MessageReader, TextThatIsNoCallIsContent) {
  for (const char* text :
       {"Four.", "a < b <tool> <tool_call", "<tool_call>\nno\n</tool_call>",
        R"(<tool_call>{"name": "f"}</tool_call>)", R"(<tool_call>{"name": 5, "arguments": {}})",
        R"(<tool_call>{"name": "f", "argu)", R"({"name": "f", "parameters": {}})"})
    expect_message(hermes, text, {"", text, {}});
  for (const char* text :
       {"Four.", R"({"name": "Bob", "age": 5})", "  {\"name\"", "<|python_tag|>print(4)",
        "<|python", "[1]", R"([TOOL_CALLS][{"name": "f", "arguments": {}}])"})
    expect_message(llama, text, {"", text, {}});
  for (const char* text : {"Four [TOOL] calls", "[TOOL_CALLS]", "[TOOL_CALLS] f(4)",
                           "[TOOL_CALLS][5]", "[TOOL_CALLS]f"})
    expect_message(mistral, text, {"", text, {}});
  expect_message({}, "<think>a</think><tool_call>", {"", "<think>a</think><tool_call>", {}});
}

TEST(MessageReader, AnUnfinishedCallHasTheArgumentsThatWereWritten) {
  expect_message(hermes, R"(<tool_call>{"name": "f", "arguments": {"x": "ab)",
                 {"", "", {{"f", R"({"x": "ab)"}}});
  expect_message(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool_",
                 {"", "", {{"f", "{}"}}});
}

TEST(MessageReader, ReadsCallsOfLlama) {
  const std::string one = R"({"name": "f", "parameters": {"x": "{"}})";
  const Call f{"f", R"({"x": "{"})"};
  expect_message(llama, one, {"", "", {f}});
  expect_message(llama, "\n <|python_tag|>" + one, {"", "", {f}});
  expect_message(llama, one + "; " + one, {"", "", {f, f}});
  expect_message(llama, R"({"type": "function", "name": "f", "parameters": 5})",
                 {"", "", {{"f", "5"}}});
}

TEST(MessageReader, ReadsCallsOfMistral) {
  const Call f{"f", R"({"x": "]"})"}, g{"g", "{}"};
  expect_message(
      mistral,
      R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": "]"}}, {"name": "g", "arguments": {}}])",
      {"", "", {f, g}});
  expect_message(mistral, R"(So: [TOOL_CALLS]f{"x": "]"}[TOOL_CALLS]g{})", {"", "So: ", {f, g}});
  expect_message(mistral, R"([TOOL_CALLS]f[ARGS]{"x": "]"})", {"", "", {f}});
}

TEST(MessageReader, ReadsConstrainedCalls) {
  expect_message(list, R"([{"name":"f","parameters":{"x":1}}, {"name": "g", "parameters": {}}])",
                 {"", "", {{"f", R"({"x":1})"}, {"g", "{}"}}});
  expect_message(list, R"([{"name":"f","par)", {"", R"([{"name":"f","par)", {}});
  expect_message({.calls = serve::api::CallFormat::arguments, .function = "f"}, R"({"x": 1})",
                 {"", "", {{"f", R"({"x": 1})"}}});
}

TEST(MessageReader, SeparatesReasoning) {
  const serve::api::MessageFormat qwen{.reasoning = serve::api::ReasoningFormat::qwen3};
  serve::api::MessageFormat open{.reasoning = serve::api::ReasoningFormat::deepseek_r1,
                                 .reasoning_open = true};
  expect_message(qwen, "\n<think>\nWhy?\n</think>\n\nSo.", {"\nWhy?\n", "\n\nSo.", {}});
  expect_message(qwen, "<thin> air", {"", "<thin> air", {}});
  expect_message(qwen, "  <thi", {"", "  <thi", {}});
  expect_message(qwen, "<think>a </thi", {"a </thi", "", {}});
  expect_message(open, "Why?</think>So.", {"Why?", "So.", {}});
  expect_message(open, "<think>Why?</think>So.", {"Why?", "So.", {}});
  expect_message(open, "Why <tool_call>", {"Why <tool_call>", "", {}});
  open.calls = serve::api::CallFormat::hermes;
  expect_message(open, R"(a</think>b<tool_call>{"name": "f", "arguments": {}}</tool_call>)",
                 {"a", "b", {{"f", "{}"}}});
}

TEST(MessageReader, FormatsAreFoundInTemplates) {
  EXPECT_EQ(serve::api::call_format_in("...<tool_call>..."), serve::api::CallFormat::hermes);
  EXPECT_EQ(serve::api::call_format_in("...<tool_call>...<function=f>"),
            serve::api::CallFormat::none);
  EXPECT_EQ(serve::api::call_format_in("...[TOOL_CALLS]..."), serve::api::CallFormat::mistral);
  EXPECT_EQ(serve::api::call_format_in("Environment: ipython"),
            serve::api::CallFormat::llama3_json);
  EXPECT_EQ(serve::api::call_format_in("{{ messages }}"), serve::api::CallFormat::none);
  for (const std::string& name : serve::api::call_format_names())
    EXPECT_TRUE(serve::api::call_format_of(name)) << name;
  for (const std::string& name : serve::api::reasoning_format_names())
    EXPECT_TRUE(serve::api::reasoning_format_of(name)) << name;
  EXPECT_TRUE(serve::api::opens_reasoning("<|assistant|><think>\n"));
  EXPECT_FALSE(serve::api::opens_reasoning("<think>\n\n</think>\n\n"));
}

}  // namespace
}  // namespace troupe::launch::serve::api
