// The gradient of a tied table through its lookup is a sum of its own.
#include "engine/nn/lookup_gradient.h"

#include <gtest/gtest.h>

#include "engine/nn/parameters.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::engine::nn {
namespace {

using Rows = std::vector<std::int32_t>;

struct Lookups : testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  LookupGradient lookup{*device, {4, 2}};

  Tensor rows_of(const std::vector<float>& values) {
    return ops::from_host(*device, {static_cast<std::int64_t>(values.size() / 2), 2}, values);
  }
  std::vector<float> moved_to(const std::vector<float>& values) {
    Tensor grad = rows_of(values);
    lookup.move_to(grad);
    return ops::to_host(*device, grad);
  }
};

TEST_F(Lookups, AddRowsInOrderAndSkipThoseOfOtherRanks) {
  lookup.add(rows_of({1, 2, 3, 4, 5, 6}), Rows{2, -1, 2});
  lookup.add(rows_of({7, 8}), Rows{0});
  EXPECT_EQ(moved_to({1, 1, 1, 1, 1, 1, 1, 1}), (std::vector<float>{8, 9, 1, 1, 7, 9, 1, 1}));
}

TEST_F(Lookups, AreZeroAfterTheyWereMoved) {
  lookup.add(rows_of({1, 2}), Rows{3});
  moved_to(std::vector<float>(8, 0));
  EXPECT_EQ(moved_to(std::vector<float>(8, 5)), std::vector<float>(8, 5));
  lookup.add(rows_of({10, 20}), Rows{3});
  EXPECT_EQ(moved_to(std::vector<float>(8, 0)), (std::vector<float>{0, 0, 0, 0, 0, 0, 10, 20}));
}

// With 2^24 as the head's gradient, 1 + 1 counts and 1 alone is rounded away.
TEST_F(Lookups, AreAddedToTheHeadsGradientOnce) {
  constexpr float large = 16777216;
  lookup.add(rows_of({1, 0, 1, 0}), Rows{0, 0});
  EXPECT_EQ(moved_to(std::vector<float>(8, large))[0], large + 2);
}

TEST_F(Lookups, ComeToMoreRowsThanOneCopyHas) {
  const std::int32_t rows = 2500;
  LookupGradient large(*device, {rows, 1});
  Rows ids;
  std::vector<float> values;
  for (std::int32_t row = 0; row < rows; ++row) {
    ids.push_back(rows - 1 - row);
    values.push_back(static_cast<float>(row));
  }
  large.add(ops::from_host(*device, {rows, 1}, values), ids);
  Tensor grad = device->empty({rows, 1});
  device->fill(grad, 0);
  large.move_to(grad);
  EXPECT_EQ(ops::to_host(*device, grad), (std::vector<float>(values.rbegin(), values.rend())));
}

TEST_F(Lookups, ArePartOfTheGradientsThatAreRead) {
  Parameters parameters(*device, {{.name = "table", .shape = {4, 2}}}, true);
  const Parameter& table = parameters.at("table");
  table.state->lookup = std::make_unique<LookupGradient>(*device, table.grad.shape());
  table.state->unset = true;  // no head has computed a gradient
  table.state->lookup->add(rows_of({1, 2}), Rows{1});
  EXPECT_EQ(ops::to_host(*device, parameters.grads()),
            (std::vector<float>{0, 0, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(ops::to_host(*device, parameters.grads()), (std::vector<float>{0, 0, 1, 2, 0, 0, 0, 0}))
      << "reading again changes nothing";
}

}  // namespace
}  // namespace troupe::engine::nn
