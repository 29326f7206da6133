#include "launch/run/algorithm_run.h"

#include <filesystem>

#include "actors/runtime/run.h"
#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/exit_code.h"
#include "launch/run/hangs.h"
#include "launch/run/interrupt.h"
#include "launch/run/kept_files.h"
#include "launch/run/ledger.h"
#include "launch/run/measured_run.h"
#include "launch/run/overlap_summary.h"
#include "launch/run/resumable.h"
#include "launch/run/settings.h"

namespace troupe::launch::run {

namespace {

// For a run that its own data or gradients ended: where it can be resumed with other settings.
std::string last_checkpoint(const std::string& output) {
  std::error_code none;
  const auto latest = std::filesystem::read_symlink(output + "/latest", none);
  return none ? ". No checkpoint was saved"
              : cat(". The last good checkpoint is ", output, "/", latest.string());
}

// What the checkpoint has of the plan, if there is one. One without a count of batches had
// `updates` steps for each.
void restore(const TrainingState* state, std::int64_t updates, algorithms::TrainingPlan& plan) {
  plan.batches_done = plan.done / std::max<std::int64_t>(1, updates);
  if (!state) return;
  if (state->selection) value_or_throw(plan.selection.restore(*state->selection));
  if (state->batches) plan.batches_done = *state->batches;
  plan.versions = state->versions;
}

journal::MegatronLogOptions megatron_log(const config::RunConfig& config) {
  const config::TrainConfig& t = config.train;
  return {.every = t.log_every,
          .throughput = t.log_throughput,
          .ranks = config.parallel.ranks(),
          .consumed = [rampup = t.batch_rampup, full = t.batch_size](
                          std::int64_t steps) { return rampup.consumed(steps, full); },
          .learning_rate =
              [config](std::int64_t total, std::int64_t step) {
                return value_or_throw(rate_settings(config, total)).rate(step);
              }};
}

}  // namespace

std::string VersionStore::save(std::int64_t step,
                               const std::vector<algorithms::SharedWeights>& weights,
                               const std::vector<algorithms::FinishedSample>&) {
  return stage_kept(session_.folder(), step, weights);
}

bool VersionStore::keeps_samples() const {
  return session_.config().ledger == config::LedgerUse::on;
}

algorithms::SharedWeights VersionStore::load(std::int64_t step, std::uint64_t version) {
  check(step == session_.done(), "VersionStore: another checkpoint than that of the session");
  const std::string& checkpoint = session_.resume_from();
  return read_kept_version(checkpoint, version, trained_spec(session_.config(), checkpoint));
}

std::vector<algorithms::FinishedSample> VersionStore::load_samples(std::int64_t step) {
  check(step == session_.done(), "VersionStore: another checkpoint than that of the session");
  const std::string& checkpoint = session_.resume_from();
  if (!session_.state()) return {};
  std::vector<std::string> told;  // when the checkpoint was verified
  return finished_samples(session_.config(), checkpoint, *session_.state(), told);
}

AlgorithmRun::AlgorithmRun(const Session& session, profile::RunProfile& profile)
    : session_(session),
      journal_(session.folder(), cat(session.config().algorithm, ": ", session.config().model),
               std::string(recipes::recipe_of(session.config()).name),
               session.config().train.log_every),
      versions_(session) {
  journal_.limit_timeline(static_cast<std::uint64_t>(session.config().timeline.max_mib) << 20);
  if (session.config().train.log_style == config::LogStyle::megatron)
    journal_.log_as_megatron(megatron_log(session.config()));
  journal_.on_step([&profile](std::int64_t step) { profile.at_step(step); });
}

actors::NodeOptions AlgorithmRun::node_options() {
  return {.on_answered = [this](const auto& ask) { journal_.answered(ask); }};
}

int AlgorithmRun::run(Placement& placement, const TextModel& text) {
  placement_ = &placement;
  text_ = &text;
  if (config().ledger == config::LedgerUse::on) {
    anchor_ = ledger_anchor(session_);
    ledger_.emplace(open_ledger(session_, anchor_));
    journal_.add_times(ledger_times(*ledger_));
  }
  journal_.split_by([&text](auto ids, auto sampled) { return text.pieces(ids, sampled); });
  return recipes::recipe_of(config()).run(*this);
}

const Json* AlgorithmRun::saved_data() const {
  const TrainingState* state = session_.state();
  return state && state->data ? &*state->data : nullptr;
}

Json AlgorithmRun::algorithm_state() const {
  return session_.state() ? session_.state()->algorithm.state : Json();
}

std::int64_t AlgorithmRun::max_length() const {
  return launch::run::max_length(config(), session_.spec());
}

engine::data::DataOptions AlgorithmRun::data_options() const {
  return value_or_throw(data_settings(config(), session_.spec()));
}

engine::data::LoaderOptions AlgorithmRun::loader_options(std::int64_t batches_of) const {
  return loader_settings(config(), batches_of);
}

algorithms::WeightStream::Options AlgorithmRun::stream_options() const {
  return {.config = config().weights,
          .values = static_cast<std::size_t>(trained_values(config(), session_.spec())),
          .bf16 = config().train.dtype == engine::ops::Precision::bf16,
          .timeout = std::chrono::seconds(config().train.timeout)};
}

algorithms::Cluster AlgorithmRun::cluster() {
  const recipes::RolesNeeded roles = recipes::roles_of(config());
  const algorithms::PolicyRef policy = policy_.emplace(placement_->actor<recipes::Role::policy>());
  std::optional<algorithms::ReferenceRef> reference;
  std::vector<algorithms::RolloutRef> rollouts;
  std::optional<algorithms::RewardRef> verifier;
  if (roles.reference.needed) reference = placement_->actor<recipes::Role::reference>();
  if (recipes::base_is_reference(config())) reference = algorithms::ReferenceRef::base_of(policy);
  if (roles.rollout.needed) {
    const auto replicas = placement_->actors<recipes::Role::rollout>();
    rollouts.assign(replicas.begin(), replicas.end());
  }
  if (roles.verifier.needed) verifier = placement_->actor<recipes::Role::verifier>();
  const std::chrono::seconds timeout(config().train.timeout);
  algorithms::Cluster cluster{.policy = policy,
                              .reference = std::move(reference),
                              .rollouts = std::move(rollouts),
                              .verifier = std::move(verifier),
                              .journal = journal_,
                              .stop = stop_,
                              .chunks_per_rollout = placement_->chunks_per_rollout(),
                              .timeout = timeout};
  cluster.versions = &versions_;
  cluster.ledger = ledger_ ? &*ledger_ : nullptr;
  cluster.recovery = placement_->recovery();
  if (placement_->streams_weights()) cluster.stream = &stream_.emplace(stream_options());
  // The spans of a profiled device are those of one thread.
  cluster.overlaps_saves = !config().profile.enabled;
  if (roles.critic.needed) {
    critic_ = placement_->actor<recipes::Role::critic>();
    cluster.critic = critic_;
  }
  if (roles.reward.needed) cluster.reward = placement_->actor<recipes::Role::reward>();
  if (roles.reference_follows)
    cluster.synced_reference.emplace(cluster.reference->asker(), cluster.reference->address());
  return cluster;
}

algorithms::TrainingPlan AlgorithmRun::begin(std::int64_t batches, std::int64_t updates) {
  auto plan = value_or_throw(plan_settings(config(), batches, updates, session_.done()));
  plan.done_is_saved = session_.resumes_in_output();
  restore(session_.state(), updates, plan);
  if (session_.resumes_in_output()) {
    const std::string record = cat(session_.resume_from(), "/", engine::checkpoint::journal_file);
    if (const auto journal = read_json(record)) journal_.expect(*journal);
  }
  if (plan.done < plan.steps) journal_.measure(measured_run(config(), session_.spec()));
  const double warmup = config().train.warmup_of(plan.steps);
  if (config().train.steps == 0 && warmup > 0 && !config().train.warms_up_in(plan.steps))
    log_warning(cat("train.warmup_steps is ", warmup, ": the run of ", plan.steps,
                    " steps ends before the warmup does"));
  journal_.begin(plan.steps, plan.done);
  if (ledger_ && plan.done < plan.steps)
    ledger_->started(plan.done, anchor_, ledger_header(config()));
  return plan;
}

// An algorithm that ends with an error does not wait for the checkpoint of an earlier step.
void AlgorithmRun::finish_save(const Error& why) {
  if (!policy_ || why.code == Errc::timeout || why.code == Errc::cancelled || stop_.urgent())
    return;
  try {
    actors::run(
        placement_->node(),
        algorithms::finish_saves(critic_, *policy_, std::chrono::seconds(config().train.timeout)),
        &stop_);
  } catch (const Failure& failure) {
    if (failure.error().what != why.what) log_warning(failure.error().what);
  }
}

int AlgorithmRun::end_after_failed_rewards() const {
  log_error(journal_.failed_rewards());
  return exit_process_died;
}

int AlgorithmRun::run(actors::Task<void> algorithm, const algorithms::TrainingPlan& plan) {
  if (plan.done >= plan.steps) {
    log_info(cat(config().output, ": already complete (", plan.steps,
                 " steps); increase train.steps to continue"));
    journal_.end(journal::RunEnd::complete);
    return 0;
  }
  if (plan.selection.stops()) {
    log_info(cat(config().output, ": already complete (early stopping at step ", plan.done, ": ",
                 plan.selection.reason(), "); increase train.early_stopping.patience to continue"));
    journal_.end(journal::RunEnd::complete);
    return 0;
  }
  reading_->end();  // from here on a signal ends the run after a step
  reading_.reset();
  try {
    actors::run(placement_->node(), std::move(algorithm), &stop_);
  } catch (const Failure& failure) {
    finish_save(failure.error());
    if (failure.error().code == Errc::cancelled) journal_.end(journal::RunEnd::interrupted);
    if (failure.error().what == journal_.failed_rewards()) return end_after_failed_rewards();
    if (failure.error().code == Errc::timeout) throw Failure(with_hangs(failure.error()));
    if (failure.error().code != Errc::bad_input) throw;
    throw Failure({Errc::bad_input, cat(failure.error().what, last_checkpoint(config().output))});
  }
  if (on_complete_) on_complete_();
  journal_.end(!journal_.failed_rewards().empty() ? journal::RunEnd::failed
               : stop_.requested()                ? journal::RunEnd::interrupted
                                                  : journal::RunEnd::complete);
  journal_.plot();
  // One request per rollout: the rollouts share the processors of the policy.
  const bool take_turns = placement_->chunks_per_rollout() == 1;
  if (const auto found = overlap_summary(journal_.idle(), config().async.eta, take_turns);
      !found.empty())
    log_info(found);
  if (!journal_.failed_rewards().empty()) return end_after_failed_rewards();
  if (!stop_.requested()) return 0;
  log_info(cat("interrupted by ", interrupt_name(), "; run the same command again to resume"));
  return exit_interrupted;
}

}  // namespace troupe::launch::run
