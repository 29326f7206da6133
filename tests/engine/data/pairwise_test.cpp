// The prompt of preference rows, where several columns have it or none does. The expected values
// are those of TRL 1.16 (trl/data_utils.py, maybe_extract_prompt: two conversations are split at
// their common beginning) where it has a rule.
#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The JSON of a message.
std::string turn(const char* role, const std::string& text) {
  return R"({"role":")" + std::string(role) + R"(","content":")" + text + R"("})";
}
std::string user_turn(const std::string& text) {
  return turn("user", text);
}
std::string assistant_turn(const std::string& text) {
  return turn("assistant", text);
}
std::string system_turn(const std::string& text) {
  return turn("system", text);
}
std::string dialogue(std::initializer_list<std::string> messages) {
  std::string out;
  for (const std::string& each : messages) out += (out.empty() ? "" : ",") + each;
  return "[" + out + "]";
}
std::string json_text(const std::string& value) {
  return Json(value).dump();
}

/// {"chosen", "rejected"} and other members, as their JSON.
std::string pair_row(const std::string& chosen, const std::string& rejected,
                     std::initializer_list<std::pair<const char*, std::string>> others = {}) {
  std::string out = R"({"chosen":)" + chosen + R"(,"rejected":)" + rejected;
  for (const auto& [name, value] : others) out += ",\"" + std::string(name) + "\":" + value;
  return out + "}";
}

Result<Sample> read_pair(const std::string& json, Purpose purpose = Purpose::pairs,
                         std::map<std::string, std::string> columns = {}) {
  const Row parsed{value_or_throw(parse_json(json, "a test")), "pairs.jsonl", 7, 6};
  return to_sample(parsed,
                   {.purpose = purpose, .layout = Layout::pairwise, .columns = std::move(columns)});
}

/// prompt | chosen | rejected, as JSON; of KTO's paired rows too.
std::string normal_pair(const std::string& json) {
  std::string out;
  for (const Purpose purpose : {Purpose::pairs, Purpose::unpaired}) {
    const auto sample = read_pair(json, purpose);
    const std::string text = sample ? cat(sample->prompt.dump(), " | ", sample->completion.dump(),
                                          " | ", sample->rejected.dump())
                                    : "!" + sample.error().what;
    EXPECT_TRUE(out.empty() || out == text) << json << ": " << out << " and " << text;
    out = text;
  }
  return out;
}

std::string expected_pair(const std::string& prompt,
                          const std::string& chosen = dialogue({assistant_turn("Fine")}),
                          const std::string& rejected = dialogue({assistant_turn("Bad")})) {
  return prompt + " | " + chosen + " | " + rejected;
}

const std::string fine_dialogue = dialogue({user_turn("How?"), assistant_turn("Fine")}),
                  bad_dialogue = dialogue({user_turn("How?"), assistant_turn("Bad")});

TEST(PairwisePrompt, OfTwoWholeDialoguesIsTheirCommonBeginning) {
  const std::string wanted = expected_pair(dialogue({user_turn("How?")}));
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue)), wanted);
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue, {{"prompt", json_text("How?")}})),
            wanted);
  EXPECT_EQ(normal_pair(
                pair_row(fine_dialogue, bad_dialogue, {{"prompt", dialogue({user_turn("How?")})}})),
            wanted);
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue, {{"messages", fine_dialogue}})),
            wanted);
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue, {{"messages", bad_dialogue}})),
            wanted);
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue,
                                 {{"conversations", dialogue({user_turn("How?")})}})),
            wanted);
  // HuggingFaceH4/ultrafeedback_binarized
  EXPECT_EQ(
      normal_pair(pair_row(
          fine_dialogue, bad_dialogue,
          {{"prompt", json_text("How?")}, {"messages", fine_dialogue}, {"score_chosen", "9.0"}})),
      wanted);
  const std::string system = dialogue({system_turn("Be brief."), user_turn("How?")});
  EXPECT_EQ(normal_pair(pair_row(fine_dialogue, bad_dialogue, {{"prompt", system}})),
            expected_pair(system));
}

TEST(PairwisePrompt, OfTwoWholeDialoguesThatContradictsThemIsRefused) {
  const std::string said = normal_pair(
      pair_row(fine_dialogue, bad_dialogue, {{"prompt", dialogue({user_turn("Who?")})}}));
  EXPECT_THAT(said, AllOf(HasSubstr("!pairs.jsonl:7"), HasSubstr("\"prompt\" has other messages"),
                          HasSubstr("data.columns.prompt to \"\"")));
  EXPECT_THAT(
      normal_pair(pair_row(fine_dialogue, bad_dialogue,
                           {{"messages", dialogue({user_turn("Who?"), assistant_turn("Fine")})}})),
      HasSubstr("\"messages\" has other messages"));
  EXPECT_TRUE(
      read_pair(pair_row(fine_dialogue, bad_dialogue,
                         {{"messages", dialogue({user_turn("Who?"), assistant_turn("Fine")})}}),
                Purpose::pairs, {{"messages", ""}}));
  EXPECT_THAT(
      normal_pair(pair_row(fine_dialogue, json_text("Bad"), {{"prompt", json_text("How?")}})),
      HasSubstr("\"chosen\" and \"rejected\"; only the first is a whole dialogue"));
}

TEST(PairwisePrompt, ThatIsGivenHasTheAnswersBehindIt) {
  const std::string wanted = expected_pair(dialogue({user_turn("How?")}));
  EXPECT_EQ(
      normal_pair(pair_row(json_text("Fine"), json_text("Bad"), {{"prompt", json_text("How?")}})),
      expected_pair(json_text("How?"), json_text("Fine"), json_text("Bad")));
  EXPECT_EQ(
      normal_pair(pair_row(dialogue({assistant_turn("Fine")}), dialogue({assistant_turn("Bad")}),
                           {{"prompt", json_text("How?")}})),
      wanted);
  for (const char* column : {"prompt", "messages", "conversations"})
    EXPECT_EQ(normal_pair(pair_row(json_text("Fine"), json_text("Bad"),
                                   {{column, dialogue({user_turn("How?")})}})),
              wanted);
  EXPECT_EQ(normal_pair(pair_row(json_text("Fine"), json_text("Bad"),
                                 {{"prompt", json_text("How?")}, {"messages", fine_dialogue}})),
            expected_pair(json_text("How?"), json_text("Fine"), json_text("Bad")));
  EXPECT_EQ(
      normal_pair(pair_row(dialogue({assistant_turn("Fine")}), dialogue({assistant_turn("Bad")}),
                           {{"prompt", json_text("How?")}, {"messages", fine_dialogue}})),
      wanted);
}

TEST(PairwisePrompt, OfAnotherColumnIsRefused) {
  for (const std::string& other :
       {dialogue({user_turn("Who?")}), dialogue({system_turn("Be brief."), user_turn("How?")}),
        dialogue({user_turn("Who?"), assistant_turn("Fine")})})
    EXPECT_THAT(normal_pair(pair_row(json_text("Fine"), json_text("Bad"),
                                     {{"prompt", json_text("How?")}, {"messages", other}})),
                HasSubstr("\"prompt\" and \"messages\" are two different prompts"));
}

TEST(PairwisePrompt, WithAnAnswerIsRefused) {
  for (const std::string& answer : {json_text("Fine"), dialogue({assistant_turn("Fine")}),
                                    dialogue({assistant_turn(" Fine ")})})
    for (const char* column : {"prompt", "messages", "conversations"}) {
      const std::string said = normal_pair(
          pair_row(answer, dialogue({assistant_turn("Bad")}), {{column, fine_dialogue}}));
      EXPECT_THAT(said, AllOf(HasSubstr("!pairs.jsonl:7"),
                              HasSubstr(cat("the prompt under \"", column,
                                            "\" already ends with the answer under \"chosen\"")),
                              HasSubstr(cat("data.columns.", column, " to \"\""))));
    }
  EXPECT_THAT(
      normal_pair(pair_row(json_text("Fine"), json_text("Bad"), {{"messages", bad_dialogue}})),
      HasSubstr("the answer under \"rejected\""));
  EXPECT_THAT(normal_pair(pair_row(json_text(" Fine"), json_text(" Bad"),
                                   {{"prompt", json_text("\n\nHuman: How?\n\nAssistant: Fine")}})),
              HasSubstr("already ends with the answer"));
  // A question may end with the words of an answer.
  EXPECT_EQ(normal_pair(
                pair_row(json_text("no"), json_text("yes"), {{"prompt", json_text("yes or no")}})),
            expected_pair(json_text("yes or no"), json_text("no"), json_text("yes")));
}

TEST(PairwisePrompt, OfTwoTextsIsTheirCommonBeginning) {
  const std::string human = "\n\nHuman: How?\n\nAssistant:";
  const std::string wanted = expected_pair(json_text(human), json_text(" Fine"), json_text(" Bad"));
  EXPECT_EQ(normal_pair(pair_row(json_text(human + " Fine"), json_text(human + " Bad"))), wanted);
  EXPECT_EQ(normal_pair(pair_row(json_text(human + " Fine"), json_text(human + " Bad"),
                                 {{"prompt", json_text(human)}})),
            wanted);
}

TEST(PairwiseMessages, AreReadFromTheirJsonText) {
  const std::string wanted = expected_pair(dialogue({user_turn("How?")}));
  EXPECT_EQ(normal_pair(pair_row(json_text(fine_dialogue), json_text(bad_dialogue),
                                 {{"prompt", json_text("How?")}})),
            wanted);
  EXPECT_EQ(normal_pair(pair_row(json_text(dialogue({assistant_turn("Fine")})),
                                 json_text(dialogue({assistant_turn("Bad")})),
                                 {{"prompt", json_text(" " + dialogue({user_turn("How?")}))}})),
            wanted);
  EXPECT_EQ(normal_pair(pair_row(
                json_text(R"([{"from":"human","value":"How?"},{"from":"gpt","value":"Fine"}])"),
                json_text(bad_dialogue))),
            wanted);
  // Texts that are not messages stay texts.
  EXPECT_EQ(normal_pair(pair_row(json_text("[1, 2]"), json_text("[{\"a\": 1}]"),
                                 {{"prompt", json_text("[")}})),
            expected_pair(json_text("["), json_text("[1, 2]"), json_text("[{\"a\": 1}]")));
}

TEST(PairwiseMessages, OfPythonsNotationAreRefused) {
  for (const char* python : {"[{'role': 'user', 'content': 'How?'}]",
                             "[{'content': 'How?', 'role': 'user'}\n {'content': 'a'}]",
                             "[{\"role\": \"user\", \"content\": None}]", "[{\"role\": \"us"})
    EXPECT_THAT(normal_pair(pair_row(json_text(python), json_text(python),
                                     {{"prompt", json_text("How?")}})),
                AllOf(HasSubstr("!pairs.jsonl:7: \"chosen\": expected text, or messages"),
                      HasSubstr("json.dumps")));
}

}  // namespace
}  // namespace troupe::engine::data
