#include "launch/run/session.h"

#include <unistd.h>

#include <filesystem>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/recipes/resolve.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/cleanup.h"
#include "launch/run/resumable.h"
#include "launch/run/run_record.h"

namespace troupe::launch::run {
namespace checkpoint = engine::checkpoint;

namespace {

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
void check_algorithm(const std::string& checkpoint, const Json& state,
                     const config::RunConfig& config) {
  const Json* algorithm = state.find("algorithm");
  const Json* name = algorithm && algorithm->is_object() ? algorithm->find("name") : nullptr;
  if (name && *name == Json(config.algorithm)) return;
  throw Failure({Errc::usage,
                 cat(checkpoint, " was written by algorithm ", name ? name->dump() : "null",
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
  log_debug(cat("process ", ::getpid(), " has locked ", config.output));
  remove_temporaries(config_);
  remove_reward_folders();
  check_latest(config_.output);
  resume_from_ = find_resume_checkpoint(config_);
  std::vector<Change> changes;
  if (!resume_from_.empty()) read_state();
  const engine::checkpoint::Identity identity = identify(config_);
  if (!resume_from_.empty()) changes = check_identity(identity, resume_from_, state_, config_);
  if (resumes_in_output()) prune_checkpoints(config_, done_, state_);
  if (!resume_from_.empty()) return_to_round_start();
  if (!resume_from_.empty()) log_info(cat("resuming from ", resume_from_));
  value_or_throw(folder_.replace("config.yaml", recipes::to_yaml(config_)));
  record_start(config_, identity, resume_from_, done_, changes);
  const bool complete = config_.train.steps > 0 && done_ >= config_.train.steps;
  if (!complete) check_checkpoint_space(config_, spec());
}

void Session::read_state() {
  auto found = value_or_throw(checkpoint::read_training_state(resume_from_));
  value_or_throw(checkpoint::check_resumable(found, resume_from_));
  done_ = found.step;
  state_ = std::move(found.state);
  check_algorithm(resume_from_, state_, config_);
}

// The samples of a rollout step are in no checkpoint. A run that ended within one and is extended
// therefore repeats it from its start.
void Session::return_to_round_start() {
  const Json* start = state_.find("round_start");
  const bool extended = config_.train.steps == 0 || config_.train.steps > done_;
  if (!start || !start->is_integer() || !extended) return;
  const std::string ended = cat(resume_from_, " lies within a rollout step, which ");
  if (start->integer() == 0) {
    log_info(cat(ended, "is repeated: the run starts over"));
    resume_from_.clear();
    done_ = 0;
    state_ = Json();
    return;
  }
  const auto parent = std::filesystem::path(resume_from_).parent_path();
  const std::string path = (parent / cat("checkpoint-", start->integer())).string();
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
