// A training step on a grid of threads of which one rank has a faulty communicator.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/parallel/all_reduce.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"
#include "tests/support/hostile.h"

namespace troupe::test {

/// One micro-batched step of `model` over the grid, at whose end the ranks meet: a rank that fails
/// ends the others.
struct FaultyStep {
  GridModel model;
  Grid grid;
  int ulysses = 1;  ///< size of the groups that exchange heads
  int chunks = 1;   ///< of a pipeline stage
  bool divides_rows = false, zero = false;
  engine::train::Overlap overlap = engine::train::Overlap::none;
  bool scores = false;  ///< forward passes alone
  int sequences = 8;
  std::int32_t micro_batch_tokens = 60;

  /// The errors of the ranks, of which `faulty` has the faults; "" where a rank has none.
  /// `on_error` is called when a rank has one.
  std::map<int, std::string> errors(
      int faulty, const engine::parallel::HostileOptions& faults,
      std::chrono::milliseconds deadline, const std::function<void()>& on_error = [] {}) const {
    const Experience batch = full_batch(5, sequences, 1, model.spec.vocabulary);
    std::mutex mutex;
    std::map<int, std::string> found;
    const auto work = [&](engine::parallel::Communicator& group) {
      std::string error;
      try {
        const auto options = group.rank() == faulty ? faults : engine::parallel::HostileOptions{};
        run(value_or_throw(Mesh::create(make_hostile(group.split(0, group.rank()), options), grid)),
            batch);
      } catch (const std::exception& failure) {
        error = failure.what();
        group.abort(error);
        on_error();
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
    auto part = part_on(mesh, {}, ulysses);
    part.chunks = chunks;
    part.divides_rows = divides_rows;
    engine::train::TrainerOptions options{.micro_batch_tokens = micro_batch_tokens,
                                          .shard_optimizer = zero};
    options.overlap = overlap;
    options.bucket_values = 1000;
    engine::train::Trainer trainer(part_decoder(*device, model, 3, part, true), options, &mesh);
    if (scores) {
      trainer.logprobs(batch, 1);
    } else {
      trainer.forward_backward(batch, algorithms::SftLoss{});
      value_or_throw(trainer.update(1e-2));
      trainer.forward_backward(batch, algorithms::SftLoss{});
    }
    engine::parallel::barrier(mesh.world(), "the end of the step");
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
