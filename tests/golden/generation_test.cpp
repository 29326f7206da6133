// golden/generation: the distributions that transformers' sampling settings leave, step by step, on stories260k.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/checkpoint/load_decoder.h"
#include "engine/generate/distribution.h"
#include "engine/generate/generation_config.h"
#include "tests/support/golden.h"

namespace troupe::engine::generate {
namespace {

constexpr const char* file = "generation/generation.json";

/// A case is named by the settings that it combines; their values are the file's.
struct Case {
  const char* name;
  std::vector<std::string> settings;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case cases[] = {{"temperature", {"temperature"}},
                      {"top_k", {"top_k"}},
                      {"top_p", {"top_p"}},
                      {"min_p", {"min_p"}},
                      {"repetition_penalty", {"repetition_penalty"}},
                      {"temperature_top_k_top_p", {"temperature", "top_k", "top_p"}},
                      {"temperature_min_p_top_k", {"temperature", "min_p", "top_k"}},
                      {"repetition_penalty_temperature_top_p", {"repetition_penalty", "temperature", "top_p"}},
                      {"temperature_top_k_top_p_min_p", {"temperature", "top_k", "top_p", "min_p"}},
                      {"typical_p", {"typical_p"}},
                      {"epsilon_cutoff", {"epsilon_cutoff"}},
                      {"no_repeat_ngram_size", {"no_repeat_ngram_size"}},
                      {"min_new_tokens", {"min_new_tokens"}}};

std::vector<std::int32_t> integers(const Json& list) {
  std::vector<std::int32_t> values;
  for (const Json& item : list.array()) values.push_back(static_cast<std::int32_t>(item.integer()));
  return values;
}

/// True when `settings` has exactly the members that the case combines.
bool belongs(const Json& settings, const Case& c) {
  return settings.object().size() == c.settings.size() &&
         std::ranges::all_of(c.settings, [&](const std::string& name) { return settings.find(name) != nullptr; });
}

class GoldenSampling : public testing::TestWithParam<Case> {
 protected:
  /// Logits [T, V] of one sequence.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens) {
    std::vector<std::int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), 0);
    const ops::Layout layout{{0, static_cast<std::int32_t>(tokens.size())}, positions};
    nn::Saved nothing = nn::Saved::nothing();
    const Tensor hidden = model_->forward(tokens, {*device_, layout}, nothing);
    return ops::to_host(*device_, model_->head().logits(hidden, ops::Precision::f32));
  }

  void expect_row(const Json& row, const SamplingParams& params) {
    std::vector<std::int32_t> tokens = integers(*row.find("ids"));
    const std::size_t prompt = tokens.size();
    const auto& steps = row.find("steps")->array();
    for (const Json& step : steps) tokens.push_back(static_cast<std::int32_t>(step.find("sampled")->integer()));
    const std::vector<float> z = logits(tokens);
    const auto width = static_cast<std::size_t>(model_->spec().vocabulary);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE("prompt " + row.find("prompt")->string() + ", step " + std::to_string(i));
      const std::size_t known = prompt + i;
      const Context context{params, std::span(tokens).first(known), prompt, model_->spec().eos_ids};
      expect_step(steps[i], normalise(process(std::span(z).subspan((known - 1) * width, width), context)));
    }
  }

  static void expect_step(const Json& step, const Distribution& found) {
    EXPECT_EQ(std::ranges::count_if(found.probabilities, [](double p) { return p > 0; }), step.find("kept")->integer());
    const std::vector<std::int32_t> ids = integers(*step.find("ids"));
    const auto& probabilities = step.find("probabilities")->array();
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto place = std::ranges::find(found.ids, ids[k]);
      ASSERT_NE(place, found.ids.end()) << "token " << ids[k] << " is missing";
      EXPECT_NEAR(found.probabilities[place - found.ids.begin()], probabilities[k].number(), 1e-5) << "token " << ids[k];
    }
    const double rest =
        std::accumulate(probabilities.begin(), probabilities.end(), 1.0, [](double sum, const Json& p) { return sum - p.number(); });
    for (std::size_t i = 0; i < found.ids.size(); ++i) {
      if (std::ranges::find(ids, found.ids[i]) != ids.end()) continue;
      EXPECT_LE(found.probabilities[i], std::min(rest, probabilities.back().number()) + 1e-5) << "token " << found.ids[i];
    }
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::unique_ptr<models::Decoder> model_ =
      value_or_throw(checkpoint::load_decoder(*device_, TROUPE_TEST_DATA "/models/stories260k/hf", false));
};

TEST_P(GoldenSampling, LeavesTransformersDistribution) {
  SKIP_WITHOUT_GOLDEN(file);
  const Json golden = value_or_throw(read_json(test::golden_folder() + "/" + file));
  int found = 0;
  for (const Json& entry : golden.find("sampling")->array()) {
    const Json& settings = *entry.find("settings");
    if (!belongs(settings, GetParam())) continue;
    SCOPED_TRACE(settings.dump());
    GenerationConfig config = value_or_throw(read_generation_config(settings, file));
    EXPECT_TRUE(config.ignored.empty());
    config.params.greedy = false;
    for (const Json& row : entry.find("rows")->array()) {
      expect_row(row, config.params);
      ++found;
    }
  }
  if (found == 0) GTEST_SKIP() << GetParam().name << " is not in " << file;
}
INSTANTIATE_TEST_SUITE_P(Settings, GoldenSampling, testing::ValuesIn(cases), [](const auto& each) { return std::string(each.param.name); });

TEST(GoldenGeneration, TheFolderHasSomeOfIt) { test::expect_some_golden({file}); }

}  // namespace
}  // namespace troupe::engine::generate
