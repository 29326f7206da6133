// Greedy continuations of real models, letter for letter, while other requests run beside them.
#include <gtest/gtest.h>

#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

struct Model {
  const char* name;
  const char* folder;
};

class ExpectedText : public testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Models, ExpectedText,
                         testing::Values(Model{"stories260k", "stories260k/hf"},
                                         Model{"tinystories-656k", "tinystories-656k"}),
                         [](const auto& each) {
                           return each.param.name[0] == 's' ? "stories260k" : "tinystories656k";
                         });

TEST_P(ExpectedText, GreedyTextIsEqualLetterForLetter) {
  const Json all = value_or_throw(read_json(TROUPE_TEST_DATA "/expected/models/greedy.json"));
  const std::string folder = std::string(TROUPE_TEST_DATA "/models/") + GetParam().folder;
  const auto device = ops::make_cpu_device();
  const auto model = value_or_throw(checkpoint::load_decoder(*device, folder, false));
  const auto text = value_or_throw(tokenizer::Tokenizer::load(folder));
  const TextDecoder decode = [&](std::span<const std::int32_t> ids) {
    return text.decode(ids, true);
  };
  int found = 0;
  for (const Json& entry : all.array()) {
    if (entry.find("model")->string() != GetParam().name) continue;
    ++found;
    Request story, other;
    for (const Json& id : entry.find("prompt_ids")->array())
      story.prompt.push_back(static_cast<std::int32_t>(id.integer()));
    std::vector<std::int32_t> expected;
    for (const Json& id : entry.find("ids")->array())
      expected.push_back(static_cast<std::int32_t>(id.integer()));
    story.params.greedy = true;
    story.params.max_new_tokens = static_cast<std::int32_t>(expected.size() - story.prompt.size());
    other.id = 1;
    other.prompt = {1, 5, 9, 14};
    other.params.max_new_tokens = 50;
    Generator generator = value_or_throw(Generator::create(*model, {.tokens_per_step = 70}));
    const Generation got = value_or_throw(test::generate_all(generator, {story, other})).at(0);
    std::vector<std::int32_t> ids = story.prompt;
    ids.insert(ids.end(), got.ids.begin(), got.ids.end());
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(decode(ids), entry.find("text")->string());
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace troupe::engine::generate
