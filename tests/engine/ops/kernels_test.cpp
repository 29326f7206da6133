// What the kernels of each instruction set promise beyond what a device shows: exp, tanh, and products with strides.
#include "engine/ops/cpu/kernels.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

class KernelsOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      kernels_ = &kernels_for(GetParam());
    } catch (const Failure&) { GTEST_SKIP() << "this processor does not have " << GetParam(); }
  }
  const Kernels* kernels_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsOf, testing::Values("baseline", "avx2", "avx512", "avx512_bf16"));

TEST_P(KernelsOf, ExpIsWithinTwoUnitsInTheLastPlace) {
  Floats x;
  for (double at = -87.3; at < 88.7; at += 0.00037) x.push_back(static_cast<float>(at));
  Floats e = x;
  kernels_->attention_weights(e.data(), static_cast<std::int64_t>(e.size()), 1, 0);  // exp(1 * x - 0)
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double{x[i]});
    const double unit = std::nextafter(static_cast<float>(exact), INFINITY) - static_cast<float>(exact);
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
    const double unit = std::nextafter(static_cast<float>(size), INFINITY) - static_cast<float>(size);
    ASSERT_LE(std::abs(double{bent[i]} - exact), 3 * unit) << x[i];
  }
}

TEST_P(KernelsOf, TanhEndsAtOneAndKeepsZeroAndNaN) {
  Floats bent = {-1e30F, 1e30F, -INFINITY, INFINITY, 0, __builtin_nanf("")};
  kernels_->cap(bent.data(), 6, 1, 2);
  EXPECT_EQ(slice(bent, 0, 5), (Floats{-2, 2, -2, 2, 0}));
  EXPECT_NE(bent[5], bent[5]);
}

// Strides as attention has them: operands and results are column blocks of something wider, and nothing outside of C may change.
constexpr std::int64_t m = 15, n = 41, k = 35, wide = 60, first_column = 9;

/// `count` items, as many together as fit.
Floats packed(const Panels& with, Packing items) {
  const std::int64_t end = items.count, next = items.items_together ? 1 : items.apart, width = items.width;
  Floats words(static_cast<std::size_t>((end + width - 1) / width * width * with.steps(items.depth)), 5);
  for (std::int64_t i = 0; i < end; i += width, items.from += width * next) {
    items.count = std::min(width, end - i);
    if (width != panel_columns) items.width = items.pitch = items.count;
    with.pack(items, words.data() + i * with.steps(items.depth));
  }
  return words;
}

void expect_product(const Floats& a, const Floats& b, bool b_along_k, const Floats& c, double tolerance) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < wide; ++j) {
      const float got = c[static_cast<std::size_t>(i * wide + j)];
      const std::int64_t column = j - first_column;
      if (column < 0 || column >= n) {
        ASSERT_EQ(got, 7);
        continue;
      }
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float right = b[static_cast<std::size_t>(b_along_k ? column * wide + l : l * wide + column)];
        sum += double{a[static_cast<std::size_t>(i * k + l)]} * double{right};
      }
      ASSERT_NEAR(got, sum, tolerance);
    }
  }
}

TEST_P(KernelsOf, ProductsIntoPartOfAMatrixLeaveTheRestAlone) {
  const Floats a = random_floats(m * k, 1), b = random_floats(n * wide, 2), straight = random_floats(k * wide, 3);
  for (const Panels* with : {&kernels_->singles, &kernels_->pairs}) {
    const std::int64_t height = with->tile(m);
    const Floats left = packed(*with, {a.data(), k, m, k, height, false});
    for (const bool b_along_k : {true, false}) {
      const Floats right = packed(*with, {b_along_k ? b.data() : straight.data(), wide, n, k, panel_columns, !b_along_k});
      Floats c(m * wide, 7);
      with->product({m, n, with->steps(k), height, left.data(), right.data(), c.data() + first_column, wide, false});
      expect_product(a, b_along_k ? b : straight, b_along_k, c, with->step == 1 ? 1e-5 : 0.1);
    }
  }
}

TEST_P(KernelsOf, ItemsPackedSideBySideAreOnePanel) {  // as keys from several pages are
  const Floats from = random_floats(panel_columns * wide, 1);
  for (const Panels* with : {&kernels_->singles, &kernels_->pairs}) {
    const Floats whole = packed(*with, {from.data(), wide, panel_columns, k, panel_columns, false});
    for (const std::int64_t cut : {1, 7, 16, 31}) {
      Floats joined(whole.size(), 5);
      with->pack({from.data(), wide, cut, k, cut, false, panel_columns}, joined.data());
      with->pack({from.data() + cut * wide, wide, panel_columns - cut, k, panel_columns - cut, false, panel_columns}, joined.data() + cut);
      EXPECT_TRUE(same_bits(joined, whole)) << cut;
    }
  }
}

TEST_P(KernelsOf, OneItemIsPackedAsTheFirstOfTwo) {
  const Floats from = random_floats(2 * k, 1);
  for (const Panels* with : {&kernels_->singles, &kernels_->pairs}) {
    const Floats two = packed(*with, {from.data(), k, 2, k, 2, false}), one = packed(*with, {from.data(), k, 1, k, 1, false});
    for (std::size_t s = 0; s < one.size(); ++s) EXPECT_TRUE(same_bits({one[s]}, {two[2 * s]})) << s;
  }
}

TEST_P(KernelsOf, ProductsOfSomeStepsOfAPanelAreThoseOfThatPart) {
  constexpr std::int64_t skipped = 11, some = 20;
  const Panels& with = kernels_->singles;
  const Floats a = random_floats(m * some, 1), b = random_floats(k * wide, 2);
  const std::int64_t height = with.tile(m);
  const Floats left = packed(with, {a.data(), some, m, some, height, false});
  const Floats all = packed(with, {b.data(), wide, n, k, panel_columns, true});
  const Floats part = packed(with, {b.data() + skipped * wide, wide, n, some, panel_columns, true});
  Floats expected(m * n), found(m * n);
  with.product({m, n, some, height, left.data(), part.data(), expected.data(), n, false});
  with.product({m, n, some, height, left.data(), all.data() + skipped * panel_columns, found.data(), n, false, k});
  EXPECT_TRUE(same_bits(found, expected));
}

}  // namespace
}  // namespace troupe::engine::ops
