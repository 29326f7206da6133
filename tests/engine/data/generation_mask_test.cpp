// Training on a chat template's generation blocks.
#include <gtest/gtest.h>

#include "engine/data/layouts/marked_text.h"
#include "engine/tokenizer/prompt_types.h"

namespace troupe::engine::data {
namespace {

/// Renders with a real template; texts of ASCII alone, so that its code points are bytes.
class TemplateEncoder : public TextEncoder {
 public:
  explicit TemplateEncoder(tokenizer::ChatTemplate chat) : chat_(std::move(chat)) {}
  Result<std::vector<std::int32_t>> encode(std::string_view, bool) const override {
    return fail(Errc::unsupported, "not supported");
  }
  Result<RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                   const Json& tools) const override {
    tokenizer::RenderInput input;
    input.messages = messages;
    input.tools = tools;
    input.add_generation_prompt = add_generation_prompt;
    input.tokens = {{"eos_token", "</s>"}};
    auto rendered = chat_.render(input);
    RETURN_IF_ERROR(rendered);
    return RenderedChat{rendered->text, rendered->assistant_spans};
  }
  bool has_chat_template() const override { return true; }
  std::optional<std::int32_t> end_token() const override { return std::nullopt; }
  std::int64_t vocabulary() const override { return 0; }

 private:
  tokenizer::ChatTemplate chat_;
};

const std::string talk =
    R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": "A", "loss_weight": 2},
    {"role": "user", "content": "V"}, {"role": "assistant", "content": "B"}])";
const std::string even_talk =
    R"([{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"},
    {"role": "user", "content": "V"}, {"role": "assistant", "content": "B"}])";

/// "text of the span*weight|..." of the conversation.
std::string trained_text(const std::string& source, const std::string& messages) {
  const TemplateEncoder encoder(value_or_throw(tokenizer::ChatTemplate::parse(source, "test")));
  const auto marked =
      mark_text(Json(), value_or_throw(parse_json(messages, "test")), Json(), encoder);
  if (!marked) return "error: " + marked.error().what;
  std::string out;
  for (const auto& span : marked->trained)
    out += marked->text.substr(span.begin, span.end - span.begin) + "*" +
           std::to_string(static_cast<int>(span.weight)) + "|";
  return out;
}

constexpr const char* loop = "{% for m in messages %}<{{ m.role }}>";

TEST(GenerationMask, TrainsOnTheBlocksAlone) {
  EXPECT_EQ(trained_text(std::string(loop) + "{% if m.role == 'assistant' %}{% generation %}{{ "
                                             "m.content }}!{% endgeneration %};{% else %}"
                                             "{{ m.content }};{% endif %}{% endfor %}",
                         talk),
            "A!*2|B!*1|");
}

TEST(GenerationMask, WithoutBlocksEachAnswerIsFoundByItsPlace) {
  EXPECT_EQ(
      trained_text(
          std::string(loop) +
              "{{ m.content }};{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
          talk),
      "A;*2|B;*1|");
}

TEST(GenerationMask, TakesSeveralBlocksAnAnswerWhereWeightsDoNotDiffer) {
  const std::string separate =
      std::string(loop) +
      "{% if m.role == 'assistant' %}{% generation %}t{% endgeneration %}:{% "
      "generation %}{{ m.content }}"
      "{% endgeneration %};{% else %}{{ m.content }};{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(trained_text(separate, even_talk), "t*1|A*1|t*1|B*1|");
  EXPECT_EQ(trained_text(separate, talk), "t:A;*2|t:B;*1|");
}

TEST(GenerationMask, PromptTypesTrainOnAnswersAndTheirEnds) {
  const TemplateEncoder encoder(value_or_throw(tokenizer::prompt_type("alpaca")));
  const auto marked =
      value_or_throw(mark_text(Json(), value_or_throw(parse_json(talk, "test")), Json(), encoder));
  ASSERT_EQ(marked.trained.size(), 2u);
  EXPECT_EQ(
      marked.text.substr(marked.trained[0].begin, marked.trained[0].end - marked.trained[0].begin),
      "A</s>");
  EXPECT_EQ(marked.trained[0].weight, 2.0f);
}

}  // namespace
}  // namespace troupe::engine::data
