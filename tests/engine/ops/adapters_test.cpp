// Operations for adapters on every device: the head's low-rank part, dropout by ids of rows and
// columns, and the columns and rows of DoRA.
#include <cmath>

#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class Adapters : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Adapters, testing::ValuesIn(device_cases()), case_name);

// [rows, a] and [rows, b] side by side.
Floats beside(const Floats& left, std::size_t a, const Floats& right, std::size_t b) {
  Floats both;
  for (std::size_t row = 0; row * a < left.size(); ++row) {
    both.insert(both.end(), left.begin() + row * a, left.begin() + (row + 1) * a);
    both.insert(both.end(), right.begin() + row * b, right.begin() + (row + 1) * b);
  }
  return both;
}

TEST_P(Adapters, AHeadWithOneIsAHeadOfBothProductsTogether) {
  const int width = 10, rank = 3, vocabulary = 17;
  const Rows targets = {0, 5, -1, 16};
  const Floats hidden = random_floats(4 * width, 1), weight = random_floats(vocabulary * width, 2);
  const Floats down = random_floats(4 * rank, 3), up = random_floats(vocabulary * rank, 4),
               derivative = random_floats(4, 5);
  const Tensor h = put({4, width}, hidden), w = put({vocabulary, width}, weight),
               dlogp = put({4}, derivative);
  HeadAdapter adapter{put({4, rank}, down), put({vocabulary, rank}, up), filled({4, rank}, 9),
                      filled({vocabulary, rank}, 0.5F)};
  Tensor logp = filled({4}, 9), lse = filled({4}, 9), dh = filled({4, width}, 9), frozen;
  device().head({h, w, device().indices(targets), {0.8F}, Precision::f32, &adapter}, {logp, lse});
  device().head_backward({h, w, device().indices(targets), {0.8F}, Precision::f32, &adapter}, {lse},
                         {dlogp}, {dh, frozen, &adapter});

  const Floats inputs = beside(hidden, width, down, rank),
               weights = beside(weight, width, up, rank);
  const auto loss = [&](const Doubles& a, const Doubles& b) {
    return oracle::dot(oracle::head(a, b, targets, {0.8F}, width + rank).logp,
                       as_doubles(derivative));
  };
  EXPECT_LT(relative_error(get(logp), oracle::head(as_doubles(inputs), as_doubles(weights), targets,
                                                   {0.8F}, width + rank)
                                          .logp),
            1e-6);
  const auto by_input = oracle::gradient(
      [&](const Doubles& at) { return loss(at, as_doubles(weights)); }, as_doubles(inputs));
  const auto by_weight = oracle::gradient(
      [&](const Doubles& at) { return loss(as_doubles(inputs), at); }, as_doubles(weights));
  Doubles expected_dh, expected_down, expected_up;
  for (std::size_t i = 0; i < by_input.size(); ++i)
    (i % 13 < 10 ? expected_dh : expected_down).push_back(by_input[i]);
  for (std::size_t i = 0; i < by_weight.size(); ++i)
    if (i % 13 >= 10) expected_up.push_back(by_weight[i] + 0.5);
  EXPECT_LT(relative_error(get(dh), expected_dh), 3e-6);
  EXPECT_LT(relative_error(get(adapter.ddown), expected_down), 3e-6);
  EXPECT_LT(relative_error(get(adapter.dup), expected_up), 3e-6);
}

TEST_P(Adapters, AFrozenHeadHasTheGradientOfATrainedOne) {
  const Tensor h = put({4, 6}, random_floats(24, 1)), w = put({9, 6}, random_floats(54, 2)),
               dlogp = put({4}, random_floats(4, 3));
  const Rows targets = {1, 8, 3, 0};
  Tensor logp = filled({4}, 0), lse = filled({4}, 0), dh = filled({4, 6}, 0),
         other = filled({4, 6}, 0), dw = filled({9, 6}, 0), frozen;
  device().head({h, w, device().indices(targets), {1}, Precision::f32}, {logp, lse});
  device().head_backward({h, w, device().indices(targets), {1}, Precision::f32}, {lse}, {dlogp},
                         {dh, dw});
  device().head_backward({h, w, device().indices(targets), {1}, Precision::f32}, {lse}, {dlogp},
                         {other, frozen});
  EXPECT_TRUE(same_bits(get(dh), get(other)));
}

TEST_P(Adapters, LogitsKeptWholeGiveTheBitsOfTheHead) {
  const Tensor h = put({5, 40}, random_floats(200, 1)), w = put({70, 40}, random_floats(2800, 2));
  const HeadAdapter adapter{
      put({5, 4}, random_floats(20, 3)), put({70, 4}, random_floats(280, 4)), {}, {}};
  const Rows targets = {0, 69, 3, 44, 7};
  Tensor logp = filled({5}, 0), lse = filled({5}, 0), kept = filled({5}, 0),
         kept_lse = filled({5}, 0), z = filled({5, 70}, 0);
  device().head({h, w, device().indices(targets), {0.7F}, Precision::f32, &adapter}, {logp, lse});
  device().gemm(h, w, z, {.transpose_b = true});
  device().gemm(adapter.down, adapter.up, z, {.transpose_b = true, .accumulate = true});
  device().token_logprob(z, device().indices(targets), 0.7F, kept, kept_lse);
  EXPECT_TRUE(same_bits(get(logp), get(kept)));
}

TEST_P(Adapters, DropoutKnowsAnElementByItsNamesAlone) {
  const std::vector<std::uint64_t> rows = {7, (std::uint64_t{3} << 32) | 1, 9};
  const Floats x = random_floats(3 * 400, 1);
  const auto dropped = [&](std::span<const std::uint64_t> names, const Floats& values,
                           std::int64_t first, std::uint64_t key, std::uint32_t stream) {
    Tensor y = filled({std::ssize(names), std::ssize(values) / std::ssize(names)}, 9);
    device().dropout(put(y.shape(), values), {0.25, key, stream, device().row_ids(names), first},
                     y);
    return get(y);
  };
  const Floats all = dropped(rows, x, 0, 5, 2);
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    zeros += all[i] == 0;
    EXPECT_TRUE(all[i] == 0 || all[i] == x[i] * static_cast<float>(1 / 0.75));
  }
  EXPECT_NEAR(static_cast<double>(zeros), 300, 60);
  const Floats second = dropped(std::span(rows).subspan(1, 1), slice(x, 400, 800), 0, 5, 2);
  EXPECT_TRUE(same_bits(second, slice(all, 400, 800))) << "a row alone";
  EXPECT_TRUE(same_bits(dropped(std::span(rows).subspan(1, 1), slice(x, 410, 800), 10, 5, 2),
                        slice(all, 410, 800)))
      << "some columns alone";
  EXPECT_FALSE(same_bits(dropped(rows, x, 0, 6, 2), all)) << "another update";
  EXPECT_FALSE(same_bits(dropped(rows, x, 0, 5, 3), all)) << "another module";
}

TEST_P(Adapters, ColumnsAndRowsFollowTheirFormulas) {
  const Floats a = random_floats(12, 1), b = random_floats(12, 2), factors = random_floats(4, 3);
  Tensor x = put({3, 4}, a), dots = put({4}, factors), squares = filled({3}, 9);
  device().column_dots(x, put({3, 4}, b), dots);
  device().row_squares(x, squares);
  device().scale_columns(x, put({4}, factors));
  Doubles expected_dots = as_doubles(factors), expected_squares(3), expected(12);
  for (std::size_t i = 0; i < 12; ++i) {
    expected_dots[i % 4] += double{a[i]} * double{b[i]};
    expected_squares[i / 4] += double{a[i]} * double{a[i]};
    expected[i] = double{a[i]} * double{factors[i % 4]};
  }
  EXPECT_LT(relative_error(get(dots), expected_dots), 1e-6);
  EXPECT_LT(relative_error(get(squares), expected_squares), 1e-6);
  EXPECT_LT(relative_error(get(x), expected), 1e-6);
}

TEST_P(Adapters, ColumnDotsOfTwoPartsOfTheRowsAreThoseOfOneCall) {
  const Floats a = random_floats(36, 1), b = random_floats(36, 2), start = random_floats(4, 3);
  Tensor whole = put({4}, start), parts = put({4}, start);
  device().column_dots(put({9, 4}, a), put({9, 4}, b), whole);
  device().column_dots(put({5, 4}, slice(a, 0, 20)), put({5, 4}, slice(b, 0, 20)), parts);
  device().column_dots(put({4, 4}, slice(a, 20, 36)), put({4, 4}, slice(b, 20, 36)), parts);
  EXPECT_TRUE(same_bits(get(parts), get(whole)));
}

}  // namespace
}  // namespace troupe::engine::ops
