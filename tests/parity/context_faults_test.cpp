// A fault of the communicator in a step over a context-parallel group ends the step of every rank
// with an error that names the operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/parallel/hostile.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

using engine::parallel::Communicator;
using engine::parallel::HostileOptions;
using engine::train::Trainer;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::chrono::milliseconds patient{20000}, soon{150};

// The errors of three ranks of which one has faults; "" where a rank has none.
// `ulysses`: size of the groups that exchange heads.
std::map<int, std::string> errors_of(int ulysses, int faulty, const HostileOptions& faults,
                                     std::chrono::milliseconds deadline) {
  static const GridModel model = grid_models()[0];
  static const Experience batch = full_batch(5, 8, 1, model.spec.vocabulary);
  std::mutex mutex;
  std::map<int, std::string> errors;
  const auto work = [&](Communicator& group) {
    std::string error;
    const auto own = group.split(0, group.rank());
    try {
      const auto options = group.rank() == faulty ? faults : HostileOptions{};
      const Mesh mesh = value_or_throw(
          Mesh::create(make_hostile(own->split(0, own->rank()), options), {.cp = 3}));
      const auto device = engine::ops::make_cpu_device({.threads = 1});
      Trainer trainer(grid_decoder(*device, model, 3, mesh, true, {}, ulysses),
                      {.micro_batch_tokens = 60}, &mesh);
      trainer.forward_backward(batch, algorithms::SftLoss{});
      value_or_throw(trainer.update(1e-2));
    } catch (const std::exception& failure) {
      error = failure.what();
      own->abort(error);
    }
    const std::lock_guard lock(mutex);
    errors[group.rank()] = error;
  };
  on_ranks(3, work, {.deadline = deadline});
  return errors;
}

// Every rank has an error that names an operation of the group.
bool all_failed(const std::map<int, std::string>& errors) {
  for (const auto& [rank, error] : errors)
    if (error.empty()) return false;
  for (const auto& [rank, error] : errors)
    EXPECT_THAT(error, AnyOf(HasSubstr("of a layer"), HasSubstr("attention"), HasSubstr("gradient"),
                             HasSubstr("outputs of a micro-batch"), HasSubstr("of the ring")))
        << "rank " << rank;
  return true;
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
