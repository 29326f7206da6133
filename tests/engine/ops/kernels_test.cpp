// Guarantees of the kernels of each instruction set that a device does not expose: exp, tanh, and
// products with strides.
#include "engine/ops/cpu/kernels/kernels.h"

#include <cmath>

#include "engine/base/errors/error.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops::cpu {
namespace {

class KernelsOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      kernels_ = &kernels_for(GetParam());
    } catch (const Failure&) {
      GTEST_SKIP() << "this processor does not have " << GetParam();
    }
  }
  const Kernels* kernels_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsOf,
                         testing::Values("baseline", "avx2", "avx512", "avx512_bf16"));

TEST_P(KernelsOf, ExpIsWithinTwoUnitsInTheLastPlace) {
  Floats x;
  for (double at = -87.3; at < 88.7; at += 0.00037) x.push_back(static_cast<float>(at));
  Floats e = x;
  kernels_->attention_weights(e.data(), static_cast<std::int64_t>(e.size()), 1,
                              0);  // exp(1 * x - 0)
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double{x[i]});
    const double unit =
        std::nextafter(static_cast<float>(exact), INFINITY) - static_cast<float>(exact);
    ASSERT_LE(std::abs(double{e[i]} - exact), 2 * unit) << x[i];
  }
}

TEST_P(KernelsOf, ExpGoesDownThroughSubnormalsToZeroAndKeepsNaN) {
  Floats e = {-87.5F, -100, -103, -104, -1e30F, -INFINITY, __builtin_nanf(""), 0};
  kernels_->attention_weights(e.data(), 8, 1, 0);
  EXPECT_NEAR(e[0], std::exp(-87.5), 1e-44);
  EXPECT_NEAR(e[1], std::exp(-100.0), 3e-45);
  EXPECT_NEAR(e[2], std::exp(-103.0), 3e-45);
  EXPECT_EQ(e[3], 0);
  EXPECT_EQ(e[4], 0);
  EXPECT_EQ(e[5], 0);
  EXPECT_NE(e[6], e[6]);
  EXPECT_EQ(e[7], 1);
}

TEST_P(KernelsOf, TanhIsWithinThreeUnitsInTheLastPlace) {
  Floats x;
  for (double at = -10; at < 10; at += 0.00037) x.push_back(static_cast<float>(at));
  for (double at = 1e-30; at < 1; at *= 1.7) x.push_back(static_cast<float>(at));
  Floats bent = x;
  kernels_->cap(bent.data(), static_cast<std::int64_t>(bent.size()), 1, 1);  // 1 * tanh(1 * x / 1)
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::tanh(double{x[i]}), size = std::abs(exact);
    const double unit =
        std::nextafter(static_cast<float>(size), INFINITY) - static_cast<float>(size);
    ASSERT_LE(std::abs(double{bent[i]} - exact), 3 * unit) << x[i];
  }
}

TEST_P(KernelsOf, TanhEndsAtOneAndKeepsZeroAndNaN) {
  Floats bent = {-1e30F, 1e30F, -INFINITY, INFINITY, 0, __builtin_nanf("")};
  kernels_->cap(bent.data(), 6, 1, 2);
  EXPECT_EQ(slice(bent, 0, 5), (Floats{-2, 2, -2, 2, 0}));
  EXPECT_NE(bent[5], bent[5]);
}

TEST_P(KernelsOf, CopiesWholeLinesAndNothingBesideThem) {
  struct alignas(64) Lines {
    float at[16 * 9];
  } from, to;
  for (int i = 0; i < 16 * 9; ++i) {
    from.at[i] = static_cast<float>(i);
    to.at[i] = -1;
  }
  kernels_->copy_lines(from.at + 3, to.at + 16, std::int64_t{16} * 7);  // from anywhere
  for (int i = 0; i < 16 * 9; ++i)
    EXPECT_EQ(to.at[i], i < 16 || i >= 16 * 8 ? -1 : static_cast<float>(i - 16 + 3)) << i;
}

TEST_P(KernelsOf, ProductsIntoPartOfAMatrixLeaveTheRestAlone) {
  // Strides as in attention: C is a column block of a wider matrix, and nothing outside it may
  // change.
  constexpr std::int64_t m = 15, n = 21, k = 35, wide = 50;
  const Floats a = random_floats(m * k, 1), b = random_floats(n * wide, 2),
               straight = random_floats(k * wide, 3);
  Floats scratch(gemm_scratch);
  for (const bool dot : {true, false}) {
    Floats c(m * wide, 7);
    const GemmArgs p{
        m, n, k, a.data(), k, 1, dot ? b.data() : straight.data(), wide, c.data() + 9, wide, false};
    dot ? kernels_->gemm_nt(p, scratch.data()) : kernels_->gemm_nn(p, scratch.data());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < wide; ++j) {
        const float got = c[static_cast<std::size_t>(i * wide + j)];
        if (j < 9 || j >= 9 + n) {
          ASSERT_EQ(got, 7);
          continue;
        }
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const float right = dot ? b[static_cast<std::size_t>((j - 9) * wide + l)]
                                  : straight[static_cast<std::size_t>(l * wide + j - 9)];
          sum += double{a[static_cast<std::size_t>(i * k + l)]} * double{right};
        }
        ASSERT_NEAR(got, sum, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::engine::ops::cpu
