#include "algorithms/rollout/rollout_pool.h"

#include <optional>

#include "algorithms/weight_sync.h"

namespace troupe::algorithms {

std::vector<Task<void>> RolloutPool::rollouts() {
  std::vector<Task<void>> tasks;
  for (const auto& rollout : c_.rollouts) tasks.push_back(work(rollout, last_));
  return tasks;
}

Task<void> RolloutPool::generate(const Sampling& from, std::shared_ptr<ChunkedRequest> request) {
  last_->next = std::make_shared<Job>(Job{request, from.weights, nullptr});
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

Task<void> RolloutPool::work(const RolloutRef& rollout, std::shared_ptr<Job> after) {
  try {
    co_await serve(rollout, std::move(after));
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

Task<void> RolloutPool::serve(const RolloutRef& rollout, std::shared_ptr<Job> after) {
  std::optional<std::uint64_t> version;
  for (;;) {
    co_await next_job(*after);
    if (closed_) co_return;
    after = after->next;
    if (after->request->next == after->request->chunks.size()) continue;  // the others have all
    if (version != after->weights->version) {
      co_await take_over(rollout, *after->weights);
      version = after->weights->version;
    }
    co_await generate_chunks(c_, rollout, *after->request, &changes_);
  }
}

Task<void> RolloutPool::take_over(const RolloutRef& rollout, const protocol::Weights& weights) {
  protocol::PrepareWeights prepare{weights};
  auto preparing = rollout.ask(std::move(prepare), c_.timeout);
  const auto logp = co_await preparing.get();
  check_probe(weights, logp, rollout.address());
  protocol::CommitWeights commit{weights.version};
  auto committing = rollout.ask(std::move(commit), c_.timeout);
  co_await committing.get();
}

}  // namespace troupe::algorithms
