// A fault of the communicator in a step over pipeline stages ends the step of every rank with an
// error that names the operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "tests/support/faulty_step.h"

namespace troupe::test {
namespace {

using engine::parallel::HostileOptions;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::chrono::milliseconds patient{20000}, soon{150};

GridModel three_layers() {
  GridModel model = grid_models()[0];
  model.spec.layers = 3;
  return model;
}

// The errors of the ranks of three stages, of which one has faults.
std::map<int, std::string> errors_of(int faulty, const HostileOptions& faults,
                                     std::chrono::milliseconds deadline) {
  return FaultyStep{.model = three_layers(), .grid = {.pp = 3}}.errors(faulty, faults, deadline);
}

// Every rank has an error that names an operation between stages.
bool all_failed(const std::map<int, std::string>& errors) {
  return all_failed_with(
      errors, AnyOf(HasSubstr("of micro-batch"), HasSubstr("gradient"), HasSubstr("stage")));
}

TEST(PipelineFaults, WithoutOneTheStepEndsWell) {
  for (const auto& [rank, error] : errors_of(-1, {}, patient)) EXPECT_EQ(error, "") << rank;
}

TEST(PipelineFaults, PausesEndWell) {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const auto& [rank, error] : errors_of(1, {.seed = seed, .max_yields = 50}, patient))
      EXPECT_EQ(error, "") << rank;
}

TEST(PipelineFaults, LostOperationsAreNamedOnEveryRank) {
  int failed = 0;
  for (std::int64_t call = 4; call < 12; ++call)
    failed += all_failed(errors_of(1, {.lose_at = call}, soon));
  EXPECT_GE(failed, 5);
}

TEST(PipelineFaults, ShortenedMessagesAreNamedOnEveryRank) {
  int failed = 0;
  for (std::int64_t call = 4; call < 12; ++call)
    failed += all_failed(errors_of(1, {.shorten_at = call}, soon));
  EXPECT_GE(failed, 4);
}

}  // namespace
}  // namespace troupe::test
