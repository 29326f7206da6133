#include "algorithms/rollout/rollout_pool.h"

#include "algorithms/training/weight_sync.h"

namespace troupe::algorithms {

std::vector<Task<void>> RolloutPool::rollouts(bool adopts) {
  std::vector<Task<void>> tasks;
  for (const auto& rollout : c_.rollouts) {
    Worker& worker = workers_.emplace_back(Worker{rollout, std::nullopt});
    tasks.push_back(guarded(serve(worker, last_)));
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
  last_->next = std::make_shared<Job>(Job{request, from.weights, from.oldest, nullptr});
  last_ = last_->next;
  std::erase_if(open_, [](const auto& each) { return each.expired(); });
  open_.push_back(request);
  if (closed_) request->stop();
  *from.queued = true;
  changes_.notify();
  while (!request->generated()) {
    if (failure_) std::rethrow_exception(failure_);
    if (closed_) throw Failure({Errc::cancelled, "the run ended while samples were generated"});
    co_await changes_.next();
  }
}

void RolloutPool::close(std::exception_ptr why) {
  if (!failure_) failure_ = std::move(why);
  closed_ = true;
  for (const auto& each : open_)
    if (const auto request = each.lock()) request->stop();
  changes_.notify();
}

Task<void> RolloutPool::guarded(Task<void> work) {
  try {
    co_await work;
  } catch (...) {
    close(std::current_exception());
  }
}

// Waits until there is a request behind `after`, or the end.
Task<void> RolloutPool::next_job(const Job& after) {
  if (after.next || closed_) co_return;
  ++idle_;
  idle_changed_();
  while (!after.next && !closed_) co_await changes_.next();
  --idle_;
  idle_changed_();
}

Task<void> RolloutPool::serve(Worker& worker, std::shared_ptr<Job> after) {
  for (;;) {
    co_await next_job(*after);
    if (closed_) co_return;
    after = after->next;
    if (after->request->next == after->request->chunks.size()) continue;  // the others have all
    co_await has_weights(worker, *after);
    if (closed_) co_return;
    co_await generate_chunks(c_, worker.rollout, *after->request, &changes_);
  }
}

// Returns when the rollout has weights that may sample the request.
Task<void> RolloutPool::has_weights(Worker& worker, const Job& job) {
  if (!job.weights) {
    while (!closed_ && !(worker.version && *worker.version >= job.oldest)) co_await changes_.next();
  } else if (worker.version != job.weights->version) {
    co_await take_over(worker, job.weights);
  }
}

// The weights that are offered, while the rollout generates. Those that newer ones replace
// meanwhile are left out.
Task<void> RolloutPool::adopt(Worker& worker) {
  while (!closed_) {
    if (newest_ && worker.version != newest_->version) {
      co_await take_over(worker, newest_);
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
  for (const Worker& worker : workers_) {
    protocol::CancelSamples message;
    ending.push_back(worker.rollout.ask(std::move(message), c_.timeout));
  }
  for (auto& reply : ending) co_await reply.try_get();
}

Task<void> RolloutPool::take_over(Worker& worker,
                                  std::shared_ptr<const protocol::Weights> weights) {
  co_await prepare_weights(c_, worker.rollout, *weights);
  protocol::CommitWeights commit{weights->version};
  auto committing = worker.rollout.ask(std::move(commit), c_.timeout);
  co_await committing.get();
  worker.version = weights->version;
  if (c_.stream) c_.stream->committed(worker.rollout.address(), *weights);
}

}  // namespace troupe::algorithms
