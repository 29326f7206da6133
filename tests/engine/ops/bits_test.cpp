// Promises about bits: threads and instruction sets never change one, and gradients of two
// micro-batches are those of one batch.
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/every_result.h"

namespace troupe::engine::ops {
namespace {

void expect_same(const std::map<std::string, Floats>& a, const std::map<std::string, Floats>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) EXPECT_TRUE(same_bits(values, b.at(name))) << name;
}

std::unique_ptr<Device> device_or_null(const char* isa, int threads) {
  return make({"", false, isa, threads});
}

TEST(Bits, OfOneThreadAreThoseOfMany) {
  for (const char* isa : {"avx2", "avx512", "avx512_bf16"}) {
    const auto one = device_or_null(isa, 1);
    if (!one) continue;
    const auto expected = every_result(*one);
    for (const int threads : {2, 3, 5}) {
      const auto many = device_or_null(isa, threads);
      expect_same(expected, every_result(*many));
    }
  }
  expect_same(every_result(*device_or_null("baseline", 1)),
              every_result(*device_or_null("baseline", 2)));
}

TEST(Bits, OfAvx2AreThoseOfAvx512) {
  const auto narrow = device_or_null("avx2", 2), wide = device_or_null("avx512", 2);
  if (!narrow || !wide) GTEST_SKIP() << "this processor does not have both avx2 and avx512";
  const auto expected = every_result(*narrow);
  expect_same(expected, every_result(*wide));
  if (const auto paired = device_or_null("avx512_bf16", 2))
    expect_same(expected, every_result(*paired));
}

TEST(Bits, AreTheSameOnASecondRun) {
  const auto device = make_cpu_device({.threads = 2});
  expect_same(every_result(*device), every_result(*device));
}

class MicroBatches : public OnEveryDevice {
 protected:
  void SetUp() override {
    OnEveryDevice::SetUp();
    // The reference keeps its sums in double within a call, so two calls round twice.
    if (GetParam().reference) GTEST_SKIP() << "only the CPU device guarantees it";
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, MicroBatches, testing::ValuesIn(device_cases()), case_name);

TEST_P(MicroBatches, AddUpToTheWeightGradientOfTheWholeBatch) {
  const int rows = 90, inputs = 70, outputs = 50;
  const Floats dy = random_floats(rows * outputs, 1), x = random_floats(rows * inputs, 2);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Gemm how{.transpose_a = true, .accumulate = true, .precision = precision};
    Tensor whole = filled({outputs, inputs}, 0.125F);
    device().gemm(put({rows, outputs}, dy), put({rows, inputs}, x), whole, how);
    for (const int cut : {1, 7, 45, 83}) {
      Tensor sum = filled({outputs, inputs}, 0.125F);
      device().gemm(put({cut, outputs}, slice(dy, 0, cut * outputs)),
                    put({cut, inputs}, slice(x, 0, cut * inputs)), sum, how);
      device().gemm(put({rows - cut, outputs}, slice(dy, cut * outputs, rows * outputs)),
                    put({rows - cut, inputs}, slice(x, cut * inputs, rows * inputs)), sum, how);
      EXPECT_TRUE(same_bits(get(whole), get(sum))) << cut;
    }
  }
}

TEST_P(MicroBatches, AddUpToTheGainAndBiasGradientsOfTheWholeBatch) {
  const int rows = 40, width = 33, cut = 13;
  const Tensor x = put({rows, width}, random_floats(rows * width, 1)),
               dy = put({rows, width}, random_floats(rows * width, 2));
  const Tensor gain = filled({width}, 1);
  Tensor y = filled({rows, width}, 0), inverse = filled({rows}, 0), dx = filled({rows, width}, 0);
  Tensor whole = filled({width}, 0), sum = filled({width}, 0), whole_bias = filled({width}, 0),
         sum_bias = filled({width}, 0);
  device().rms_norm(x, gain, 1e-5F, y, inverse, 0);
  device().rms_norm_backward(x, gain, inverse, dy, dx, whole, 0);
  device().bias_backward(dy, whole_bias);
  for (const auto& [begin, end] : {std::pair{0, cut}, {cut, rows}}) {
    Tensor part = dx.rows(begin, end);
    device().rms_norm_backward(x.rows(begin, end), gain, inverse.rows(begin, end),
                               dy.rows(begin, end), part, sum, 0);
    device().bias_backward(dy.rows(begin, end), sum_bias);
  }
  EXPECT_TRUE(same_bits(get(whole), get(sum)));
  EXPECT_TRUE(same_bits(get(whole_bias), get(sum_bias)));
}

TEST_P(MicroBatches, AddUpToTheLayerNormGradientOfTheWholeBatch) {
  const int rows = 40, width = 33, cut = 13;
  const Tensor x = put({rows, width}, random_floats(rows * width, 1)),
               dy = put({rows, width}, random_floats(rows * width, 2));
  const Tensor gain = filled({width}, 1);
  Tensor y = filled({rows, width}, 0), mean = filled({rows}, 0), inverse = filled({rows}, 0),
         dx = filled({rows, width}, 0);
  Tensor whole = filled({width}, 0), sum = filled({width}, 0);
  device().layer_norm(x, gain, {}, 1e-5F, y, mean, inverse);
  device().layer_norm_backward(x, gain, mean, inverse, dy, dx, whole);
  for (const auto& [begin, end] : {std::pair{0, cut}, {cut, rows}}) {
    Tensor part = dx.rows(begin, end);
    device().layer_norm_backward(x.rows(begin, end), gain, mean.rows(begin, end),
                                 inverse.rows(begin, end), dy.rows(begin, end), part, sum);
  }
  EXPECT_TRUE(same_bits(get(whole), get(sum)));
}

TEST_P(MicroBatches, AddUpToTheHeadGradientOfTheWholeBatch) {
  const int rows = 30, width = 20, vocabulary = 200, cut = 11;
  const Tensor hidden = put({rows, width}, random_floats(rows * width, 1)),
               weight = put({vocabulary, width}, random_floats(vocabulary * width, 2));
  const Tensor up = put({rows}, random_floats(rows, 3));
  Rows targets;
  for (int t = 0; t < rows; ++t) targets.push_back(t % 4 == 2 ? -1 : t * 6);
  Tensor logp = filled({rows}, 0), lse = filled({rows}, 0), dhidden = filled({rows, width}, 0),
         whole = filled({vocabulary, width}, 0), sum = whole;
  sum = filled({vocabulary, width}, 0);
  device().head({hidden, weight, device().indices(targets), {1}, Precision::f32}, {logp, lse});
  device().head_backward({hidden, weight, device().indices(targets), {1}, Precision::f32}, {lse},
                         {up}, {dhidden, whole});
  for (const auto& [begin, end] : {std::pair{0, cut}, {cut, rows}}) {
    Tensor part = dhidden.rows(begin, end);
    const std::span<const std::int32_t> some = std::span(targets).subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    device().head_backward(
        {hidden.rows(begin, end), weight, device().indices(some), {1}, Precision::f32},
        {lse.rows(begin, end)}, {up.rows(begin, end)}, {part, sum});
  }
  EXPECT_TRUE(same_bits(get(whole), get(sum)));
}

}  // namespace
}  // namespace troupe::engine::ops
