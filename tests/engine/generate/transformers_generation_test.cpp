// Results of transformers for rules and beam searches beyond those of golden/generation
// (tests/data/generate/make.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/beam_search.h"
#include "engine/generate/generation_config.h"
#include "engine/generate/sampler.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::generate {
namespace {

const std::string folder = TROUPE_TEST_DATA "/generate/",
                  stories = TROUPE_TEST_DATA "/models/stories260k/hf";

std::vector<std::int32_t> integers(const Json& list) {
  std::vector<std::int32_t> values;
  for (const Json& item : list.array()) values.push_back(static_cast<std::int32_t>(item.integer()));
  return values;
}

void expect_rule(const Json& file, const GenerationConfig& config, const Json& row) {
  const std::vector<std::int32_t> ends = integers(*file.find("ends"));
  std::vector<std::int32_t> tokens = integers(*row.find("prompt"));
  const std::size_t prompt = tokens.size(),
                    limit = static_cast<std::size_t>(file.find("limit")->integer());
  for (const std::int32_t id : integers(*row.find("output"))) tokens.push_back(id);
  SCOPED_TRACE(cat(tokens.size(), " tokens, ", prompt, " of them the prompt's"));
  std::vector<double> logits;
  for (const Json& z : file.find("logits")->array()) logits.push_back(z.number());
  SamplingParams params = value_or_throw(
      for_prompt(config.params, config, prompt, static_cast<std::int32_t>(limit - prompt)));
  params.greedy = false;
  const Distribution found = normalize(
      apply_processors(std::span<const double>(logits), {params, tokens, prompt, ends, limit}));
  EXPECT_EQ(found.ids, integers(*row.find("kept")));
  const auto& probabilities = row.find("probabilities")->array();
  ASSERT_EQ(found.ids.size(), probabilities.size());
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    // transformers adds biases in f32.
    EXPECT_NEAR(found.probabilities[i], probabilities[i].number(), 1e-6)
        << "token " << found.ids[i];
  }
}

TEST(TransformersRules, EveryRuleLeavesItsDistribution) {
  const Json file = value_or_throw(read_json(folder + "rules.json"));
  for (const Json& entry : file.find("rules")->array()) {
    SCOPED_TRACE(entry.find("settings")->dump());
    const GenerationConfig config =
        value_or_throw(read_generation_config(*entry.find("settings"), "rules.json"));
    EXPECT_TRUE(config.ignored.empty());
    for (const Json& row : entry.find("rows")->array()) expect_rule(file, config, row);
  }
}

class TransformersBeams : public testing::Test {
 protected:
  void expect_row(const Json& row, const SamplingParams& params, const GeneratorConfig& how) {
    const Request request{.id = 1, .prompt = integers(*row.find("ids")), .params = params};
    const auto found = value_or_throw(beam_search(*model_, request, how));
    const auto& outputs = row.find("outputs")->array();
    ASSERT_EQ(found.size(), outputs.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::vector<std::int32_t> expected = integers(outputs[i]);
      std::vector<std::int32_t> ids = found[i].ids;
      ASSERT_LE(ids.size(), expected.size());
      ids.resize(expected.size(), how.eos_ids.front());  // rows are filled up to the longest
      EXPECT_EQ(ids, expected);
      EXPECT_NEAR(found[i].score, row.find("scores")->array()[i].number(),
                  2e-5 * std::max(1.0, std::abs(found[i].score)));
    }
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::unique_ptr<models::Decoder> model_ =
      value_or_throw(checkpoint::load_decoder(*device_, stories, false));
  tokenizer::Tokenizer words_ = value_or_throw(tokenizer::Tokenizer::load(stories));
};

TEST_F(TransformersBeams, EverySearchFindsItsSequencesAndScores) {
  const Json file = value_or_throw(read_json(folder + "beams.json"));
  for (const Json& entry : file.find("beams")->array()) {
    SCOPED_TRACE(entry.find("settings")->dump());
    GenerationConfig config =
        value_or_throw(read_generation_config(*entry.find("settings"), "beams.json"));
    config.params.max_new_tokens =
        static_cast<std::int32_t>(file.find("max_new_tokens")->integer());
    const GeneratorConfig how{
        .eos_ids = config.eos_ids,
        .decode = [&](std::span<const std::int32_t> ids) { return words_.decode(ids, true); }};
    for (const Json& row : entry.find("rows")->array()) expect_row(row, config.params, how);
  }
}

}  // namespace
}  // namespace troupe::engine::generate
