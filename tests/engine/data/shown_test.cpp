// What a chat template does not show is refused by name or listed.
#include "engine/data/layouts/shown.h"

#include <gmock/gmock.h>

#include "engine/base/text/text.h"
#include "engine/data/layouts/encode.h"
#include "engine/tokenizer/chat_template.h"
#include "tests/engine/data/byte_encoder.h"

namespace troupe::engine::data::shown {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Renders with a Jinja template.
class TemplateEncoder : public ByteEncoder {
 public:
  explicit TemplateEncoder(const std::string& source)
      : template_(value_or_throw(tokenizer::ChatTemplate::parse(source, "template"))) {}
  Result<RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                   const Json& tools) const override {
    const auto rendered = template_.render(
        {.messages = messages, .tools = tools, .add_generation_prompt = add_generation_prompt});
    RETURN_IF_ERROR(rendered);
    return RenderedChat{rendered->text, rendered->assistant_spans};
  }

 private:
  tokenizer::ChatTemplate template_;
};

const std::string plain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
const std::string full =
    "{{ tools | tojson if tools else '' }}{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}{{ m.content }}"
    "{{ m.tool_calls | tojson if m.tool_calls else '' }}{{ m.name or '' }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
// As DeepSeek-R1's: only the generation prompt opens the reasoning.
const std::string opens =
    "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<assistant><think>\n{% endif %}";

Json parsed(const std::string& text) {
  return value_or_throw(parse_json(text, "test"));
}

Result<std::optional<SftExample>> encoded(const std::string& source, const std::string& messages,
                                          const std::string& tools = "null") {
  return encode_sft({.prompt = Json(), .completion = parsed(messages), .tools = parsed(tools)},
                    TemplateEncoder(source), {});
}

std::string text_of(const std::string& source, const std::string& messages) {
  const auto example = value_or_throw(encoded(source, messages));
  return text_of_ids(example->ids);
}

const std::string turn = R"([{"role": "user", "content": "u"}, {"role": "assistant", )";

TEST(Shown, WhatATemplateDoesNotShowIsRefusedByName) {
  const std::string answer = turn + R"("content": "a"}])", tools = R"([{"name": "t"}])",
                    calls = turn + R"("content": "a", "tool_calls": [{"name": "t"}]}])",
                    thinks = turn + R"("content": "a", "reasoning_content": "r"}])";
  EXPECT_TRUE(encoded(full, answer, tools));
  EXPECT_TRUE(encoded(full, calls));
  EXPECT_TRUE(encoded(full, thinks));
  EXPECT_THAT(encoded(plain, answer, tools).error().what, HasSubstr("the tools of the row"));
  EXPECT_THAT(encoded(plain, calls).error().what, HasSubstr("tool_calls"));
  EXPECT_THAT(encoded(plain, thinks).error().what, HasSubstr("reasoning_content"));
  const auto prompt = encode_prompt(
      {.prompt = parsed(R"([{"role": "user", "content": "u"}])"), .tools = parsed(tools)},
      TemplateEncoder(plain), {});
  EXPECT_THAT(prompt.error().what, HasSubstr("the tools of the row"));
}

TEST(Shown, OtherMembersAreListedWhereTheTextIsTheSame) {
  const Json messages = parsed(R"([{"role": "user", "content": "u", "name": "n", "id": 3}])");
  EXPECT_THAT(unshown_members(messages, Json(), TemplateEncoder(plain)), ElementsAre("id", "name"));
  EXPECT_THAT(unshown_members(messages, Json(), TemplateEncoder(full)), ElementsAre("id"));
  EXPECT_THAT(unshown_members(parsed(turn + R"("content": "a"}])"), Json(), TemplateEncoder(plain)),
              IsEmpty());
}

TEST(Shown, TagsThatTheGenerationPromptOpensAreWrittenOnce) {
  const std::string begun = "<user>u<eos><assistant><think>\n";
  for (const std::string content :
       {R"("<think>\nT\n</think>\n\nA")", R"("<think>T\n</think>\n\nA")",
        R"("\n<think>\nT\n</think>\n\nA")"})
    EXPECT_EQ(text_of(opens, cat(turn, "\"content\": ", content, "}]")),
              begun + "T\n</think>\n\nA<eos>")
        << content;
  EXPECT_EQ(text_of(opens, turn + R"("content": "A", "reasoning_content": "T"}])"),
            begun + "T\n</think>\n\nA<eos>");
  // Text that only looks like the end of the prompt stays.
  EXPECT_EQ(text_of("{% for m in messages %}{{ m.content }}{% endfor %}"
                    "{% if add_generation_prompt %}A:{% endif %}",
                    turn + R"x("content": ":)"}])x"),
            "uA::)<eos>");
}

TEST(Shown, APromptThatEndsWithTheAssistantIsContinued) {
  const auto prompt = [](const std::string& content) {
    return encode_prompt({.prompt = parsed(cat(turn, "\"content\": ", content, "}]"))},
                         TemplateEncoder(plain), {});
  };
  EXPECT_EQ(value_or_throw(prompt("\"Sure, \""))->text, "<user>u<eos><assistant>Sure, ");
  EXPECT_EQ(
      value_or_throw(
          encode_prompt(
              {.prompt = parsed(turn + R"("content": "Sure, "}])")},
              TemplateEncoder("{% for m in messages %}{{ m.content | trim }}|{% endfor %}"), {}))
          ->text,
      "u|Sure,");
  EXPECT_THAT(prompt("\"\"").error().what, HasSubstr("continues"));
}

TEST(Shown, EveryAnswerEndsWhereTheEndTokenIsWanted) {
  const Sample pair{.prompt = parsed(R"([{"role": "user", "content": "u"}])"),
                    .completion = parsed(R"([{"role": "assistant", "content": "good"}])"),
                    .rejected = parsed(R"([{"role": "assistant", "content": "bad"}])")};
  const auto answers = [&](const TextEncoder& encoder, EndToken end) {
    const auto example = value_or_throw(encode_pair(pair, encoder, {.end_token = end}));
    return text_of_ids(example->chosen.ids, &example->chosen.weights) + "|" +
           text_of_ids(example->rejected.ids, &example->rejected.weights);
  };
  // ByteEncoder's turns end with "<eos>\n", as ChatML's do.
  EXPECT_EQ(answers(ByteEncoder(), EndToken::text), "good<eos>\n|bad<eos>\n");
  EXPECT_EQ(answers(ByteEncoder(), EndToken::always), "good<eos>\n<eos>|bad<eos>\n<eos>");
  EXPECT_EQ(answers(TemplateEncoder(plain), EndToken::always), "good<eos>|bad<eos>");
}

TEST(Shown, TheAnswersOfAPairMayBeginTogether) {
  // "a" of the prompt and "b" of the first answer are one token.
  const auto trained = [](const Sample& pair, AnswerStart start) {
    const auto example = *value_or_throw(encode_pair(pair, ByteEncoder(), {.answer_start = start}));
    return text_of_ids(example.chosen.ids, &example.chosen.weights) + "|" +
           text_of_ids(example.rejected.ids, &example.rejected.weights);
  };
  const Sample pair{.prompt = "xa", .completion = "bc", .rejected = "dc"},
      turned{.prompt = "xa", .completion = "dc", .rejected = "bc"};
  EXPECT_EQ(trained(pair, AnswerStart::own), "abc<eos>|dc<eos>");
  EXPECT_EQ(trained(pair, AnswerStart::common), "abc<eos>|adc<eos>");
  EXPECT_EQ(trained(turned, AnswerStart::common), "adc<eos>|abc<eos>");
}

TEST(Shown, EveryRowBeginsWithTheBeginTokenWhereItIsWanted) {
  const Sample chat{.prompt = parsed(R"([{"role": "user", "content": "u"}])"),
                    .completion = parsed(R"([{"role": "assistant", "content": "good"}])")};
  const auto row = [](const Sample& sample, BeginToken begin) {
    return *value_or_throw(encode_sft(sample, ByteEncoder(), {.begin_token = begin}));
  };
  const auto as_written = row(chat, BeginToken::text), begun = row(chat, BeginToken::always);
  EXPECT_EQ(as_written.ids.front(), '<');
  ASSERT_EQ(begun.ids.size(), as_written.ids.size() + 1);
  EXPECT_EQ(begun.ids.front(), ByteEncoder::start);
  EXPECT_EQ(begun.weights.front(), 0);
  EXPECT_EQ(text_of_ids(begun.ids, &begun.weights), "good<eos>\n");
  // Plain text has it already.
  const Sample text{.prompt = "p", .completion = "c"};
  EXPECT_EQ(row(text, BeginToken::always).ids, row(text, BeginToken::text).ids);
}

}  // namespace
}  // namespace troupe::engine::data::shown
