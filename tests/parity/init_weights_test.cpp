// Random initial weights: the same on every grid, and drawn as the settings say.
#include "engine/checkpoint/init_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

using engine::checkpoint::init_weights;
using engine::checkpoint::InitOptions;
using engine::models::Decoder;

std::vector<float> initial(const GridModel& model, const Mesh& mesh, const InitOptions& options) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  Decoder decoder(*device, model.spec, true, mesh.grid().tp > 1 ? &mesh.tp() : nullptr);
  init_weights(decoder, options);
  return engine::nn::gather_logical(decoder.parameters(), mesh);
}

TEST(InitWeights, AreTheSameOnEveryGrid) {
  for (const GridModel& model : grid_models()) {
    const auto one = initial(model, Mesh(), {.seed = 7});
    for (const int tp : {2, 4}) {
      if (tp > model.max_tp) continue;
      const auto ranks =
          on_grid({.tp = tp}, [&](const Mesh& mesh) { return initial(model, mesh, {.seed = 7}); });
      EXPECT_EQ(ranks[0], one) << model.title << " tp " << tp;
    }
  }
}

TEST(InitWeights, DependOnTheSeed) {
  const auto model = grid_models()[0];
  EXPECT_EQ(initial(model, Mesh(), {.seed = 7}), initial(model, Mesh(), {.seed = 7}));
  EXPECT_NE(initial(model, Mesh(), {.seed = 7}), initial(model, Mesh(), {.seed = 8}));
}

double std_dev_of(const engine::nn::Parameter& parameter) {
  double squares = 0;
  const auto values = engine::ops::to_host(*engine::ops::make_cpu_device(), parameter.value);
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(InitWeights, AreAsWideAsTheSettingsSay) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  auto spec = llama_spec({.vocabulary = 200,
                          .width = 96,
                          .layers = 8,
                          .inner = 160,
                          .heads = 4,
                          .kv_heads = 4,
                          .head_size = 24});
  Decoder decoder(*device, spec, true, nullptr);
  // The root mean square, of a mean that is 0.
  const auto of = [&](const char* name) { return std_dev_of(decoder.parameters().at(name)); };
  init_weights(decoder, {.std_dev = 0.02, .seed = 1});
  EXPECT_NEAR(of("model.embed_tokens.weight"), 0.02, 6e-4);
  EXPECT_NEAR(of("model.layers.3.mlp.up_proj.weight"), 0.02, 6e-4);
  EXPECT_NEAR(of("model.layers.3.mlp.down_proj.weight"), 0.02 / 4, 2e-4);
  EXPECT_NEAR(of("model.layers.3.self_attn.o_proj.weight"), 0.02 / 4, 2e-4);
  EXPECT_EQ(of("model.norm.weight"), 1);
  init_weights(decoder, {.std_dev = 0.1, .scaled_output = false, .seed = 1});
  EXPECT_NEAR(of("model.layers.3.mlp.down_proj.weight"), 0.1, 3e-3);
}

}  // namespace
}  // namespace troupe::test
