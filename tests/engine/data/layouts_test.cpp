#include <gmock/gmock.h>

#include "engine/base/json/fields.h"
#include "engine/data/layouts/sample.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Messages put names in quotation marks; the tables below are easier to read without.
std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

Row row_of(const std::string& json) {
  return {value_or_throw(parse_json(json, "a test")), "rows.jsonl", 7, 6};
}

Result<Sample> sample_of(const std::string& json, LayoutOptions options) {
  const auto row = row_of(json);
  if (options.layout == Layout::automatic) {
    auto found = detect_layout(row, options);
    RETURN_IF_ERROR(found);
    options.layout = *found;
  }
  return to_sample(row, options);
}

// prompt | completion | rejected, as JSON; "!message" for an error.
std::string normal(const std::string& json, LayoutOptions options) {
  const auto sample = sample_of(json, options);
  if (!sample) return "!" + sample.error().what;
  std::string out = sample->prompt.dump() + " | " + sample->completion.dump();
  if (!sample->rejected.is_null()) out += " | " + sample->rejected.dump();
  if (!sample->answer.is_null()) out += " | " + sample->answer.dump();
  return out;
}

struct LayoutCase {
  const char* row;
  const char* expected;
};

void expect_all(const std::vector<LayoutCase>& cases, const LayoutOptions& options) {
  for (const auto& [row, expected] : cases) EXPECT_EQ(normal(row, options), expected) << row;
}

TEST(Layouts, OfSupervisedRowsAreFoundAndBroughtIntoOneForm) {
  expect_all(
      {
          {R"({"prompt":"2+2=","completion":"4"})", R"("2+2=" | "4")"},
          {R"({"prompt":"2+2=","response":"4"})", R"("2+2=" | "4")"},
          {R"({"prompt":[{"role":"user","content":"hi"}],"completion":"yes"})",
           R"([{"role":"user","content":"hi"}] | [{"role":"assistant","content":"yes"}])"},
          {R"({"prompt":"hi","completion":[{"role":"assistant","content":"yes"}]})",
           R"([{"role":"user","content":"hi"}] | [{"role":"assistant","content":"yes"}])"},
          {R"({"question":"2+2?","answer":"#### 4"})", R"("2+2?" | "#### 4")"},
          {R"({"problem":"2+2?","level":"1","solution":"It is 4","answer":"4"})",
           R"("2+2?" | "It is 4")"},
          {R"({"text":"once"})", R"(null | "once")"},
          {R"({"instruction":"Add.","input":"2 2","output":"4"})",
           R"([{"role":"user","content":"Add.\n2 2"}] | [{"role":"assistant","content":"4"}])"},
          {R"({"instruction":"Go on.","input":"","output":"c","system":"S","history":[["a","b"]]})",
           R"(null | [{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
           R"({"role":"user","content":"Go on."},{"role":"assistant","content":"c"}])"},
          {R"({"messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","value":"i"}]},)"
           R"({"role":"assistant","content":"yes","loss_weight":0.0}]})",
           R"(null | [{"role":"user","content":"hi"},{"role":"assistant","content":"yes","loss_weight":0.0}])"},
          {R"({"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"yes"}],"system":"S"})",
           R"(null | [{"role":"system","content":"S"},{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}])"},
          {R"({"conversations":[{"from":"human","value":"hi"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{}}"},)"
           R"({"from":"observation","value":"1"},{"from":"gpt","value":"yes"}],"tools":"[]"})",
           R"(null | [{"role":"user","content":"hi"},{"role":"assistant","content":"",)"
           R"("tool_calls":[{"type":"function","function":{"name":"f","arguments":{}}}]},)"
           R"({"role":"tool","content":"1"},{"role":"assistant","content":"yes"}])"},
      },
      {.purpose = Purpose::sft});
}

TEST(Layouts, AlpacaWithoutAChatTemplateIsStanfordsText) {
  const LayoutOptions options{.purpose = Purpose::sft, .chat_template = false};
  const auto sample =
      value_or_throw(sample_of(R"({"instruction":"Add.","input":"2 2","output":"4"})", options));
  EXPECT_EQ(
      sample.prompt.string(),
      "Below is an instruction that describes a task, paired with an input that provides further "
      "context. Write a response that "
      "appropriately "
      "completes the request.\n\n### Instruction:\nAdd.\n\n### Input:\n2 2\n\n### Response:\n");
  EXPECT_EQ(sample.completion.string(), "4");
}

TEST(Layouts, AlwaysAChatMakesOneMessageOfEachText) {
  const LayoutOptions options{.purpose = Purpose::sft, .chat = ChatUse::always};
  EXPECT_EQ(normal(R"({"question":"q","answer":"a"})", options),
            R"([{"role":"user","content":"q"}] | [{"role":"assistant","content":"a"}])");
}

TEST(Layouts, OfPreferenceRowsShareTheirPrompt) {
  expect_all(
      {
          {R"({"prompt":"p","chosen":"c","rejected":"r"})", R"("p" | "c" | "r")"},
          {R"({"question":"p","chosen":"c","rejected":"r"})", R"("p" | "c" | "r")"},
          {R"({"prompt":[{"role":"user","content":"p"}],"chosen":[{"role":"assistant","content":"c"}],"rejected":"r"})",
           R"([{"role":"user","content":"p"}] | [{"role":"assistant","content":"c"}] | [{"role":"assistant","content":"r"}])"},
          {R"({"conversations":[{"from":"human","value":"p"}],"chosen":{"from":"gpt","value":"c"},"rejected":{"from":"gpt","value":"r"}})",
           R"([{"role":"user","content":"p"}] | [{"role":"assistant","content":"c"}] | [{"role":"assistant","content":"r"}])"},
          {R"({"prompt":"p","chosen":[{"role":"user","content":"p"},{"role":"assistant","content":"c"}],)"
           R"("rejected":[{"role":"user","content":"p"},{"role":"assistant","content":"r"}]})",
           R"([{"role":"user","content":"p"}] | [{"role":"assistant","content":"c"}] | [{"role":"assistant","content":"r"}])"},
          {R"({"chosen":"\n\nHuman: hi\n\nAssistant: Yes sir","rejected":"\n\nHuman: hi\n\nAssistant: Yes"})",
           R"("\n\nHuman: hi\n\nAssistant:" | " Yes sir" | " Yes")"},
          {R"({"chosen":"The sky is blue","rejected":"The sky is green"})",
           R"("The sky is" | " blue" | " green")"},
          {R"({"chosen":"\u00e9\u00e8","rejected":"\u00e9\u00e9"})", R"("é" | "è" | "é")"},
      },
      {.purpose = Purpose::pairs});
}

TEST(Layouts, OfPromptsKeepTheAnswerForTheVerifier) {
  expect_all(
      {
          {R"({"prompt":"2+2","answer":4})", R"("2+2" | null | 4)"},
          {R"({"question":"2+2","answer":"#### 4"})", R"("2+2" | null | "#### 4")"},
          {R"({"prompt":[{"role":"user","content":"2+2"}],"reward_model":{"style":"rule","ground_truth":"4"}})",
           R"([{"role":"user","content":"2+2"}] | null | "4")"},
          {R"({"messages":[{"role":"user","content":"2+2"},{"role":"assistant","content":"4"}],"ground_truth":"4"})",
           R"([{"role":"user","content":"2+2"}] | null | "4")"},
          {R"({"prompt":"write"})", R"("write" | null)"},
      },
      {.purpose = Purpose::prompts});
  const auto sample = value_or_throw(
      sample_of(R"({"prompt":"p","answer":"a","level":3})", {.purpose = Purpose::prompts}));
  EXPECT_EQ(sample.columns.dump(), R"({"answer":"a","level":3})");
}

TEST(Layouts, TokenIdsTrainWhereALabelStands) {
  const auto sft = value_or_throw(sample_of(R"({"input_ids":[1,2,3],"labels":[-100,2,3]})",
                                            {.purpose = Purpose::sft, .vocabulary = 4}));
  EXPECT_EQ(sft.tokens->ids, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(sft.tokens->labels, (std::vector<std::int32_t>{-100, 2, 3}));
  const auto pair = value_or_throw(sample_of(
      R"({"chosen_input_ids":[1,2],"chosen_labels":[-100,2],"rejected_input_ids":[1,3],"rejected_labels":[-100,3]})",
      {.purpose = Purpose::pairs}));
  EXPECT_EQ(pair.rejected_tokens->ids, (std::vector<std::int32_t>{1, 3}));
}

TEST(Layouts, ColumnsCanBeMappedIntoObjectsToo) {
  LayoutOptions options{.purpose = Purpose::sft,
                        .columns = {{"prompt", "q.text"}, {"response", "a"}}};
  EXPECT_EQ(normal(R"({"q":{"text":"hi"},"a":"yes"})", options), R"("hi" | "yes")");
  options.columns = {{"prompt", "dotted.name"}, {"completion", "a"}};
  EXPECT_EQ(normal(R"({"dotted.name":"hi","a":"yes"})", options), R"("hi" | "yes")");
}

TEST(Layouts, AnUnknownOneIsRefusedWithTheKeysAndTheKnownOnes) {
  const auto sft = sample_of(R"({"quetion":"a","anser":"b"})", {.purpose = Purpose::sft});
  ASSERT_FALSE(sft);
  EXPECT_EQ(sft.error().code, Errc::bad_input);
  EXPECT_THAT(unquoted(sft.error().what),
              AllOf(HasSubstr("rows.jsonl:7"), HasSubstr("Found: quetion, anser"),
                    HasSubstr("question, answer"), HasSubstr("data.columns")));
  EXPECT_THAT(sample_of(R"({"prompt":"a","chosen":"b"})", {.purpose = Purpose::pairs}).error().what,
              HasSubstr("rejected"));
  EXPECT_EQ(name_of(Layout::automatic), "auto");
  EXPECT_EQ(name_of(Layout::pairwise), "pairwise");
  EXPECT_EQ(name_of(Layout::prompt_answer), "prompt_answer");
}

struct BadCase {
  Purpose purpose;
  Layout layout;
  const char* row;
  const char* words;
};

const std::vector<BadCase> malformed_rows = {
    {Purpose::sft, Layout::prompt_completion, R"({"prompt":"a"})", "nothing under completion"},
    {Purpose::sft, Layout::prompt_completion, R"({"completion":"a"})", "nothing under prompt"},
    {Purpose::sft, Layout::prompt_completion, R"({"prompt":null,"completion":"a"})",
     "nothing under prompt"},
    {Purpose::sft, Layout::prompt_completion, R"({"prompt":3,"completion":"a"})",
     "expected text or a list of messages under prompt, found integer"},
    {Purpose::sft, Layout::alpaca, R"({"instruction":"a","output":{}})",
     "expected text under output, found object"},
    {Purpose::sft, Layout::alpaca, R"({"instruction":"a","output":"b","input":1})",
     "expected text under input, found integer"},
    {Purpose::sft, Layout::alpaca, R"({"instruction":"a","output":"b","history":[["a"]]})",
     "expected [question, answer] in history"},
    {Purpose::sft, Layout::text, R"({"text":[]})", "expected text under text, found array"},
    {Purpose::sft, Layout::text, R"({"text":"a","role":"prompter","parent_id":null})",
     "one message of a tree of conversations"},
    {Purpose::sft, Layout::messages, R"({"messages":[]})",
     "expected a list of messages, found an empty one"},
    {Purpose::sft, Layout::messages, R"({"messages":"hi"})",
     "expected a list of messages, found string"},
    {Purpose::sft, Layout::messages, R"({"other":1})", "nothing under messages"},
    {Purpose::sft, Layout::messages, R"({"messages":[{"content":"hi"}]})",
     "message 1: expected a message"},
    {Purpose::sft, Layout::messages, R"({"messages":[{"role":"user"}]})",
     "message 1: a message of role user has no content"},
    {Purpose::sft, Layout::messages,
     R"({"messages":[{"role":"user","content":[{"type":"image"}]}]})", "only text is read"},
    {Purpose::sft, Layout::messages, R"({"messages":[{"role":"user","content":"hi"}]})",
     "no assistant message"},
    {Purpose::sft, Layout::messages,
     R"({"messages":[{"role":"assistant","content":"hi"}],"tools":"[1"})", "tools"},
    {Purpose::pairs, Layout::pairwise, R"({"prompt":"a","chosen":"b"})", "nothing under rejected"},
    {Purpose::pairs, Layout::pairwise, R"({"prompt":"a","chosen":"b","rejected":2})",
     "under rejected, found integer"},
    {Purpose::pairs, Layout::pairwise, R"({"prompt":2,"chosen":"b","rejected":"c"})",
     "expected text or a list of messages under prompt, found integer"},
    {Purpose::pairs, Layout::pairwise,
     R"({"chosen":[{"role":"assistant","content":"a"}],"rejected":[{"role":"assistant","content":"b"}]})",
     "no prompt"},
    {Purpose::prompts, Layout::prompt_answer, R"({"answer":"b"})", "nothing under prompt"},
    {Purpose::prompts, Layout::prompt_answer,
     R"({"messages":[{"role":"assistant","content":"b"}]})", "no message before the assistant"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":"1"})",
     "expected a list of token ids under input_ids, found string"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[]})", "input_ids is empty"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,9]})",
     "input_ids, item 1: expected a token id from 0 to 3, found 9"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,-100]})",
     "input_ids, item 1: expected a token id from 0 to 3, found -100"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,1.5]})", "found 1.5"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,2],"labels":[2]})",
     "found 1 under labels and 2 under input_ids"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,2],"labels":[2,-100]})",
     "labels, item 0: expected -100 or the token itself, 1"},
    {Purpose::sft, Layout::token_ids, R"({"input_ids":[1,2],"labels":[-1,2]})",
     "labels, item 0: expected a token id from 0 to 3, or -100, found -1"},
};

TEST(Layouts, AMalformedRowIsNamedWithWhatWasExpectedAndFound) {
  for (const auto& [purpose, layout, row, words] : malformed_rows) {
    const auto sample = sample_of(row, {.purpose = purpose, .layout = layout, .vocabulary = 4});
    ASSERT_FALSE(sample) << row;
    EXPECT_EQ(sample.error().code, Errc::bad_input) << row;
    EXPECT_THAT(unquoted(sample.error().what),
                AllOf(testing::StartsWith("rows.jsonl:7: "), HasSubstr(words)))
        << row;
  }
}

}  // namespace
}  // namespace troupe::engine::data
