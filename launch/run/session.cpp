#include "launch/run/session.h"

#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/config/resolve.h"
#include "launch/recipes/lora.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;

engine::models::DecoderSpec spec_of_run(const RunConfig& config, const std::string& resume_from) {
  // An adapter's checkpoint does not contain its base model.
  const bool from_base = resume_from.empty() || adapts(config);
  return value_or_throw(checkpoint::read_folder_spec(from_base ? config.model : resume_from));
}

namespace {

// The checkpoint that the key resume selects, or "".
std::string find_resume_checkpoint(const RunConfig& config) {
  if (!resume_is_automatic(config)) {
    value_or_throw(checkpoint::verify_checkpoint(config.resume));
    return config.resume;
  }
  const auto found = value_or_throw(checkpoint::find_latest(config.output));
  if (!found) return "";
  for (const auto& warning : found->warnings) log_warning(warning);
  if (config.resume == resume_never)
    throw Failure({Errc::usage,
                   cat(config.output, " already contains a run (", found->path,
                       "), and resume is \"never\": choose another output, remove it, or resume")});
  return found->path;
}

}  // namespace

Session::Session(const RunConfig& config)
    : config_(config),
      lock_(value_or_throw(checkpoint::DirectoryLock::acquire(config.output))),
      resume_from_(find_resume_checkpoint(config)) {
  value_or_throw(write_file_durably(config.output + "/config.yaml", to_yaml(config)));
  if (resume_from_.empty()) return;
  auto found = value_or_throw(checkpoint::read_training_state(resume_from_));
  value_or_throw(checkpoint::check_resumable(found, resume_from_));
  done_ = found.step;
  state_ = std::move(found.state);
  const Json* algorithm = state_.find("algorithm");
  const Json* name = algorithm && algorithm->is_object() ? algorithm->find("name") : nullptr;
  if (!name || *name != Json(config_.algorithm))
    throw Failure(
        {Errc::usage, cat(resume_from_, " was written by algorithm ", name ? name->dump() : "null",
                          ", but this run uses ", quote(config_.algorithm),
                          ": choose another output directory")});
  log_info(cat("resuming from ", resume_from_));
}

engine::models::DecoderSpec Session::spec() const {
  return spec_of_run(config_, resume_from_);
}

}  // namespace troupe::launch
