// RolloutPool: the rollouts while the policy trains. Each takes the requests in their order: a
// rollout that finds no further chunk of one request takes the next, whose weights it takes
// over first.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "algorithms/rollout/chunks.h"
#include "algorithms/rollout/sampling.h"

namespace troupe::algorithms {

class RolloutPool {
 public:
  /// `changes` is notified when a request is queued or generated, and at the end. `idle_changed` is
  /// called when idle() has changed.
  RolloutPool(Cluster& c, actors::Changes& changes, std::function<void()> idle_changed)
      : c_(c), changes_(changes), idle_changed_(std::move(idle_changed)) {}

  /// Rollouts that wait for a request.
  std::int64_t idle() const { return idle_; }
  /// One task per rollout, which ends after close().
  std::vector<Task<void>> rollouts();
  /// Queues the request behind those before it, and waits until its samples are generated with
  /// `from.weights`. Throws the failure of a rollout, or Failure (Errc::cancelled) after close().
  Task<void> generate(const Sampling& from, std::shared_ptr<ChunkedRequest> request);
  /// Requests no further chunk. `why`: the failure that generate() throws.
  void close(std::exception_ptr why = nullptr);

 private:
  struct Job {
    std::shared_ptr<ChunkedRequest> request;
    std::shared_ptr<const protocol::Weights> weights;
    std::shared_ptr<Job> next;
  };
  Task<void> next_job(const Job& after);
  Task<void> serve(const RolloutRef& rollout, std::shared_ptr<Job> after);
  Task<void> work(const RolloutRef& rollout, std::shared_ptr<Job> after);
  Task<void> take_over(const RolloutRef& rollout, const protocol::Weights& weights);

  Cluster& c_;
  actors::Changes& changes_;
  std::function<void()> idle_changed_;
  std::int64_t idle_ = 0;
  std::shared_ptr<Job> last_ = std::make_shared<Job>();  // of the queue
  std::vector<std::weak_ptr<ChunkedRequest>> open_;      // requests that may not be generated yet
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace troupe::algorithms
