#include "engine/data/layouts/encode.h"

#include <gmock/gmock.h>

#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;
using Template = ByteEncoder::Template;

Json chat(std::initializer_list<std::pair<const char*, const char*>> turns) {
  Json::Array out;
  for (const auto& [role, text] : turns) out.push_back(message(role, text));
  return Json(std::move(out));
}

SftExample sft(const Sample& sample, const TextEncoder& encoder,
               const EncodeOptions& options = {}) {
  auto example = value_or_throw(encode_sft(sample, encoder, options));
  EXPECT_TRUE(example.has_value());
  return *example;
}

std::string whole(const SftExample& example) {
  return text_of_ids(example.ids);
}
std::string trained(const SftExample& example) {
  return text_of_ids(example.ids, &example.weights);
}

TEST(Sft, MasksThePromptAndEndsTheCompletion) {
  const ByteEncoder encoder;
  const auto example = sft({.prompt = "2+2=", .completion = "4"}, encoder);
  EXPECT_EQ(whole(example), "<s>2+2=4<eos>");
  EXPECT_EQ(trained(example), "4<eos>");
}

TEST(Sft, AnEndThatIsThereAlreadyIsNotDoubled) {
  const ByteEncoder encoder;
  EXPECT_EQ(whole(sft({.prompt = "p", .completion = "c<eos>"}, encoder)), "<s>pc<eos>");
  EXPECT_EQ(whole(sft({.prompt = "p", .completion = "c"}, encoder, {.append_end_token = false})),
            "<s>pc");
  EXPECT_EQ(trained(sft({.prompt = "p", .completion = ""}, encoder)), "<eos>");
}

TEST(Sft, ATokenAcrossTheBorderIsTrainedOn) {
  const ByteEncoder encoder;
  const auto example = sft({.prompt = "xa", .completion = "bc"}, encoder);
  EXPECT_EQ(example.ids, (std::vector<std::int32_t>{ByteEncoder::start, 'x', ByteEncoder::ab, 'c',
                                                    ByteEncoder::end}));
  EXPECT_EQ(example.weights, (std::vector<float>{0, 0, 1, 1, 1}));
}

TEST(Sft, TextWithoutAPromptIsTrainedOnAsAWhole) {
  const auto example = sft({.prompt = Json(), .completion = "once"}, ByteEncoder());
  EXPECT_EQ(whole(example), "<s>once<eos>");
  EXPECT_EQ(example.weights, (std::vector<float>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(
      trained(sft({.prompt = "p", .completion = "c"}, ByteEncoder(), {.train_on_prompt = true})),
      "<s>pc<eos>");
}

TEST(Sft, TrainsEveryTurnOfTheAssistant) {
  const auto dialogue = chat(
      {{"system", "s"}, {"user", "u"}, {"assistant", "one"}, {"user", "v"}, {"assistant", "two"}});
  for (const auto kind : {Template::plain, Template::blocks}) {
    const auto example = sft({.prompt = Json(), .completion = dialogue}, ByteEncoder(kind));
    EXPECT_EQ(
        whole(example),
        "<system>s<eos>\n<user>u<eos>\n<assistant>one<eos>\n<user>v<eos>\n<assistant>two<eos>\n");
    EXPECT_EQ(trained(example),
              kind == Template::plain ? "one<eos>\ntwo<eos>\n" : "one<eos>two<eos>");
  }
}

TEST(Sft, ATurnsOwnWeightIsKept) {
  auto dialogue = chat({{"user", "u"}, {"assistant", "one"}, {"user", "v"}, {"assistant", "two"}});
  dialogue.array()[1].set("loss_weight", 0.0);
  EXPECT_EQ(trained(sft({.prompt = Json(), .completion = dialogue}, ByteEncoder())), "two<eos>\n");
  EXPECT_EQ(trained(sft({.prompt = Json(), .completion = dialogue}, ByteEncoder(Template::blocks))),
            "two<eos>");
}

TEST(Sft, AnswersInThePromptAreNotTrainedOn) {
  const Sample sample{.prompt = chat({{"user", "u"}, {"assistant", "one"}, {"user", "v"}}),
                      .completion = chat({{"assistant", "two"}})};
  for (const auto kind : {Template::plain, Template::blocks})
    EXPECT_EQ(trained(sft(sample, ByteEncoder(kind))), "two<eos>\n");
}

TEST(Sft, ATemplateThatMarksOnlyWhereGenerationBeginsGivesWhatGenerationSees) {
  const auto example =
      sft({.prompt = chat({{"user", "1,2"}}), .completion = chat({{"assistant", "3"}})},
          ByteEncoder(Template::announces));
  EXPECT_EQ(whole(example), "1,2=3<eos>");
  EXPECT_EQ(trained(example), "3<eos>");
}

TEST(Sft, ATemplateThatRewritesEarlierAnswersIsRefused) {
  const auto dialogue =
      chat({{"user", "u"}, {"assistant", "one"}, {"user", "v"}, {"assistant", "two"}});
  const auto example =
      encode_sft({.prompt = Json(), .completion = dialogue}, ByteEncoder(Template::rewrites), {});
  ASSERT_FALSE(example);
  EXPECT_THAT(example.error().what, HasSubstr("generation"));
}

TEST(Sft, ConversationsNeedAChatTemplate) {
  const auto example =
      encode_sft({.prompt = Json(), .completion = chat({{"user", "u"}, {"assistant", "a"}})},
                 ByteEncoder(Template::none), {});
  ASSERT_FALSE(example);
  EXPECT_EQ(example.error().code, Errc::unsupported);
  EXPECT_THAT(example.error().what, HasSubstr("chat_template"));
}

TEST(Sft, KeepsTheStartOfLongRowsAndSaysWhenNothingIsLeft) {
  const ByteEncoder encoder;
  const Sample sample{.prompt = "2+2=", .completion = "four"};
  const auto cut = sft(sample, encoder, {.max_length = 7});
  EXPECT_EQ(whole(cut), "<s>2+2=fo");
  EXPECT_EQ(cut.cut_tokens, 3);
  EXPECT_EQ(sft(sample, encoder, {.max_length = 10}).cut_tokens, 0);
  EXPECT_FALSE(value_or_throw(encode_sft(sample, encoder, {.max_length = 5})));
  EXPECT_TRUE(value_or_throw(encode_sft(sample, encoder, {.max_length = 6})));
}

TEST(Sft, TokenIdsAreTakenAsTheyAre) {
  Sample sample;
  sample.tokens = TokenRow{{5, 6, 7}, {-100, 6, -100}};
  const auto example = sft(sample, ByteEncoder());
  EXPECT_EQ(example.ids, (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_EQ(example.weights, (std::vector<float>{0, 1, 0}));
  // The first token has no probability: a label on it alone is nothing to train on.
  sample.tokens = TokenRow{{5, 6}, {5, -100}};
  EXPECT_FALSE(value_or_throw(encode_sft(sample, ByteEncoder(), {})));
}

TEST(Sft, ATokenThatTheModelDoesNotHaveIsRefused) {
  class Small : public ByteEncoder {
    std::int64_t vocabulary() const override { return 200; }
  };
  const auto example = encode_sft({.prompt = "p", .completion = "\xC3\xA9"}, Small(), {});
  ASSERT_FALSE(example);
  EXPECT_EQ(example.error().code, Errc::bad_input);
  EXPECT_THAT(example.error().what, HasSubstr("vocabulary is 199"));
}

TEST(Pairs, ShareThePromptAndEndBothCompletions) {
  const auto pair = value_or_throw(
      encode_pair({.prompt = "p", .completion = " good", .rejected = " bad"}, ByteEncoder(), {}));
  ASSERT_TRUE(pair);
  EXPECT_EQ(whole(pair->chosen), "<s>p good<eos>");
  EXPECT_EQ(trained(pair->chosen), " good<eos>");
  EXPECT_EQ(whole(pair->rejected), "<s>p bad<eos>");
  EXPECT_EQ(trained(pair->rejected), " bad<eos>");
}

TEST(Pairs, OfMessagesAreRenderedAndALostSideLosesThePair) {
  const Sample sample{.prompt = chat({{"user", "u"}}),
                      .completion = chat({{"assistant", "good"}}),
                      .rejected = chat({{"assistant", "b"}})};
  const auto pair = value_or_throw(encode_pair(sample, ByteEncoder(), {}));
  EXPECT_EQ(whole(pair->rejected), "<user>u<eos>\n<assistant>b<eos>\n");
  EXPECT_EQ(trained(pair->chosen), "good<eos>\n");
  const auto prompt =
      value_or_throw(ByteEncoder().encode("<user>u<eos>\n<assistant>", false)).size();
  EXPECT_TRUE(value_or_throw(
      encode_pair(sample, ByteEncoder(), {.max_length = static_cast<std::int64_t>(prompt) + 1})));
  EXPECT_FALSE(value_or_throw(
      encode_pair(sample, ByteEncoder(), {.max_length = static_cast<std::int64_t>(prompt)})));
}

TEST(Prompts, EndWhereGenerationBegins) {
  const auto text =
      value_or_throw(encode_prompt({.prompt = "2+2", .answer = "4"}, ByteEncoder(), {}));
  EXPECT_EQ(text_of_ids(text->ids), "<s>2+2");
  EXPECT_EQ(text->text, "2+2");
  EXPECT_EQ(text->answer, Json("4"));
  const auto messages = value_or_throw(encode_prompt(
      {.prompt = chat({{"user", "u"}}), .tools = Json(Json::Array{Json(1)})}, ByteEncoder(), {}));
  EXPECT_EQ(messages->text, "[tools]<user>u<eos>\n<assistant>");
  EXPECT_EQ(text_of_ids(messages->ids), messages->text);
  EXPECT_FALSE(value_or_throw(encode_prompt({.prompt = "2+2"}, ByteEncoder(), {.max_length = 3})));
}

}  // namespace
}  // namespace troupe::engine::data
