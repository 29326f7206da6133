#include "tests/support/gradcheck.h"

#include "engine/nn/attention.h"
#include "engine/nn/mlp.h"
#include "engine/nn/norm.h"

namespace troupe::engine::nn {
namespace {

using test::random_tensor;

struct Modules : ::testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  ops::Layout layout{{0, 3, 3, 8}, {0, 1, 2, 0, 1, 2, 3, 4}};
  Pass pass{*device, layout};
  Tensor x = random_tensor(*device, {8, 12}, 1);
};

TEST_F(Modules, LinearWithBias) {
  Parameters parameters(*device, {{"w", {5, 12}}, {"b", {5}}}, true);
  test::randomize(parameters, 2, 0.5);
  struct Wrapped {
    Linear linear;
    Tensor forward(const Tensor& in, const Pass& p, Saved& s) const { return linear.forward(in, p, s); }
    Tensor backward(const Tensor& dy, const Pass& p, Saved& s) const {
      Tensor dx = p.device.empty({dy.shape()[0], linear.weight->value.shape()[1]});
      linear.backward(dy, p, s, dx, false);
      return dx;
    }
  };
  test::gradcheck(Wrapped{{&parameters.at("w"), &parameters.at("b")}}, parameters, x, pass);
}

TEST_F(Modules, Norm) {
  Parameters parameters(*device, {{"g", {12}}}, true);
  test::randomize(parameters, 2, 1);
  test::gradcheck(Norm{&parameters.at("g"), 1e-6f}, parameters, x, pass);
}

TEST_F(Modules, Mlp) {
  Parameters parameters(*device, {{"g", {10, 12}}, {"u", {10, 12}}, {"d", {12, 10}}}, true);
  test::randomize(parameters, 2, 0.5);
  test::gradcheck(Mlp{{&parameters.at("g")}, {&parameters.at("u")}, {&parameters.at("d")}}, parameters, x, pass);
}

// Two query heads share a key head; three sequences, one of them empty.
struct AttentionModule : Modules {
  Parameters parameters{*device, {{"q", {16, 12}}, {"k", {8, 12}}, {"v", {8, 12}}, {"o", {12, 16}}}, true};
  RotaryTable rotary{*device, {1.0, 0.1}};
  Attention attention{
      {&parameters.at("q")}, {&parameters.at("k")}, {&parameters.at("v")}, {&parameters.at("o")}, {4, 2, 4, 0.5f}, &rotary, 0};
  AttentionModule() {
    test::randomize(parameters, 2, 0.5);
    rotary.reserve(5);
  }
};

TEST_F(AttentionModule, GroupedHeadsAndRotary) { test::gradcheck(attention, parameters, x, pass); }

TEST_F(AttentionModule, WithNormsOfHeads) {
  Parameters own(*device, {{"q", {16, 12}}, {"k", {8, 12}}, {"v", {8, 12}}, {"o", {12, 16}}, {"qn", {4}}, {"kn", {4}}}, true);
  test::randomize(own, 3, 0.5);
  const Attention normed{{&own.at("q")},  {&own.at("k")}, {&own.at("v")}, {&own.at("o")}, attention.shape, &rotary, 0,
                         {&own.at("qn")}, {&own.at("kn")}};
  test::gradcheck(normed, own, x, pass);
}

TEST_F(AttentionModule, InAResidualChain) {
  Parameters both(*device, {{"g", {12}}, {"q", {16, 12}}, {"k", {8, 12}}, {"v", {8, 12}}, {"o", {12, 16}}}, true);
  test::randomize(both, 3, 0.5);
  Attention own{{&both.at("q")}, {&both.at("k")}, {&both.at("v")}, {&both.at("o")}, attention.shape, &rotary, 0};
  test::gradcheck(Residual<Chain<Norm, Attention>>{{{&both.at("g"), 1e-6f}, own}}, both, x, pass);
}

TEST_F(AttentionModule, RecomputeGivesTheSameBitsAndKeepsOnlyTheInput) {
  const auto run = [&](const auto& module, std::size_t& kept) {
    device->fill(parameters.grads(), 0);
    Saved saved;
    const Tensor y = module.forward(x, pass, saved);
    kept = saved.bytes();
    const Tensor dx = module.backward(y, pass, saved);
    std::vector<float> all = ops::to_host(*device, dx);
    const auto grads = ops::to_host(*device, parameters.grads());
    all.insert(all.end(), grads.begin(), grads.end());
    return all;
  };
  std::size_t plain = 0, recomputed = 0;
  EXPECT_EQ(run(attention, plain), run(Recompute<Attention>{attention}, recomputed));
  EXPECT_EQ(recomputed, x.bytes());
  EXPECT_GT(plain, recomputed);
}

}  // namespace
}  // namespace troupe::engine::nn
