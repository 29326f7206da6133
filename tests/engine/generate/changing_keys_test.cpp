// Models whose rotary positions depend on the length of a sequence (LongRoPE, dynamic NTK): at
// every token the generator has the bits of one forward pass over the sequence so far, for any
// chunks, shared prompts and preemptions.
#include <gtest/gtest.h>

#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

std::unique_ptr<models::Decoder> model_with(ops::Device& device, const nn::RotarySpec& rotary) {
  auto spec = test::tiny_spec();
  spec.rotary = {rotary};
  auto model = std::make_unique<models::Decoder>(device, std::move(spec), false);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 0.4F);
  std::vector<float> values(static_cast<std::size_t>(model->parameters().count()));
  for (float& x : values) x = normal(random);
  device.upload(model->parameters().values(), values);
  return model;
}

std::vector<Request> requests() {
  std::vector<Request> all;
  for (std::int32_t i = 0; i < 6; ++i) {
    Request r;
    r.id = r.sample_id = static_cast<std::uint64_t>(i);
    for (std::int32_t t = 0; t < 5 + 6 * (i % 3); ++t) r.prompt.push_back((7 * t + i % 3) % 37);
    r.params.max_new_tokens = 20;
    r.params.seed = 3;
    all.push_back(std::move(r));
  }
  return all;
}

class ChangingKeys : public testing::TestWithParam<nn::RotarySpec> {};

TEST_P(ChangingKeys, EveryTokenHasTheBitsOfAForwardPassOverItsPrefix) {
  const auto device = ops::make_cpu_device({.threads = 1});
  const auto model = model_with(*device, GetParam());
  const auto wanted = requests();
  auto generator = value_or_throw(Generator::create(
      *model, {.page_size = 4, .pages = 24, .max_sequences = 4, .tokens_per_step = 8}));
  const auto done = value_or_throw(test::generate_all(generator, wanted));
  for (std::size_t i = 0; i < done.size(); ++i) {
    std::vector<std::int32_t> known = wanted[i].prompt;
    for (std::size_t t = 0; t < done[i].ids.size(); ++t) {
      // The last row of a pass over what was known gives the token's log-probability.
      const Tensor hidden = test::full_forward(*model, known);
      const std::vector<std::int32_t> target{done[i].ids[t]};
      const auto last = hidden.rows(hidden.shape()[0] - 1, hidden.shape()[0]);
      const auto scores = model->head().forward(last, {target}, false);
      EXPECT_EQ(ops::to_host(*device, scores.logp)[0], done[i].logp[t])
          << "request " << i << ", token " << t;
      known.push_back(done[i].ids[t]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scalings, ChangingKeys,
    testing::Values(nn::RotarySpec{{1, 0.3, 0.1, 0.03}, 1.2, 12, {0.5, 0.1, 0.02, 0.01}},
                    nn::RotarySpec{{1, 0.3, 0.1, 0.03}, 1, 14, {}, 2.0}),
    [](const auto& each) {
      return each.param.long_inverse_frequencies.empty() ? "Dynamic" : "LongRope";
    });

}  // namespace
}  // namespace troupe::engine::generate
