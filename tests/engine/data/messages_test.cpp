#include "engine/data/layouts/messages.h"

#include <gmock/gmock.h>

#include "engine/base/json/fields.h"
#include "engine/data/layouts/sample.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;

std::string normalised(const std::string& messages, const Tags& tags = {}) {
  const auto list = to_messages(value_or_throw(parse_json(messages, "a test")), tags);
  return list ? list->dump() : "!" + list.error().what;
}

std::string said(std::string_view role, std::string_view text) {
  return "[{\"role\":\"" + std::string(role) + "\",\"content\":\"" + std::string(text) + "\"}]";
}

TEST(Messages, EveryNameOfARoleIsUnderstood) {
  for (const auto& [name, role] :
       std::vector<std::pair<std::string, std::string>>{{"human", "user"},
                                                        {"user", "user"},
                                                        {"gpt", "assistant"},
                                                        {"model", "assistant"},
                                                        {"chatbot", "assistant"},
                                                        {"bot", "assistant"},
                                                        {"assistant", "assistant"},
                                                        {"system", "system"},
                                                        {"observation", "tool"},
                                                        {"function", "tool"},
                                                        {"tool", "tool"},
                                                        {"ipython", "ipython"}}) {
    EXPECT_EQ(normalised("[{\"from\":\"" + name + "\",\"value\":\"x\"}]"), said(role, "x"));
    EXPECT_EQ(normalised("[{\"role\":\"" + name + "\",\"content\":\"x\"}]"), said(role, "x"));
  }
}

TEST(Messages, TagsNameMembersAndRoles) {
  const Tags tags = {{"role_tag", "speaker"},       {"content_tag", "words"},
                     {"user_tag", "client"},        {"assistant_tag", "expert"},
                     {"observation_tag", "result"}, {"function_tag", "act"}};
  EXPECT_EQ(
      normalised(
          R"([{"speaker":"client","words":"a"},{"speaker":"expert","words":"b"},{"speaker":"result","words":"c"}])",
          tags),
      R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"tool","content":"c"}])");
  EXPECT_THAT(
      normalised(R"([{"speaker":"act","words":"{\"name\":\"f\",\"arguments\":{}}"}])", tags),
      HasSubstr("tool_calls"));
  EXPECT_THAT(normalised(R"([{"from":"client","value":"a"}])", tags),
              HasSubstr("!message 1: expected a message"));
  EXPECT_EQ(check_tag_names({{"role_tg", "x"}}).error().code, Errc::usage);
  EXPECT_THAT(check_tag_names({{"role_tg", "x"}}).error().what,
              HasSubstr("did you mean role_tag?"));
}

TEST(Messages, CallsOfToolsComeIntoOneForm) {
  const std::string one =
      R"("tool_calls":[{"type":"function","function":{"name":"f","arguments":{"x":1}}}])";
  const std::string turn = R"([{"role":"assistant","content":"",)" + one + "}]";
  // ShareGPT's turn; OpenAI's with arguments as text; the older function_call; the calls as text.
  EXPECT_EQ(normalised(
                R"([{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1}}"}])"),
            turn);
  EXPECT_EQ(
      normalised(
          R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}])"),
      turn);
  EXPECT_EQ(
      normalised(
          R"([{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}}])"),
      turn);
  EXPECT_EQ(
      normalised(
          R"([{"role":"assistant","tool_calls":"[{\"name\":\"f\",\"arguments\":{\"x\":1}}]"}])"),
      turn);
  // Several at once, with their ids; arguments that are no object stay.
  EXPECT_EQ(
      normalised(
          R"([{"from":"function_call","value":"[{\"name\":\"f\",\"arguments\":\"go\"},{\"name\":\"g\",\"arguments\":{}}]"}])"),
      R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"go"}},)"
      R"({"type":"function","function":{"name":"g","arguments":{}}}]}])");
  EXPECT_THAT(
      normalised(
          R"([{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"7","function":{"name":"f","arguments":{}}}]}])"),
      HasSubstr(R"("content":"Let me look.","tool_calls":[{"id":"7")"));
  // Text that is not a call is unchanged.
  EXPECT_EQ(normalised(R"([{"from":"function_call","value":"no call"}])"),
            said("assistant", "no call"));
}

struct MessagesCase {
  const char* row;
  const char* expected;
};

std::string sample_text(const std::string& json, LayoutOptions options) {
  const Row row{value_or_throw(parse_json(json, "a test")), "rows.jsonl", 7, 6};
  auto found = detect_layout(row, options);
  if (!found) return "!" + found.error().what;
  options.layout = *found;
  const auto sample = to_sample(row, options);
  if (!sample) return "!" + sample.error().what;
  std::string out = std::string(name_of(*found)) + " " + sample->prompt.dump() + " | " +
                    sample->completion.dump();
  if (sample->desirable) out += *sample->desirable ? " good" : " bad";
  if (!sample->answer.is_null()) out += " = " + sample->answer.dump();
  if (sample->step_labels)
    for (const auto step : sample->step_labels->classes) out += " " + std::to_string(step);
  return out;
}

TEST(KtoRows, HaveALabelInEveryLayout) {
  for (
      const auto& [row, expected] : std::vector<MessagesCase>{
          {R"({"prompt":"p","completion":"c","kto_tag":true})",
           R"(prompt_completion "p" | "c" good)"},
          {R"({"prompt":"p","completion":"c","label":"False"})",
           R"(prompt_completion "p" | "c" bad)"},
          {R"({"instruction":"p","output":"c","kto_tag":0})",
           R"(alpaca [{"role":"user","content":"p"}] | [{"role":"assistant","content":"c"}] bad)"},
          {R"({"messages":[{"role":"user","content":"p"},{"role":"assistant","content":"c"}],"label":true})",
           R"(messages [{"role":"user","content":"p"}] | [{"role":"assistant","content":"c"}] good)"},
          {R"({"conversations":[{"from":"human","value":"p"}],"kto_tag":true})",
           "!rows.jsonl:7: \"conversations\": expected a conversation that ends with an assistant "
           "message, to "
           "which the label applies"},
          {R"({"prompt":"p","completion":"c","label":"maybe"})",
           "!rows.jsonl:7: expected true (a good answer) or false under \"label\", found "
           "\"maybe\""},
      })
    EXPECT_EQ(sample_text(row, {.purpose = Purpose::unpaired}), expected) << row;
}

TEST(StepRows, AreLabelledByLabelsByTheFirstMistakeOrByTheWrongSteps) {
  for (
      const auto& [row, expected] : std::vector<MessagesCase>{
          {R"({"prompt":"p","completions":["a","b"],"labels":[true,0]})", "steps \"p\" | null 1 0"},
          {R"({"input":"p","steps":["a","b","c"],"mistake_index":1})", "steps \"p\" | null 1 0 -1"},
          {R"({"problem":"p","steps":["a","b"],"mistake_index":null})", "steps \"p\" | null 1 1"},
          {R"({"problem":"p","steps":["a","b"],"mistake_index":-1})", "steps \"p\" | null 1 1"},
          {R"({"question":"p","steps":["a","b","c"],"error_steps":[1,3]})",
           "steps \"p\" | null 0 1 0"},
          {R"({"question":{"problem":"p"},"label":{"steps":[{"completions":[{"text":"a","rating":-1},{"text":"b","rating":0}],)"
           R"("chosen_completion":1},{"completions":[],"human_completion":{"text":"c"}},{"completions":[{"text":"d","rating":-1}]}]}})",
           "prm800k \"p\" | null 1 1 0"},
      })
    EXPECT_EQ(sample_text(row, {.purpose = Purpose::steps}), expected) << row;
  for (
      const auto& [row, words] : std::vector<MessagesCase>{
          {R"({"input":"p","steps":["a","b"],"mistake_index":2})", "from 0 to 1"},
          {R"({"question":"p","steps":["a"],"error_steps":[0]})", "from 1 to 1"},
          {R"({"question":{"problem":"p"},"label":{"steps":[{"completions":[],"chosen_completion":0}]}})",
           "chosen_completion"},
          {R"({"question":{"problem":"p"},"label":{"steps":[]}})", "it has no step"},
      })
    EXPECT_THAT(sample_text(row, {.purpose = Purpose::steps}), HasSubstr(words)) << row;
}

TEST(Columns, GoIntoObjectsAndListsAndMayBeLeftUnused) {
  const std::map<std::string, std::string> names = {{"output", "all.1.text"}, {"input", ""}};
  const Json row = value_or_throw(
      parse_json(R"({"instruction":"a","input":"b","all":[{"text":"c"},{"text":"d"}]})", "a test"));
  const Tags none;
  const Columns columns(row, names, none);
  EXPECT_EQ(*columns.find("output"), Json("d"));
  EXPECT_EQ(columns.find("input"), nullptr);
  const std::map<std::string, std::string> outside = {{"output", "all.2.text"}, {"text", "all.x"}};
  EXPECT_EQ(Columns(row, outside, none).find("output"), nullptr);
  EXPECT_EQ(Columns(row, outside, none).find("text"), nullptr);
}

TEST(PromptRows, OfInstructionsHaveTheOutputAsTheirAnswer) {
  EXPECT_EQ(sample_text(R"({"instruction":"a","output":"b"})",
                        {.purpose = Purpose::prompts, .chat = ChatUse::always}),
            R"(prompt_answer [{"role":"user","content":"a"}] | null = "b")");
}

}  // namespace
}  // namespace troupe::engine::data
