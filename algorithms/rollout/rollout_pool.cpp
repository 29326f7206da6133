#include "algorithms/rollout/rollout_pool.h"

#include <algorithm>

#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

RolloutPool::RolloutPool(Cluster& c, actors::Changes& changes, std::function<void()> idle_changed)
    : c_(c), changes_(changes), idle_changed_(std::move(idle_changed)) {
  if (c_.recovery) c_.recovery->on_change([this] { changes_.notify(); });
}

RolloutPool::~RolloutPool() {
  if (c_.recovery) c_.recovery->on_change(nullptr);
}

std::vector<Task<void>> RolloutPool::rollouts(bool adopts) {
  std::vector<Task<void>> tasks;
  for (auto& rollout : c_.rollouts) {
    Worker& worker = workers_.emplace_back(Worker{rollout});
    tasks.push_back(guarded(serve(worker)));
    if (adopts) tasks.push_back(guarded(adopt(worker)));
  }
  if (adopts) tasks.push_back(end_samples());
  return tasks;
}

void RolloutPool::offer(std::shared_ptr<const protocol::Weights> weights) {
  newest_ = std::move(weights);
  changes_.notify();
}

Task<void> RolloutPool::generate(const Sampling& from, std::shared_ptr<ChunkedRequest> request) {
  jobs_.push_back(Job{request, from.weights, from.oldest});
  if (closed_) request->stop();
  *from.queued = true;
  changes_.notify();
  while (!request->generated()) {
    if (failure_) std::rethrow_exception(failure_);
    if (closed_) throw Failure({Errc::cancelled, "the run ended while samples were generated"});
    co_await changes_.next();
  }
  std::erase_if(jobs_, [](const Job& job) { return job.request->generated(); });
}

void RolloutPool::close(std::exception_ptr why) {
  if (!failure_) failure_ = std::move(why);
  closed_ = true;
  for (const Job& job : jobs_) job.request->stop();
  changes_.notify();
}

Task<void> RolloutPool::guarded(Task<void> work) {
  try {
    co_await work;
  } catch (...) {
    close(std::current_exception());
  }
}

// False while the rollout is lost. A successor has no weights yet.
bool RolloutPool::present(Worker& worker) {
  const std::uint64_t before = worker.rollout.address().incarnation;
  const bool there = take_successor(c_, worker.rollout);
  if (worker.rollout.address().incarnation != before) worker.version.reset();
  return there;
}

const RolloutPool::Job* RolloutPool::first_open() {
  const auto found =
      std::ranges::find_if(jobs_, [](const Job& job) { return job.request->open(); });
  return found == jobs_.end() ? nullptr : &*found;
}

// Waits until the rollout is present and there is a chunk to request, or (nullopt) for the end.
Task<std::optional<RolloutPool::Job>> RolloutPool::next_job(Worker& worker) {
  const auto waits = [&] { return !closed_ && (!present(worker) || !first_open()); };
  if (waits()) {
    ++idle_;
    idle_changed_();
    while (waits()) co_await changes_.next();
    --idle_;
    idle_changed_();
  }
  if (closed_) co_return std::nullopt;
  co_return *first_open();
}

Task<void> RolloutPool::serve(Worker& worker) {
  for (;;) {
    const std::optional<Job> job = co_await next_job(worker);
    if (!job) co_return;
    co_await survives(c_, worker.rollout, work_on(worker, *job));
  }
}

Task<void> RolloutPool::work_on(Worker& worker, Job job) {
  const RolloutRef rollout = worker.rollout;
  co_await has_weights(worker, job);
  if (closed_ || rollout.address() != worker.rollout.address()) co_return;  // lost since then
  co_await generate_chunks(c_, rollout, *job.request, &changes_);
}

// Returns when the rollout has weights that may sample the request.
Task<void> RolloutPool::has_weights(Worker& worker, const Job& job) {
  if (!job.weights) {
    while (!closed_ && present(worker) && !(worker.version && *worker.version >= job.oldest))
      co_await changes_.next();
  } else if (worker.version != job.weights->version) {
    co_await take_over(worker, job.weights);
  }
}

// The weights that are offered, while the rollout generates. Those that newer ones replace
// meanwhile are left out.
Task<void> RolloutPool::adopt(Worker& worker) {
  while (!closed_) {
    if (present(worker) && newest_ && worker.version != newest_->version) {
      co_await survives(c_, worker.rollout, take_over(worker, newest_));
      changes_.notify();
    } else {
      co_await changes_.next();
    }
  }
}

// At the end of the run nobody waits for the samples that are being generated.
Task<void> RolloutPool::end_samples() {
  while (!closed_) co_await changes_.next();
  std::vector<actors::Reply<std::uint64_t>> ending;
  for (Worker& worker : workers_) {
    if (c_.recovery && !c_.recovery->present(worker.rollout.address().node)) continue;
    protocol::CancelSamples message;
    ending.push_back(worker.rollout.ask(std::move(message), c_.timeout));
  }
  for (auto& reply : ending) co_await reply.try_get();
}

Task<void> RolloutPool::take_over(Worker& worker,
                                  std::shared_ptr<const protocol::Weights> weights) {
  const RolloutRef rollout = worker.rollout;
  co_await prepare_weights(c_, rollout, *weights);
  protocol::CommitWeights commit{weights->version};
  auto committing = rollout.ask(std::move(commit), c_.timeout);
  co_await committing.get();
  if (rollout.address() != worker.rollout.address()) co_return;  // lost since then
  worker.version = weights->version;
  if (c_.recovery) c_.recovery->has_version(rollout.address().node, weights->version);
  if (c_.stream) c_.stream->committed(rollout.address(), *weights);
}

}  // namespace troupe::algorithms
