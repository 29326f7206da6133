#include "algorithms/rollout/batches.h"

#include <algorithm>

#include "actors/runtime/when_all.h"
#include "algorithms/rollout/reward_failures.h"
#include "algorithms/training/weight_sync.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::algorithms {
namespace {

// Batches that are sampled and rewarded at a time.
std::int64_t batches_in_flight(const BatchPlan& plan) {
  return plan.async.in_flight == 0 ? 2
                                   : std::max<std::int64_t>(1, plan.async.in_flight / plan.samples);
}

void add_interruptions(Metrics& metrics, const RolloutBatch& samples) {
  double interrupted = 0, resumed = 0, mixed = 0;
  for (const auto& completion : samples.completions) {
    interrupted += completion.interruptions > 0 ? 1 : 0;
    resumed += completion.interruptions > completion.restarts ? 1 : 0;
    mixed += completion.versions.size() > 1 ? 1 : 0;
  }
  metrics.insert(metrics.end(), {{"rollout/interrupted", interrupted},
                                 {"rollout/resumed", resumed},
                                 {"rollout/mixed_versions", mixed}});
}

}  // namespace

RolloutBatches::RolloutBatches(Cluster& c, TrainingPlan& plan, const BatchPlan& batches,
                               const HeldOutPrompts& held_out, SampleBatch sample)
    : c_(c),
      plan_(plan),
      batches_(batches),
      held_out_(held_out),
      sample_(std::move(sample)),
      pool_(c, changes_, [this] { note(); }),
      admission_({.batch = 1, .eta = batches.async.eta, .in_flight = batches_in_flight(batches)},
                 plan.batches_done),
      trained_(plan.batches_done),
      started_(trained_),
      sampled_(trained_) {
  if ((overlaps() || batches.external) && c.versions)
    plan.before_save = [this](std::int64_t step, auto& state) { save_kept(step, state); };
}

// The version that samples a batch; free: the oldest one.
std::int64_t RolloutBatches::version_of(std::int64_t batch) const {
  return std::max(batch - batches_.async.eta, oldest_);
}

Sampling RolloutBatches::sampling_of(std::int64_t version) {
  if (free()) return {c_, pool_, static_cast<std::uint64_t>(version)};
  return {c_, pool_, versions_.at(version)};
}

// A batch of dynamic sampling may have fewer updates, so the end is known only when it is near.
void RolloutBatches::set_end(std::int64_t step) {
  const std::int64_t left = std::max<std::int64_t>(0, plan_.steps - step);
  end_ = trained_ + (left + batches_.updates - 1) / batches_.updates;
}

// The weights that the first batches are sampled with: those that the checkpoint kept, and the
// policy's. A checkpoint of a run with a smaller eta, or without one, lacks the older versions; its
// oldest one takes their place. free needs the policy's only, and the samples that were finished.
Task<void> RolloutBatches::begin() {
  const std::int64_t needed = std::max<std::int64_t>(0, trained_ - batches_.async.eta);
  for (const auto version : plan_.versions) {
    const auto kept = static_cast<std::int64_t>(version);
    if (!free() && kept >= needed && kept < trained_)
      versions_[kept] = c_.versions->load(plan_.done, version);
  }
  oldest_ = versions_.empty() ? trained_ : versions_.begin()->first;
  if (!free() && oldest_ > needed)
    log_info(cat("async.eta ", batches_.async.eta, ": the checkpoint has the weights of versions ",
                 oldest_, " and later, so batches ", trained_, " to ",
                 oldest_ + batches_.async.eta - 1, " are sampled with version ", oldest_));
  restore_samples();
  set_end(plan_.done);
  co_await publish(trained_);
}

void RolloutBatches::restore_samples() {
  if (!keeps_samples() || !c_.versions || plan_.done == 0) return;
  finished_.restore(c_.versions->load_samples(plan_.done), trained_, batches_.async.eta);
  saved_ = plan_.done;
  in_checkpoint_ = finished_.count();
}

Task<void> RolloutBatches::run(Task<void> training) {
  if (!overlaps()) {
    restore_samples();
    co_await training;
    co_return;
  }
  co_await begin();
  std::vector<Task<void>> tasks;
  tasks.push_back(close_after(std::move(training)));
  for (auto& rollout : pool_.rollouts(free())) tasks.push_back(std::move(rollout));
  for (std::int64_t i = 0; i < batches_in_flight(batches_); ++i) tasks.push_back(sample_batches());
  co_await actors::when_all(std::move(tasks));
}

Task<void> RolloutBatches::close_after(Task<void> training) {
  std::exception_ptr thrown;
  try {
    co_await training;
  } catch (...) {
    thrown = std::current_exception();
  }
  close(thrown);
  if (thrown) std::rethrow_exception(thrown);
}

void RolloutBatches::close(std::exception_ptr why) {
  if (!failure_) failure_ = std::move(why);
  closed_ = true;
  pool_.close();
}

bool RolloutBatches::may_start() const {
  return !exhausted_ && started_ < end_ && *queued_ && admission_.admits_batch() &&
         (free() || versions_.contains(version_of(started_))) &&
         (!batches_.in_turn || sampled_ == started_);
}

// A batch could be sampled now, but for the weights.
bool RolloutBatches::waits_for_weights() const {
  return !exhausted_ && started_ < end_ && *queued_ &&
         (!batches_.in_turn || sampled_ == started_) &&
         admission_.running() < batches_in_flight(batches_) &&
         !versions_.contains(version_of(started_));
}

// Reports the state of both sides.
void RolloutBatches::note() {
  c_.journal.overlap({.queue = std::ssize(ready_),
                      .in_flight = (started_ - sampled_) * batches_.samples,
                      .waiting_for_weights = waits_for_weights(),
                      .rollouts = std::ssize(c_.rollouts),
                      .idle_rollouts = pool_.idle(),
                      .policy_waits = policy_waits_,
                      .steady = trained_ > plan_.batches_done && !exhausted_ && started_ < end_});
}

// One of the batches in flight after the other.
Task<void> RolloutBatches::sample_batches() {
  try {
    while (!closed_) {
      if (may_start())
        co_await sample_batch();
      else
        co_await changes_.next();
    }
  } catch (...) {
    close(std::current_exception());
  }
}

Task<void> RolloutBatches::sample_batch() {
  const std::int64_t batch = started_++;
  Sampling from = sampling_of(version_of(batch));
  if (keeps_samples()) from.finished = &finished_;
  from.batch = batch;
  from.ledger = c_.ledger;
  queued_ = from.queued;
  *queued_ = false;
  const auto queued = queued_;
  admission_.start(1);
  note();
  auto sampling = sample_(std::move(from), batch > 0);
  auto samples = co_await sampling;
  *queued = true;
  admission_.accept(1);
  ++sampled_;
  exhausted_ = exhausted_ || !samples;
  ready_.emplace(batch, std::move(samples));
  note();
  changes_.notify();
}

// The failure of a sampling, when training needs its batch.
void RolloutBatches::rethrow_failure() const {
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const RewardFailure& failure) {
    c_.journal.rewards_failed(failure.what());
    throw;
  }
}

Task<std::optional<RolloutBatch>> RolloutBatches::next() {
  auto completing = next_complete();
  std::optional<RolloutBatch> samples;
  try {
    samples = co_await completing;
  } catch (const RewardFailure& failure) {
    c_.journal.rewards_failed(failure.what());
  }
  if (samples && c_.ledger) c_.ledger->batched(trained_, samples->completions);
  co_return samples;
}

Task<std::optional<RolloutBatch>> RolloutBatches::next_complete() {
  if (!overlaps()) {
    co_await sync_weights(c_, trained_);
    Sampling from(c_);
    if (keeps_samples()) from.finished = &finished_;
    from.batch = trained_;
    from.ledger = c_.ledger;
    auto sampling = sample_(std::move(from), trained_ > 0);
    auto samples = co_await sampling;
    co_return samples;
  }
  policy_waits_ = true;
  note();
  while (
      !ready_.contains(trained_)) {  // complete batches are trained before a failure ends the run
    rethrow_failure();
    co_await changes_.next();
  }
  auto samples = std::move(ready_.at(trained_));
  ready_.erase(trained_);
  policy_waits_ = false;
  note();
  co_return samples;
}

Metrics RolloutBatches::version_metrics(const RolloutBatch& samples) const {
  if (!overlaps()) return {};
  double sum = 0, count = 0, maximum = 0;
  for (const std::int32_t version : samples.batch.token_version) {
    if (version < 0) continue;
    const auto staleness = static_cast<double>(trained_ - version);
    sum += staleness;
    count += 1;
    maximum = std::max(maximum, staleness);
  }
  Metrics metrics{{"staleness/mean", sum / count},
                  {"staleness/max", count > 0 ? maximum : sum / count}};
  if (free()) add_interruptions(metrics, samples);
  return metrics;
}

std::uint64_t RolloutBatches::updates_before(const RolloutBatch& samples) const {
  if (const auto own = versions_.find(trained_); own != versions_.end())
    return own->second->updates;
  const auto& sampled_by = samples.batch.version;  // off: the same weights
  return sampled_by.empty() ? 0 : std::ranges::max(sampled_by);
}

Task<void> RolloutBatches::publish(std::int64_t version) {
  if (versions_.contains(version)) co_return;
  auto publishing = publish_weights(c_, version);
  auto weights = co_await publishing;
  versions_[version] = std::make_shared<const protocol::Weights>(std::move(weights));
  if (free()) pool_.offer(versions_[version]);
}

Task<void> RolloutBatches::evaluate(std::int64_t before, std::int64_t step, Metrics& metrics) {
  if (!held_out_.due(before, step, plan_.steps)) co_return;
  const std::int64_t version = trained_ + 1;
  if (!overlaps()) {
    co_await add_evaluation(c_, held_out_, version, metrics);
    co_return;
  }
  co_await publish(version);
  // After the batches of older versions, because a rollout does not go back to an older one. With
  // free the batches have no versions of their own, and newer weights than these do not exist yet.
  const std::int64_t older = free() ? 0 : std::min(version + batches_.async.eta, end_);
  while (sampled_ < older && !exhausted_) {
    rethrow_failure();
    co_await changes_.next();
  }
  Sampling from = sampling_of(version);
  auto evaluating = evaluate_prompts(std::move(from), held_out_);
  const auto eval = co_await evaluating;
  metrics.insert(metrics.end(), eval.begin(), eval.end());
}

// Older than the policy's, for the next eta batches.
std::vector<SharedWeights> RolloutBatches::kept_versions() const {
  std::vector<SharedWeights> kept;
  if (free()) return kept;  // they are sampled again, with the policy's
  for (const auto& [version, weights] : versions_)
    if (version >= version_of(trained_) && version < trained_) kept.push_back(weights);
  return kept;
}

// What a checkpoint of step `step` needs for the next batches, at one moment: samples arrive while
// a checkpoint before it is written.
void RolloutBatches::save_kept(std::int64_t step, protocol::RunState& state) {
  const auto versions = kept_versions();
  const auto samples = saves_samples() ? finished_.all() : std::vector<FinishedSample>();
  state.finished = samples.size();
  state.versions.clear();
  for (const auto& weights : versions) state.versions.push_back(weights->version);
  if (plan_.resumable) state.kept = c_.versions->save(step, versions, samples);
  saved_ = step;
  in_checkpoint_ = samples.size();
}

void RolloutBatches::add_batches(protocol::RunState& state) const {
  state.batches = trained_;
}

Task<void> RolloutBatches::save_start(std::int64_t before, std::int64_t step,
                                      protocol::RunState& state) {
  add_batches(state);
  co_await save_round_start(c_, plan_, before, step, state);
}

// Samples of other programs that have arrived since the checkpoint become part of it.
Task<void> RolloutBatches::end_early(std::int64_t before, std::int64_t step,
                                     protocol::RunState& state) {
  add_batches(state);
  const std::uint64_t known = saved_ == step ? in_checkpoint_ : 0;
  const bool kept = batches_.external && saves_samples();
  const bool added = kept && step > 0 && finished_.count() != known;
  co_await algorithms::end_early(c_, plan_, before, step, state, added);
}

Task<bool> RolloutBatches::end_step(std::int64_t before, std::int64_t step,
                                    protocol::RunState& state) {
  ++trained_;
  finished_.drop_before(trained_);
  if (overlaps()) {
    set_end(step);
    if (step < plan_.steps) {
      co_await publish(trained_);
    }
    const std::int64_t needed = free() ? trained_ : version_of(trained_);
    std::erase_if(versions_, [&](const auto& each) { return each.first < needed; });
    admission_.trained();
    note();
    changes_.notify();  // the rollouts continue while a checkpoint is written
  }
  add_batches(state);
  const bool more = co_await algorithms::end_step(c_, plan_, before, step, state);
  co_return more;
}

}  // namespace troupe::algorithms
