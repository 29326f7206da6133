// Members of rows that other tools read: each is used, refused by name, or listed as unread.
#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Sample> member_sample(const std::string& json, LayoutOptions options = {}) {
  const Row row{value_or_throw(parse_json(json, "a test")), "rows.jsonl", 7, 6};
  if (options.layout == Layout::automatic)
    options.layout = value_or_throw(detect_layout(row, options));
  return to_sample(row, options);
}

/// prompt | completion | rejected, of a row in a chat; "!message" for an error.
std::string member_text(const std::string& json, Purpose purpose = Purpose::sft,
                        ChatUse chat = ChatUse::always) {
  const auto sample = member_sample(json, {.purpose = purpose, .chat = chat});
  if (!sample) return "!" + sample.error().what;
  return cat(sample->prompt.dump(), " | ", sample->completion.dump(), " | ",
             sample->rejected.dump());
}

TEST(SystemColumn, IsPartOfThePromptInEveryLayout) {
  const std::string system = R"({"role":"system","content":"S"},{"role":"user","content":"p"})";
  for (
      const auto& [json, purpose] : std::vector<std::pair<const char*, Purpose>>{
          {R"({"system":"S","prompt":"p","completion":"c"})", Purpose::sft},
          {R"({"system":"S","question":"p","answer":"c"})", Purpose::sft},
          {R"({"system":"S","messages":[{"role":"user","content":"p"},{"role":"assistant","content":"c"}]})",
           Purpose::sft},
          {R"({"system":"S","instruction":"p","output":"c"})", Purpose::sft},
          {R"({"system":"S","prompt":"p","completion":"c","label":true})", Purpose::unpaired},
          {R"({"system":"S","prompt":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
          {R"({"system":"S","question":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
          {R"({"system":"S","input":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
          {R"({"system":"S","instruction":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
          {R"({"system":"S","chosen":[{"role":"user","content":"p"},{"role":"assistant","content":"c"}],)"
           R"("rejected":[{"role":"user","content":"p"},{"role":"assistant","content":"r"}]})",
           Purpose::pairs},
          {R"({"system":"S","prompt":"p","answer":"c"})", Purpose::prompts},
          {R"({"system":"S","messages":[{"role":"user","content":"p"}]})", Purpose::prompts}})
    EXPECT_THAT(member_text(json, purpose), HasSubstr(system)) << json;
  EXPECT_EQ(
      member_text(R"({"system":"S","prompt":"p","completion":"c"})", Purpose::sft, ChatUse::never),
      R"("S\n\np" | "c" | null)");
  const std::string twice =
      R"({"system":"S","messages":[{"role":"system","content":"S"},{"role":"user","content":"p"},)"
      R"({"role":"assistant","content":"c"}]})";
  EXPECT_THAT(member_text(twice), testing::Not(HasSubstr("S\"},{\"role\":\"system")));
  EXPECT_THAT(member_text(R"({"system":"T",)" + twice.substr(14)),
              HasSubstr("two different system messages"));
}

TEST(SystemOption, IsTheSystemMessageOfRowsThatHaveNone) {
  const auto first = [](const std::string& json, Purpose purpose) {
    const auto sample =
        member_sample(json, {.purpose = purpose, .chat = ChatUse::always, .system = "D"});
    if (!sample) return "!" + sample.error().what;
    const Json& list = sample->prompt.is_array() ? sample->prompt : sample->completion;
    return cat(list.array()[0].find("content")->string(), ", ",
               list.array()[1].find("content")->string());
  };
  for (const auto& [json, purpose] : std::vector<std::pair<std::string, Purpose>>{
           {R"("prompt":"p","completion":"c"})", Purpose::sft},
           {R"("messages":[{"role":"user","content":"p"},{"role":"assistant","content":"c"}]})",
            Purpose::sft},
           {R"("instruction":"p","output":"c"})", Purpose::sft},
           {R"("prompt":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
           {R"("instruction":"p","chosen":"c","rejected":"r"})", Purpose::pairs},
           {R"("prompt":"p","answer":"c"})", Purpose::prompts}}) {
    EXPECT_EQ(first("{" + json, purpose), "D, p") << json;
    EXPECT_EQ(first(R"({"system":"S",)" + json, purpose), "S, p") << json;
  }
  EXPECT_EQ(first(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"p"},)"
                  R"({"role":"assistant","content":"c"}]})",
                  Purpose::sft),
            "S, p");
  for (const Layout layout : {Layout::token_ids, Layout::text, Layout::steps, Layout::placeholders})
    EXPECT_FALSE(takes_system(layout));
}

TEST(ContextColumn, IsTheInputOfAnInstructionAndRefusedElsewhere) {
  EXPECT_THAT(member_text(R"({"instruction":"Who won?","context":"Ada won.","response":"Ada"})"),
              HasSubstr(R"("content":"Who won?\nAda won.")"));
  EXPECT_THAT(member_text(R"({"question":"Who won?","context":"Ada won.","answer":"Ada"})"),
              AllOf(HasSubstr("!rows.jsonl:7: the column \"context\" is not read and would change"),
                    HasSubstr("data.columns.context to \"\"")));
  EXPECT_TRUE(member_sample(R"({"question":"a","context":"b","answer":"c"})",
                            {.columns = {{"context", ""}}}));
}

TEST(RowMembers, ThatWouldChangeTheResultAreRefusedByName) {
  for (const char* member :
       {R"("weight":0)", R"("weight":2.5)", R"("weight":"0.5")", R"("train":false)",
        R"("loss_weight":0)", R"("images":["a.png"])", R"("image":"a.png")", R"("audios":["a"])",
        R"("videos":["a"])", R"("input":"x")", R"("history":[["a","b"]])", R"("documents":["a"])",
        R"("tools":[{"name":"f"}])", R"("chat_template_kwargs":{"enable_thinking":false})"}) {
    const std::string name = std::string(member).substr(0, std::string_view(member).find(':'));
    EXPECT_THAT(member_text(cat(R"({"prompt":"a","completion":"b",)", member, "}"), Purpose::sft,
                            ChatUse::never),
                HasSubstr(cat("the column ", name, " is not read and would change the result")));
  }
}

TEST(RowMembers, WithoutEffectPass) {
  for (const char* member : {R"("weight":1)", R"("weight":"1.0")", R"("weight":"12 kg")",
                             R"("train":true)", R"("train":"express")", R"("images":[])",
                             R"("image":null)", R"("context":"")", R"("tools":[])"})
    EXPECT_EQ(member_text(cat(R"({"prompt":"a","completion":"b",)", member, "}"), Purpose::sft,
                          ChatUse::never),
              R"("a" | "b" | null)")
        << member;
}

TEST(RowMembers, ThatNobodyKnowsAreListed) {
  EXPECT_THAT(
      member_sample(R"({"id":1,"prompt":"a","completion":"b","choices":[1],"none":null})")->unread,
      ElementsAre("id", "choices"));
  EXPECT_THAT(member_sample(R"({"text":"a","url":"u"})")->unread, ElementsAre("url"));
  EXPECT_THAT(member_sample(R"({"prompt":"a","answer":"b","data_source":"c",)"
                            R"("reward_model":{"ground_truth":"4"}})",
                            {.purpose = Purpose::prompts})
                  ->unread,
              ElementsAre("data_source", "reward_model"));
  EXPECT_THAT(member_sample(R"({"prompt":"a","reward_model":{"ground_truth":"4"}})",
                            {.purpose = Purpose::prompts})
                  ->unread,
              ElementsAre());
  // A column of another name is read under that name only.
  EXPECT_THAT(
      member_sample(R"({"q":"a","prompt":"x","completion":"b"})", {.columns = {{"prompt", "q"}}})
          ->unread,
      ElementsAre("prompt"));
}

std::string message_with(const std::string& members, const char* role = "assistant") {
  return cat(R"({"messages":[{"role":"user","content":"a"},{"role":")", role, R"(","content":"b",)",
             members, R"(},{"role":"assistant","content":"c"}]})");
}

TEST(MessageWeight, IsThatOfTheLossUnderEveryName) {
  for (const char* member : {R"("weight":0)", R"("train":false)", R"("training":false)",
                             R"("loss_weight":0)", R"("weight":0,"train":false)"}) {
    const auto sample = member_sample(message_with(member));
    ASSERT_TRUE(sample) << sample.error().what;
    const Json& message = sample->completion.array()[1];
    ASSERT_NE(message.find("loss_weight"), nullptr) << member;
    EXPECT_EQ(message.find("loss_weight")->number(), 0) << member;
    EXPECT_EQ(message.find("weight"), nullptr);
    EXPECT_EQ(message.find("train"), nullptr);
  }
  const auto one = member_sample(message_with(R"("weight":1,"train":true)"));
  EXPECT_EQ(one->completion.array()[1].find("loss_weight")->number(), 1);
  EXPECT_EQ(one->completion.array()[1].object().size(), 3u);
}

TEST(MessageWeight, ThatIsNoneOrOfAnotherRoleIsRefused) {
  EXPECT_THAT(member_sample(message_with(R"("weight":"0")")).error().what,
              HasSubstr("expected a number of at least 0, or true or false, under \"weight\""));
  EXPECT_THAT(member_sample(message_with(R"("weight":-1)")).error().what, HasSubstr("weight"));
  EXPECT_THAT(member_sample(message_with(R"("weight":1,"train":false)")).error().what,
              HasSubstr("two different weights"));
  EXPECT_THAT(member_sample(message_with(R"("train":true)", "user")).error().what,
              HasSubstr("only messages of the assistant are trained on"));
  EXPECT_THAT(member_sample(message_with(R"("train_detail":[])")).error().what,
              HasSubstr("train_detail"));
}

/// The labels of a row of token ids, or the error.
std::string token_labels(const std::string& members, Purpose purpose = Purpose::sft) {
  const auto sample = member_sample("{" + members + "}", {.purpose = purpose});
  if (!sample) return "!" + sample.error().what;
  const auto text = [](const TokenRow& row) {
    std::string out;
    for (std::size_t i = 0; i < row.ids.size(); ++i)
      out += cat(i ? " " : "", row.ids[i], row.labels[i] == -100 ? "-" : "");
    return out;
  };
  return sample->rejected_tokens ? cat(text(*sample->tokens), " | ", text(*sample->rejected_tokens))
                                 : text(*sample->tokens);
}

TEST(TokenMasks, ExcludeTokensFromTheLoss) {
  for (const char* name : {"completion_mask", "assistant_masks", "assistant_mask", "loss_mask"})
    EXPECT_EQ(token_labels(cat(R"("input_ids":[5,6,7],")", name, R"(":[0,1,1])")), "5- 6 7");
  EXPECT_EQ(
      token_labels(R"("input_ids":[5,6,7],"completion_mask":[0,1,1],"assistant_masks":[1,1,0])"),
      "5- 6 7-");
  EXPECT_EQ(token_labels(R"("input_ids":[5,6,7],"labels":[-100,6,7],"loss_mask":[1,1,0])"),
            "5- 6 7-");
  EXPECT_THAT(token_labels(R"("input_ids":[5,6,7],"loss_mask":[0,1])"),
              HasSubstr("expected 3 values, 0 or 1, one for each of \"input_ids\", under "
                        "\"loss_mask\", found 2"));
  EXPECT_THAT(token_labels(R"("input_ids":[5,6],"loss_mask":[0,0.5])"), HasSubstr("0.5"));
  EXPECT_THAT(token_labels(R"("input_ids":[5,6],"loss_mask":"01")"), HasSubstr("loss_mask"));
}

TEST(TokenRows, ThatAreSeveralSequencesOrPaddedAreRefused) {
  EXPECT_EQ(token_labels(R"("input_ids":[5,6,7],"attention_mask":[1,1,1],"position_ids":[0,1,2],)"
                         R"("seq_lengths":[3])"),
            "5 6 7");
  EXPECT_THAT(token_labels(R"("input_ids":[5,6,7],"attention_mask":[1,1,0])"),
              HasSubstr("\"attention_mask\" has a 0: padding is not removed"));
  EXPECT_THAT(token_labels(R"("input_ids":[5,6,7],"position_ids":[0,1,0])"),
              HasSubstr("\"position_ids\" does not describe one sequence of 3 tokens"));
  EXPECT_THAT(token_labels(R"("input_ids":[5,6,7],"seq_lengths":[2,1])"),
              HasSubstr("\"seq_lengths\" does not describe one sequence"));
}

TEST(TokenPairs, HaveTheirPromptBeforeBothCompletions) {
  EXPECT_EQ(
      token_labels(R"("prompt_input_ids":[1,2],"chosen_input_ids":[3],"rejected_input_ids":[4,5])",
                   Purpose::pairs),
      "1- 2- 3 | 1- 2- 4 5");
  EXPECT_EQ(token_labels(R"("chosen_input_ids":[1,3],"chosen_labels":[-100,3],)"
                         R"("rejected_input_ids":[1,4],"rejected_labels":[-100,4])",
                         Purpose::pairs),
            "1- 3 | 1- 4");
  EXPECT_THAT(
      token_labels(R"("prompt_input_ids":[1],"chosen_input_ids":[1,3],"chosen_labels":[-100,3],)"
                   R"("rejected_input_ids":[1,4])",
                   Purpose::pairs),
      HasSubstr("\"prompt_input_ids\" and \"chosen_labels\": expected one of them"));
}

}  // namespace
}  // namespace troupe::engine::data
