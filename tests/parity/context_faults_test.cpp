// A fault of the communicator in a step over a context-parallel group ends the step of every rank
// with an error that names the operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "tests/support/faulty_step.h"

namespace troupe::test {
namespace {

using engine::parallel::HostileOptions;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::chrono::milliseconds patient{20000}, soon{150};

// The errors of three ranks of which one has faults.
// `ulysses`: size of the groups that exchange heads.
std::map<int, std::string> errors_of(int ulysses, int faulty, const HostileOptions& faults,
                                     std::chrono::milliseconds deadline) {
  const FaultyStep step{.model = grid_models()[0], .grid = {.cp = 3}, .ulysses = ulysses};
  return step.errors(faulty, faults, deadline);
}

// Every rank has an error that names an operation of the group.
bool all_failed(const std::map<int, std::string>& errors) {
  return all_failed_with(
      errors, AnyOf(HasSubstr("of a layer"), HasSubstr("attention"), HasSubstr("gradient"),
                    HasSubstr("outputs of a micro-batch"), HasSubstr("of the ring")));
}

TEST(ContextFaults, PausesEndWell) {
  for (const int ulysses : {1, 3})
    for (std::uint64_t seed = 0; seed < 2; ++seed)
      for (const auto& [rank, error] :
           errors_of(ulysses, 1, {.seed = seed, .max_yields = 10}, patient))
        EXPECT_EQ(error, "") << rank;
}

TEST(ContextFaults, LostOperationsAreNamedOnEveryRank) {
  for (const int ulysses : {1, 3}) {
    int failed = 0;
    for (std::int64_t call = 6; call < 14; ++call)
      failed += all_failed(errors_of(ulysses, 1, {.lose_at = call}, soon));
    EXPECT_GE(failed, 6) << ulysses;
  }
}

TEST(ContextFaults, ShortenedMessagesAreNamedOnEveryRank) {
  for (const int ulysses : {1, 3}) {
    int failed = 0;
    for (std::int64_t call = 6; call < 14; ++call)
      failed += all_failed(errors_of(ulysses, 1, {.shorten_at = call}, soon));
    EXPECT_GE(failed, 3) << ulysses;
  }
}

TEST(ContextFaults, ExchangedOperationsEndWellOrAreNamedOnEveryRank) {
  for (std::int64_t call = 6; call < 14; ++call) {
    const auto errors = errors_of(1, 1, {.swap_at = call}, soon);
    const bool well = std::ranges::all_of(errors, [](const auto& e) { return e.second.empty(); });
    EXPECT_TRUE(well || all_failed(errors)) << call;
  }
}

}  // namespace
}  // namespace troupe::test
