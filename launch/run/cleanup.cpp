#include "launch/run/cleanup.h"

#include <filesystem>
#include <vector>

#include "actors/sandbox/temp_folder.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/checkpoint/leftovers.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "launch/recipes/selection.h"
#include "launch/run/trained_model.h"

namespace troupe::launch::run {
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
std::vector<std::int64_t> kept_steps(const config::RunConfig& config, const Json& state) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  const auto best = fs::read_symlink(config.output + "/best", ignored);
  if (const auto step = checkpoint::step_of_name(best.string())) steps.push_back(*step);
  auto selection = value_or_throw(recipes::model_selection(config));
  if (const Json* saved = state.find("selection")) value_or_throw(selection.restore(*saved));
  steps.push_back(selection.best_step());
  if (const Json* start = state.find("round_start"); start && start->is_integer())
    steps.push_back(start->integer());
  return steps;
}

}  // namespace

void remove_temporaries(const config::RunConfig& config) {
  warn_if_failed(checkpoint::remove_temporaries(config.output));
  for (const std::string_view folder :
       {std::string_view("logs"), std::string_view("profile"), critic_folder, reference_folder,
        checkpoint::versions_folder})
    if (const std::string path = cat(config.output, "/", folder); is_folder(path))
      warn_if_failed(checkpoint::remove_temporaries(path));
  warn_if_failed(checkpoint::remove_stale_versions(config.output));
}

void remove_reward_folders() {
  actors::sandbox::remove_temp_folders(checkpoint::may_be_writing);
}

void prune_checkpoints(const config::RunConfig& config, std::int64_t done, const Json& state) {
  const int keep_last = static_cast<int>(config.train.keep_last);
  if (keep_last == 0) return;
  const auto steps = kept_steps(config, state);
  const auto prune = [&](std::string_view folder, int last) {
    const std::string path = folder.empty() ? config.output : cat(config.output, "/", folder);
    if (is_folder(path) || folder.empty())
      warn_if_failed(checkpoint::prune_checkpoints(path, {done, last, steps}));
  };
  prune("", keep_last);
  prune(critic_folder, keep_last);
  prune(reference_folder, keep_last + 1);
  warn_if_failed(checkpoint::remove_stale_versions(config.output));
}

}  // namespace troupe::launch::run
