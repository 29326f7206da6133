// Rotations, biases, sums and moves of rows, on every device.
#include <cmath>

#include "engine/base/random/random.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class RowOps : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, RowOps, testing::ValuesIn(device_cases()), case_name);

TEST_P(RowOps, RopeEqualsItsFormulaAndItsInverseUndoesIt) {
  for (const int size : {2, 8, 34, 128}) {
    const int rows = 6, heads = 3, places = 40;
    const Rows positions = {0, 1, 2, 39, 0, 17};
    Floats cos(static_cast<std::size_t>(places * size / 2)), sin(cos.size());
    for (std::size_t i = 0; i < cos.size(); ++i) {
      cos[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
      sin[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
    }
    const Floats x = random_floats(rows * heads * size, 5);
    Tensor y = put({rows, heads * size}, x);
    const Tensor c = put({places, size / 2}, cos), s = put({places, size / 2}, sin);
    device().rope(y, device().indices(positions), c, s, heads, false);
    EXPECT_LT(relative_error(get(y), oracle::rope(as_doubles(x), positions, as_doubles(cos),
                                                  as_doubles(sin), heads, size)),
              2e-7);
    device().rope(y, device().indices(positions), c, s, heads, true);
    EXPECT_LT(relative_error(get(y), as_doubles(x)), 5e-7);
  }
}

TEST_P(RowOps, BiasesAddAndSumUp) {
  const int rows = 7, width = 45;
  const Floats y = random_floats(rows * width, 1), bias = random_floats(width, 2);
  Tensor sum = put({rows, width}, y), dbias = filled({width}, 1);
  device().add_bias(sum, put({width}, bias));
  device().bias_backward(put({rows, width}, y), dbias);
  Doubles expected = as_doubles(y), columns(static_cast<std::size_t>(width), 1.0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    columns[i % static_cast<std::size_t>(width)] += expected[i];
    expected[i] += double{bias[i % static_cast<std::size_t>(width)]};
  }
  EXPECT_LT(relative_error(get(sum), expected), 1e-7);
  EXPECT_LT(relative_error(get(dbias), columns), 1e-6);
}

TEST_P(RowOps, AddAndScaleMayWorkInPlace) {
  Tensor x = put({3}, {1, 2, 3});
  device().add(x, put({3}, {10, 20, 30}), x);
  EXPECT_EQ(get(x), (Floats{11, 22, 33}));
  device().scale(x, 0.5F);
  EXPECT_EQ(get(x), (Floats{5.5F, 11, 16.5F}));
}

TEST_P(RowOps, RowsMoveAndNegativeOnesDoNot) {
  const Tensor table = put({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor some = filled({4, 2}, 9);
  device().gather_rows(table, device().indices(Rows{2, -1, 0, 2}), some);
  EXPECT_EQ(get(some), (Floats{5, 6, 0, 0, 1, 2, 5, 6}));
  Tensor to = filled({3, 2}, 7);
  device().scatter_rows(some, device().indices(Rows{1, 0, -1, 2}), to);
  EXPECT_EQ(get(to), (Floats{0, 0, 5, 6, 5, 6}));
  Tensor sums = filled({3, 2}, 1);
  device().scatter_add_rows(some, device().indices(Rows{1, -1, 1, 0}), sums);
  EXPECT_EQ(get(sums), (Floats{6, 7, 7, 9, 1, 1}));
  EXPECT_THROW(device().gather_rows(table, device().indices(Rows{3, 0, 0, 0}), some),
               std::logic_error);
  EXPECT_THROW(device().scatter_add_rows(some, device().indices(Rows{3, 0, 0, 0}), sums),
               std::logic_error);
}

TEST_P(RowOps, APreparedLayoutHasTheCacheRowOfEachRow) {
  // Two sequences, the second of which continues at position 3; pages of two keys.
  const std::vector<Rows> pages{{4}, {0, 7, 2}};
  const PreparedLayout layout = device().prepare({{0, 2, 5}, {0, 1, 3, 4, 5}}, {2, pages});
  EXPECT_EQ(layout.row_positions.host, (Rows{0, 1, 3, 4, 5}));
  EXPECT_EQ(layout.cache_rows.host, (Rows{8, 9, 15, 4, 5}));
  EXPECT_THROW(device().prepare({{0, 2, 5}, {0, 2, 3, 4, 5}}, {2, pages}), std::logic_error);
  EXPECT_TRUE(device().prepare({{0, 1}, {0}}).cache_rows.host.empty());
}

// Enough rows for several threads: each sum keeps the order of the rows.
TEST_P(RowOps, ManyRowsMoveAndAddUpInTheirOrder) {
  constexpr std::int64_t count = 700, width = 83, places = 9;
  Floats values(count * width), sums(places * width, 0.5F), moved;
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i)
    rows.push_back(
        static_cast<std::int32_t>(uniform_below(places + 1, 1, 0, static_cast<std::uint64_t>(i))) -
        1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(uniform(1, 1, i));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      if (rows[i] >= 0)
        sums[static_cast<std::size_t>(rows[i]) * width + j] += values[i * width + j];
  const Tensor from = put({count, width}, values);
  Tensor table = filled({places, width}, 0.5F), to = filled({count, width}, 9);
  device().scatter_add_rows(from, device().indices(rows), table);
  EXPECT_EQ(get(table), sums);
  device().gather_rows(table, device().indices(rows), to);
  for (const std::int32_t row : rows)
    for (std::size_t j = 0; j < width; ++j)
      moved.push_back(row < 0 ? 0 : sums[static_cast<std::size_t>(row) * width + j]);
  EXPECT_EQ(get(to), moved);
}

}  // namespace
}  // namespace troupe::engine::ops
