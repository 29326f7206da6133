// golden/generation: the distributions that transformers' sampling settings leave, step by step,
// and the sequences that its beam searches find, on stories260k. Every setting of the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/beam_search.h"
#include "engine/generate/generation_config.h"
#include "engine/generate/sampler.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/golden.h"

namespace troupe::engine::generate {
namespace {

constexpr const char* file = "generation/generation.json";

std::vector<std::int32_t> integers(const Json& list) {
  std::vector<std::int32_t> values;
  for (const Json& item : list.array()) values.push_back(static_cast<std::int32_t>(item.integer()));
  return values;
}

class GoldenGeneration : public testing::Test {
 protected:
  /// One list of the file, and the settings of each entry, all of which must be known.
  void for_each_entry(std::string_view list,
                      const std::function<void(const Json& entry, const SamplingParams&)>& visit) {
    const Json golden = value_or_throw(read_json(test::golden_folder() + "/" + file));
    const Json* entries = golden.find(list);
    ASSERT_TRUE(entries && !entries->array().empty());
    for (const Json& entry : entries->array()) {
      const Json& settings = *entry.find("settings");
      SCOPED_TRACE(settings.dump());
      const GenerationConfig config = value_or_throw(read_generation_config(settings, file));
      EXPECT_TRUE(config.ignored.empty());
      visit(entry, config.params);
    }
  }

  /// Logits [T, V] of one sequence.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens) {
    std::vector<std::int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), 0);
    const ops::PreparedLayout layout =
        device_->prepare({{0, static_cast<std::int32_t>(tokens.size())}, positions});
    nn::Saved nothing = nn::Saved::nothing();
    const Tensor hidden = model_->forward(tokens, {*device_, layout}, nothing);
    return ops::to_host(*device_, model_->head().logits(hidden, ops::Precision::f32));
  }

  void expect_row(const Json& row, const SamplingParams& params) {
    std::vector<std::int32_t> tokens = integers(*row.find("ids"));
    const std::size_t prompt = tokens.size();
    const auto& steps = row.find("steps")->array();
    for (const Json& step : steps)
      tokens.push_back(static_cast<std::int32_t>(step.find("sampled")->integer()));
    const std::vector<float> z = logits(tokens);
    const auto width = static_cast<std::size_t>(model_->spec().vocabulary);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE("prompt " + row.find("prompt")->string() + ", step " + std::to_string(i));
      const std::size_t known = prompt + i;
      const ProcessorContext context{params, std::span(tokens).first(known), prompt,
                                     model_->spec().eos_ids};
      expect_step(steps[i], normalize(apply_processors(
                                std::span(z).subspan((known - 1) * width, width), context)));
    }
  }

  static void expect_step(const Json& step, const Distribution& found) {
    EXPECT_EQ(std::ranges::count_if(found.probabilities, [](double p) { return p > 0; }),
              step.find("kept")->integer());
    const std::vector<std::int32_t> ids = integers(*step.find("ids"));
    const auto& probabilities = step.find("probabilities")->array();
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto place = std::ranges::find(found.ids, ids[k]);
      ASSERT_NE(place, found.ids.end()) << "token " << ids[k] << " is missing";
      EXPECT_NEAR(found.probabilities[place - found.ids.begin()], probabilities[k].number(), 1e-5)
          << "token " << ids[k];
    }
    const double rest = std::accumulate(probabilities.begin(), probabilities.end(), 1.0,
                                        [](double sum, const Json& p) { return sum - p.number(); });
    for (std::size_t i = 0; i < found.ids.size(); ++i) {
      if (std::ranges::find(ids, found.ids[i]) != ids.end()) continue;
      EXPECT_LE(found.probabilities[i], std::min(rest, probabilities.back().number()) + 1e-5)
          << "token " << found.ids[i];
    }
  }

  void expect_beams(const Json& row, const SamplingParams& params) {
    SCOPED_TRACE("prompt " + row.find("prompt")->string());
    constexpr std::int32_t full_stop = 426;  // the file's end token
    const Request request{.id = 1, .prompt = integers(*row.find("ids")), .params = params};
    const auto found = value_or_throw(beam_search(*model_, request, {.eos_ids = {full_stop}}));
    const auto& sequences = row.find("sequences")->array();
    const auto& scores = row.find("scores")->array();
    ASSERT_EQ(found.size(), sequences.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::vector<std::int32_t> expected = integers(sequences[i]), whole = request.prompt;
      whole.insert(whole.end(), found[i].ids.begin(), found[i].ids.end());
      // The file fills rows up with the end token to the longest of them.
      ASSERT_LE(whole.size(), expected.size());
      whole.resize(expected.size(), full_stop);
      EXPECT_EQ(whole, expected);
      EXPECT_NEAR(found[i].score, scores[i].number(),
                  1e-5 * std::max(1.0, std::abs(scores[i].number())));
    }
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::unique_ptr<models::Decoder> model_ = value_or_throw(
      checkpoint::load_decoder(*device_, TROUPE_TEST_DATA "/models/stories260k/hf", false));
};

TEST_F(GoldenGeneration, EverySamplingSettingLeavesTransformersDistribution) {
  SKIP_WITHOUT_GOLDEN(file);
  for_each_entry("sampling", [&](const Json& entry, SamplingParams params) {
    params.greedy = false;
    params.max_new_tokens = 1000;  // the rows are cut, not ended
    for (const Json& row : entry.find("rows")->array()) expect_row(row, params);
  });
}

TEST_F(GoldenGeneration, EveryBeamSearchFindsTransformersSequencesAndScores) {
  SKIP_WITHOUT_GOLDEN(file);
  for_each_entry("beams", [&](const Json& entry, SamplingParams params) {
    params.max_new_tokens = 24;
    for (const Json& row : entry.find("rows")->array()) expect_beams(row, params);
  });
}

TEST_F(GoldenGeneration, TheFolderHasSomeOfIt) {
  test::expect_some_golden({file});
}

}  // namespace
}  // namespace troupe::engine::generate
