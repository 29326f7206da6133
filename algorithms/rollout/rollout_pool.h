// RolloutPool: the rollouts while the policy trains. Each takes the requests in their order: a
// rollout that finds no further chunk of one request takes the next, whose weights it takes
// over first. With async.mode free it takes over the newest weights while it generates instead. The
// chunks of a rollout that is lost are given to the others, which go back to the weights of their
// request for them; its successor takes part as soon as it is there.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "algorithms/rollout/chunks.h"
#include "algorithms/rollout/sampling.h"

namespace troupe::algorithms {

class RolloutPool {
 public:
  /// `changes` is notified when a request is queued or generated, and at the end. `idle_changed` is
  /// called when idle() has changed.
  RolloutPool(Cluster& c, actors::Changes& changes, std::function<void()> idle_changed);
  RolloutPool(const RolloutPool&) = delete;
  ~RolloutPool();

  /// Rollouts that wait for a request.
  std::int64_t idle() const { return idle_; }
  /// Tasks that end after close(): one per rollout, and with `adopts` a second one per rollout,
  /// which takes over the weights of offer().
  std::vector<Task<void>> rollouts(bool adopts);
  /// The newest weights.
  void offer(std::shared_ptr<const protocol::Weights> weights);
  /// Queues the request behind those before it, and waits until its samples are generated with the
  /// weights that `from` says. Throws the failure of a rollout, or Failure (Errc::cancelled) after
  /// close().
  Task<void> generate(const Sampling& from, std::shared_ptr<ChunkedRequest> request);
  /// Requests no further chunk. `why`: the failure that generate() throws.
  void close(std::exception_ptr why = nullptr);

 private:
  struct Job {
    std::shared_ptr<ChunkedRequest> request;
    std::shared_ptr<const protocol::Weights> weights;  ///< to take over first; null: ...
    std::uint64_t oldest = 0;                          ///< ... the oldest version that may sample
  };
  struct Worker {
    RolloutRef& rollout;
    std::optional<std::uint64_t> version = {};  ///< of its weights
  };
  bool present(Worker& worker);
  const Job* first_open();
  Task<std::optional<Job>> next_job(Worker& worker);
  Task<void> serve(Worker& worker);
  Task<void> work_on(Worker& worker, Job job);
  Task<void> adopt(Worker& worker);
  Task<void> guarded(Task<void> work);
  Task<void> end_samples();
  Task<void> has_weights(Worker& worker, const Job& job);
  Task<void> take_over(Worker& worker, std::shared_ptr<const protocol::Weights> weights);

  Cluster& c_;
  actors::Changes& changes_;
  std::function<void()> idle_changed_;
  std::int64_t idle_ = 0;
  std::deque<Job> jobs_;  // that may not be generated yet, in their order
  std::deque<Worker> workers_;
  std::shared_ptr<const protocol::Weights> newest_;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace troupe::algorithms
