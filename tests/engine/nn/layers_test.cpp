// Which layers are recomputed, and when.
#include "engine/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::nn {
namespace {

using testing::ElementsAre;

using Calls = std::vector<std::string>;

/// Notes its calls; upper case: the pass saves.
struct Noted {
  int number;
  Calls* calls;

  Tensor forward(const Tensor& x, const ForwardContext&, Saved& saved) const {
    calls->push_back(cat(saved.keeps() ? "F" : "f", number));
    saved.push(x);
    return x;
  }
  Tensor backward(const Tensor& dy, const ForwardContext&, Saved& saved) const {
    calls->push_back(cat("B", number));
    saved.pop();
    return dy;
  }
};

/// The calls of the passes through four layers.
Calls calls_of(const Recomputed& how) {
  const auto device = ops::make_reference_device();
  const ops::PreparedLayout layout = device->prepare({{0, 1}, {0}});
  const ForwardContext pass{.device = *device, .layout = layout, .recomputed = how};
  Calls calls;
  std::vector<Noted> all;
  for (int i = 0; i < 4; ++i) all.push_back({i, &calls});
  const Layers<Noted> layers{std::span<const Noted>(all)};
  Saved saved;
  const Tensor x = layers.forward(device->empty({1, 2}), pass, saved);
  if (how.in_advance) layers.recompute_in_advance(pass, saved);
  calls.emplace_back("|");
  layers.backward(x, pass, saved);
  EXPECT_TRUE(saved.empty());
  return calls;
}

constexpr auto block = RecomputeMethod::block;

TEST(LayersOfAStage, AreInGroupsOfOneSizeOrRecomputedFromTheFirst) {
  using Groups = std::vector<LayerGroup>;
  EXPECT_EQ(layer_groups({}, 5), (Groups{{0, 5, false}}));
  EXPECT_EQ(layer_groups({.kinds = {Recompute::full}, .layers = 2}, 5),
            (Groups{{0, 2, true}, {2, 4, true}, {4, 5, true}}));
  EXPECT_EQ(layer_groups({.kinds = {Recompute::full}, .method = block, .layers = 2}, 5),
            (Groups{{0, 1, true}, {1, 2, true}, {2, 5, false}}));
  EXPECT_EQ(layer_groups({.kinds = {Recompute::full}, .method = block, .layers = 9}, 2),
            (Groups{{0, 1, true}, {1, 2, true}}));
  EXPECT_EQ(layer_groups({.kinds = {Recompute::full}}, 0), Groups{});
}

TEST(LayersOfAStage, RepeatTheirForwardPassGroupByGroup) {
  EXPECT_THAT(calls_of({}), ElementsAre("F0", "F1", "F2", "F3", "|", "B3", "B2", "B1", "B0"));
  EXPECT_THAT(
      calls_of({.kinds = {Recompute::full}, .layers = 3}),
      ElementsAre("f0", "f1", "f2", "f3", "|", "F3", "B3", "F0", "F1", "F2", "B2", "B1", "B0"));
  EXPECT_THAT(calls_of({.kinds = {Recompute::full}, .method = block, .layers = 2}),
              ElementsAre("f0", "f1", "F2", "F3", "|", "B3", "B2", "F1", "B1", "F0", "B0"));
}

TEST(LayersOfAStage, AreRecomputedBeforeTheBackwardPass) {
  EXPECT_THAT(
      calls_of({.kinds = {Recompute::full}, .layers = 2, .in_advance = true}),
      ElementsAre("f0", "f1", "f2", "f3", "F2", "F3", "|", "B3", "B2", "F0", "F1", "B1", "B0"));
  EXPECT_THAT(
      calls_of({.kinds = {Recompute::full}, .method = block, .layers = 1, .in_advance = true}),
      ElementsAre("f0", "F1", "F2", "F3", "F0", "|", "B3", "B2", "B1", "B0"));
  EXPECT_THAT(calls_of({.in_advance = true}),
              ElementsAre("F0", "F1", "F2", "F3", "|", "B3", "B2", "B1", "B0"));
}

}  // namespace
}  // namespace troupe::engine::nn
