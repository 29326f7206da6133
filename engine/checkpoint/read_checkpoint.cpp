#include "engine/checkpoint/read_checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_parameters.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/training_tensors.h"

namespace troupe::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t state_bytes = 256u << 20;

std::string name_of(std::int64_t step) {
  return cat("checkpoint-", step);
}

// Checks that the checkpoint is complete and has the step of its name (a folder may have been
// renamed). Returns the warnings of `rest`.
Result<std::vector<std::string>> usable(const std::string& path, std::int64_t step,
                                        const VerifyRest& rest) {
  const auto manifest = verify_checkpoint(path);
  RETURN_IF_ERROR(manifest);
  const auto state = read_training_state(path);
  RETURN_IF_ERROR(state);
  if (manifest->step != step || state->step != step)
    return fail(Errc::corrupt, cat(path, ": expected step ", step, ", found ", manifest->step,
                                   " in its manifest and ", state->step, " in its state"));
  return rest ? rest(path, *state) : std::vector<std::string>();
}

// Steps to try, in order: the checkpoint that `latest` names, then the others from the highest step
// down.
Result<std::vector<std::int64_t>> candidates(const std::string& output) {
  std::vector<std::int64_t> steps;
  std::error_code failed;
  for (fs::directory_iterator at(output, failed), end; !failed && at != end; at.increment(failed))
    if (const auto step = step_of_name(at->path().filename().string())) steps.push_back(*step);
  if (failed == std::errc::no_such_file_or_directory) return steps;
  if (failed) return fail(os_error(failed.value(), cat(output, ": cannot list")));
  std::sort(steps.rbegin(), steps.rend());
  const auto target = fs::read_symlink(cat(output, "/latest"), failed);
  if (failed) return steps;  // no link: a run was killed after its first checkpoint
  const auto linked = step_of_name(target.string());
  if (!linked) return steps;
  steps.erase(std::remove(steps.begin(), steps.end(), *linked), steps.end());
  steps.insert(steps.begin(), *linked);
  return steps;
}

}  // namespace

std::optional<std::int64_t> step_of_name(std::string_view name) {
  constexpr std::string_view prefix = "checkpoint-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.empty() || name.size() > 18 || (name.size() > 1 && name[0] == '0')) return std::nullopt;
  std::int64_t step = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    step = step * 10 + (c - '0');
  }
  return step;
}

Result<SavedState> read_training_state(const std::string& path) {
  const std::string where = cat(path, "/training/state.json");
  const auto json = read_json(where, {.depth = 64, .bytes = state_bytes});
  RETURN_IF_ERROR(json);
  const auto step = get_integer(*json, "step", where);
  if (!step) return fail(Errc::corrupt, step.error().what);
  const Json* state = json->find("state");
  if (!state) return fail(Errc::corrupt, cat(where, ": the key \"state\" is missing"));
  const Json* only_model = json->find("only_model");
  return SavedState{*step, *state, only_model && only_model->is_bool() && only_model->boolean(),
                    where};
}

Result<> check_resumable(const SavedState& state, const std::string& path) {
  if (!state.only_model) return {};
  return fail(Errc::usage,
              cat(path,
                  ": was saved without optimizer state (train.save_only_model), so a run cannot "
                  "resume from it: set resume to a checkpoint with optimizer state, or start a "
                  "new run from its weights: set model to this directory and output to "
                  "another"));
}

Result<std::optional<FoundCheckpoint>> find_latest(const std::string& output,
                                                   const VerifyRest& rest) {
  const auto steps = candidates(output);
  RETURN_IF_ERROR(steps);
  if (steps->empty()) return std::nullopt;
  std::vector<std::string> damage;
  for (const auto step : *steps) {
    FoundCheckpoint found{cat(output, "/", name_of(step)), step, {}};
    const auto whole = usable(found.path, step, rest);
    if (whole) {
      for (const auto& what : damage)
        found.warnings.push_back(
            cat("a checkpoint is damaged: ", what, "; resuming from ", found.path, " instead"));
      found.warnings.insert(found.warnings.end(), whole->begin(), whole->end());
      return found;
    }
    damage.push_back(whole.error().what);
  }
  return fail(Errc::corrupt,
              cat(output, ": no checkpoint can be used: ", join(damage, "; "),
                  ". Restore one from a backup, or choose another output directory to start over"));
}

Result<SavedState> load_checkpoint(const std::string& path, nn::Parameters& into, bool tied,
                                   Tensor* exp_avg, Tensor* exp_avg_sq,
                                   const nn::ArenaShards* shards, const nn::Parameters* whole) {
  check((exp_avg == nullptr) == (exp_avg_sq == nullptr),
        "load_checkpoint: one moment without the other");
  auto state = read_training_state(path);
  if (!state) return state;
  RETURN_IF_ERROR(check_resumable(*state, path));
  RETURN_IF_ERROR(load_parameters(path, into, {.tied = tied, .whole = whole}));
  auto tensors =
      load_training_tensors(cat(path, "/", optimizer_file), into, exp_avg, exp_avg_sq, shards);
  const bool unneeded = !tensors && tensors.error().code == Errc::not_found && !exp_avg;
  if (!tensors && !unneeded) return fail(tensors);
  return state;
}

}  // namespace troupe::engine::checkpoint
