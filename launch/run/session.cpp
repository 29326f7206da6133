#include "launch/run/session.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "actors/sandbox/temp_folder.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/leftovers.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/config/run_config.h"
#include "launch/recipes/experts.h"
#include "launch/recipes/resolve.h"
#include "launch/recipes/sampling.h"
#include "launch/recipes/selection.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/resumable.h"
#include "launch/run/run_record.h"
#include "launch/run/trained_model.h"
#include "launch/run/training_state.h"

namespace troupe::launch::run {
namespace checkpoint = engine::checkpoint;

namespace {

namespace checkpoint = engine::checkpoint;
namespace fs = std::filesystem;

// A folder of the output, not a link to one elsewhere.
bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

void warn_if_failed(const Result<>& result) {
  if (!result) log_warning(result.error().what);
}

// Steps whose checkpoints stay whatever their age: the best one, by the state of the checkpoint and
// by the link, which a killed run may have moved already; and the start of a rollout step.
std::vector<std::int64_t> kept_steps(const config::RunConfig& config, const TrainingState& state) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  const auto best = fs::read_symlink(config.output + "/best", ignored);
  if (const auto step = checkpoint::step_of_name(best.string())) steps.push_back(*step);
  auto selection = value_or_throw(recipes::model_selection(config));
  if (state.selection) value_or_throw(selection.restore(*state.selection));
  steps.push_back(selection.best_step());
  if (state.round_start >= 0) steps.push_back(state.round_start);
  return steps;
}

/// Removes temporary files of dead processes from config.output, whose lock is held, and its
/// folders, and files of checkpoints that are gone.
void remove_temporaries(const config::RunConfig& config) {
  warn_if_failed(checkpoint::remove_temporaries(config.output));
  for (const std::string_view folder :
       {std::string_view("logs"), std::string_view("profile"), critic_folder, reference_folder,
        checkpoint::versions_folder})
    if (const std::string path = cat(config.output, "/", folder); is_folder(path))
      warn_if_failed(checkpoint::remove_temporaries(path));
  warn_if_failed(checkpoint::remove_stale_versions(config.output));
}

/// Removes the folders of reward programs that killed processes have left in the directory for
/// temporary files (TMPDIR, /tmp).
void remove_reward_folders() {
  actors::sandbox::remove_temp_folders(checkpoint::may_be_writing);
}

/// Removes checkpoints older than that with `state`, from which the run resumes, beyond
/// train.keep_last: a run that was killed while it removed them may be complete. Errors of these
/// functions are logged as warnings.
void prune_checkpoints(const config::RunConfig& config, const TrainingState& state) {
  const int keep_last = config.train.keep_last;
  if (keep_last == 0) return;
  const auto steps = kept_steps(config, state);
  const auto prune = [&](std::string_view folder, int last) {
    const std::string path = folder.empty() ? config.output : cat(config.output, "/", folder);
    if (is_folder(path) || folder.empty())
      warn_if_failed(checkpoint::prune_checkpoints(path, {state.step, last, steps}));
  };
  prune("", keep_last);
  prune(critic_folder, keep_last);
  prune(reference_folder, keep_last + 1);
  warn_if_failed(checkpoint::remove_stale_versions(config.output));
}

// A folder called `latest`, made by a copy that followed the link, could not be replaced at the
// first save.
void check_latest(const std::string& output) {
  const std::string latest = output + "/latest";
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(latest, ignored)) ||
      std::filesystem::is_symlink(latest, ignored))
    return;
  const auto state = checkpoint::read_training_state(latest);
  const std::string name = state ? cat("checkpoint-", state->step) : "checkpoint-STEP";
  throw Failure(
      {Errc::usage,
       cat(latest,
           ": expected a link to the newest checkpoint, found a folder or file; a copy that "
           "follows links makes one. Remove it if ",
           output, "/", name, " exists, or rename it to ", name,
           "; the next save makes the link again")});
}

// The checkpoint that the key resume selects, or "".
std::string find_resume_checkpoint(const config::RunConfig& config) {
  if (!config::resume_is_automatic(config)) {
    for (const auto& warning : value_or_throw(verify_resumable(config, config.resume)))
      log_warning(warning);
    return config.resume;
  }
  const auto found = value_or_throw(find_resumable(config));
  if (!found) return "";
  for (const auto& warning : found->warnings) log_warning(warning);
  if (config.resume == config::resume_never)
    throw Failure({Errc::usage,
                   cat(config.output, " already contains a run (", found->path,
                       "), and resume is \"never\": choose another output, remove it, or resume")});
  return found->path;
}

// Throws Failure if the checkpoint is of another algorithm.
void check_algorithm(const std::string& checkpoint, const TrainingState& state,
                     const config::RunConfig& config) {
  if (state.is_of(config.algorithm)) return;
  throw Failure({Errc::usage,
                 cat(checkpoint, " was written by algorithm ", state.algorithm.name.dump(),
                     ", but this run uses ", quote(config.algorithm),
                     ": choose another output directory; to start a new run from the checkpoint: ",
                     new_run_from(checkpoint, config))});
}

}  // namespace

Session::Session(const config::RunConfig& config, const std::string& log)
    : config_(config),
      lock_(value_or_throw(checkpoint::DirectoryLock::acquire(config.output))),
      folder_(value_or_throw(OutputFolder::open(config.output, config.output_mode))) {
  value_or_throw(set_log_file(value_or_throw(folder_.folder("logs")), log));
  wait_for_space(config_);
  log_debug(cat("process ", ::getpid(), " has locked ", config.output));
  if (const std::string losses = recipes::expert_losses_text(config_); !losses.empty())
    log_info(losses);
  remove_temporaries(config_);
  remove_reward_folders();
  check_latest(config_.output);
  resume_from_ = find_resume_checkpoint(config_);
  std::vector<Change> changes;
  if (!resume_from_.empty()) {
    read_state();
    keep_masks_of_earlier_version();
  }
  identity_ = identify(config_);
  if (!resume_from_.empty())
    changes = check_identity(identity_, resume_from_, state_->identity, config_);
  if (resumes_in_output()) prune_checkpoints(config_, *state_);
  if (!resume_from_.empty()) return_to_round_start();
  if (!resume_from_.empty()) log_info(cat("resuming from ", resume_from_));
  value_or_throw(folder_.replace("config.yaml", recipes::to_yaml(config_)));
  record_start(config_, identity_, resume_from_, done(), changes);
  const bool complete = config_.train.steps > 0 && done() >= config_.train.steps;
  if (!complete) check_checkpoint_space(config_, spec());
}

void Session::read_state() {
  const auto found = value_or_throw(checkpoint::read_training_state(resume_from_));
  value_or_throw(checkpoint::check_resumable(found, resume_from_));
  state_ = value_or_throw(TrainingState::from(found));
  check_algorithm(resume_from_, *state_, config_);
}

// A run keeps the loss with which it began.
void Session::keep_masks_of_earlier_version() {
  constexpr std::string_view key = "rollout.replay_sampling_mask";
  if (config_.rollout.replay_sampling_mask != config::ReplayMask::automatic) return;
  const bool known = state_->identity &&
                     std::ranges::any_of(state_->identity->settings,
                                         [&](const auto& setting) { return setting.first == key; });
  if (known) return;
  if (recipes::replays_sampling_mask(config_))
    log_warning(cat(key, ": off, because an earlier version began this run; ", key,
                    " = on changes the loss from here on"));
  config_.rollout.replay_sampling_mask = config::ReplayMask::off;
}

// The samples of a rollout step are in no checkpoint. A run that ended within one and is extended
// therefore repeats it from its start.
void Session::return_to_round_start() {
  const std::int64_t start = state_->round_start;
  const bool extended = config_.train.steps == 0 || config_.train.steps > done();
  if (start < 0 || !extended) return;
  const std::string ended = cat(resume_from_, " lies within a rollout step, which ");
  if (start == 0) {
    log_info(cat(ended, "is repeated: the run starts over"));
    resume_from_.clear();
    state_.reset();
    return;
  }
  const auto parent = std::filesystem::path(resume_from_).parent_path();
  const std::string path = (parent / cat("checkpoint-", start)).string();
  if (const auto complete = verify_resumable(config_, path); !complete) {
    log_warning(cat(ended, "cannot be completed: ", complete.error().what,
                    "; the steps that follow differ from those of a longer run"));
    return;
  }
  log_info(cat(ended, "is repeated from its start to complete it"));
  resume_from_ = path;
  read_state();
}

bool Session::resumes_in_output() const {
  std::error_code ignored;
  return !resume_from_.empty() &&
         std::filesystem::equivalent(std::filesystem::path(resume_from_).parent_path(),
                                     config_.output, ignored);
}

engine::models::DecoderSpec Session::spec() const {
  return spec_of_run(config_, resume_from_);
}

}  // namespace troupe::launch::run
