// A training step on a grid of threads of which one rank has a faulty communicator.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/parallel/hostile.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {

/// One micro-batched step of `model` over the grid.
struct FaultyStep {
  GridModel model;
  Grid grid;
  int ulysses = 1;  ///< size of the groups that exchange heads

  /// The errors of the ranks, of which `faulty` has the faults; "" where a rank has none.
  std::map<int, std::string> errors(int faulty, const engine::parallel::HostileOptions& faults,
                                    std::chrono::milliseconds deadline) const {
    const Experience batch = full_batch(5, 8, 1, model.spec.vocabulary);
    std::mutex mutex;
    std::map<int, std::string> found;
    const auto work = [&](engine::parallel::Communicator& group) {
      std::string error;
      const auto own = group.split(0, group.rank());
      try {
        const auto options = group.rank() == faulty ? faults : engine::parallel::HostileOptions{};
        run(value_or_throw(Mesh::create(make_hostile(own->split(0, own->rank()), options), grid)),
            batch);
      } catch (const std::exception& failure) {
        error = failure.what();
        own->abort(error);
      }
      const std::lock_guard lock(mutex);
      found[group.rank()] = error;
    };
    on_ranks(grid.ranks(), work, {.deadline = deadline});
    return found;
  }

 private:
  void run(const Mesh& mesh, const Experience& batch) const {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    engine::train::Trainer trainer(grid_decoder(*device, model, 3, mesh, true, {}, ulysses),
                                   {.micro_batch_tokens = 60}, &mesh);
    trainer.forward_backward(batch, algorithms::SftLoss{});
    value_or_throw(trainer.update(1e-2));
  }
};

/// Whether every rank has an error; each must match.
inline bool all_failed_with(const std::map<int, std::string>& errors,
                            const testing::Matcher<const std::string&>& names_an_operation) {
  for (const auto& [rank, error] : errors)
    if (error.empty()) return false;
  for (const auto& [rank, error] : errors)
    EXPECT_THAT(error, names_an_operation) << "rank " << rank;
  return true;
}

}  // namespace troupe::test
