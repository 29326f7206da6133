#include "launch/run/resumable.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/run/recorded_samples.h"
#include "launch/run/settings.h"
#include "launch/run/trained_model.h"

namespace troupe::launch::run {
namespace {

namespace checkpoint = engine::checkpoint;
using Warnings = std::vector<std::string>;

std::string without_checksum(const std::string& path) {
  return cat(path,
             ": written by version 0.1.0, without a checksum; its values are possible ones, but "
             "damage that left them so cannot be noticed. The next checkpoint has checksums");
}

void verify_versions(const config::RunConfig& config, const std::string& path,
                     const TrainingState& state, Warnings& warnings) {
  if (config.async.mode != algorithms::AsyncMode::pinned) return;
  for (const std::uint64_t version : state.versions) {
    const KeptFile file = kept_version(path, version);
    if (file.has_checksum && !file.path.empty()) continue;  // verified with the checkpoint
    read_kept_version(path, version, trained_spec(config, path));
    warnings.push_back(without_checksum(file.path));
  }
}

void verify_samples(const config::RunConfig& config, const std::string& path,
                    const TrainingState& state, Warnings& warnings) {
  const bool reads_them =
      config.async.free() || config.rollout.source == config::SampleSource::service;
  if (reads_them) finished_samples(config, path, state, warnings);
}

// What a run needs besides the files of the checkpoint's own manifest.
Result<Warnings> verify_rest(const config::RunConfig& config, const std::string& path,
                             const checkpoint::SavedState& saved) {
  Warnings warnings;
  const auto state = TrainingState::from(saved);  // an error is one of the run that resumes from it
  if (saved.only_model || !state || !state->is_of(config.algorithm)) return warnings;
  try {
    const recipes::RolesNeeded roles = recipes::roles_of(config);
    if (roles.critic.needed) companion_checkpoint(path, critic_folder);
    if (roles.reference_follows) companion_checkpoint(path, reference_folder);
    verify_versions(config, path, *state, warnings);
    verify_samples(config, path, *state, warnings);
  } catch (const Failure& failure) {
    return fail(failure.error().code, failure.error().what);
  }
  return warnings;
}

}  // namespace

engine::models::DecoderSpec spec_of_run(const config::RunConfig& config,
                                        const std::string& resume_from) {
  // An adapter's checkpoint does not contain its base model.
  const bool from_base = resume_from.empty() || recipes::adapts(config);
  return value_or_throw(recipes::spec_of(config, from_base ? config.model : resume_from));
}

engine::models::DecoderSpec trained_spec(const config::RunConfig& config,
                                         const std::string& checkpoint) {
  auto spec = spec_of_run(config, checkpoint);
  if (recipes::adapts(config))
    spec.lora = value_or_throw(recipes::wanted_adapter(config, spec)).lora;
  return spec;
}

KeptBounds kept_bounds(const config::RunConfig& config, const std::string& checkpoint,
                       const TrainingState& state) {
  const auto spec = spec_of_run(config, checkpoint);
  // train.max_length may have been another one.
  return {{.vocabulary = spec.vocabulary,
           .longest = std::max(spec.max_positions, max_length(config, spec)),
           .newest = state.batches.value_or(state.step)},
          static_cast<std::uint64_t>(std::max(state.step, state.trainer.updates))};
}

namespace {

std::vector<algorithms::FinishedSample> samples_of_file(const KeptFile& file,
                                                        const std::string& path,
                                                        const TrainingState& state,
                                                        const KeptBounds& bounds,
                                                        Warnings& warnings) {
  auto samples = read_kept_samples(path, bounds);
  // Version 0.1.0 counted them before it wrote them.
  if (file.has_checksum ? std::ssize(samples) != state.finished
                        : std::ssize(samples) < state.finished)
    throw Failure({Errc::corrupt, cat(file.path, ": expected ", state.finished,
                                      " finished samples, found ", samples.size())});
  if (!file.has_checksum) warnings.push_back(without_checksum(file.path));
  return samples;
}

}  // namespace

std::vector<algorithms::FinishedSample> finished_samples(const config::RunConfig& config,
                                                         const std::string& path,
                                                         const TrainingState& state,
                                                         Warnings& warnings) {
  const KeptBounds bounds = kept_bounds(config, path, state);
  if (const KeptFile file = kept_samples(path); !file.path.empty())
    return samples_of_file(file, path, state, bounds, warnings);
  if (state.finished == 0) return {};
  auto recorded = read_recorded_samples(path, bounds);
  if (!recorded) {
    warnings.push_back(cat(path, ": expected its ", state.finished,
                           " finished samples in the ledger of its run, which is not beside it: "
                           "they are made again"));
    return {};
  }
  // Those of a run that was resumed with a smaller async.eta are there, but not counted.
  if (std::ssize(recorded->samples) + recorded->removed < state.finished)
    throw Failure({Errc::corrupt, cat(path, ": expected ", state.finished,
                                      " finished samples in the ledger of its run, found ",
                                      recorded->samples.size())});
  if (recorded->removed > 0)
    warnings.push_back(cat(path, ": ", recorded->removed, " of its ", state.finished,
                           " finished samples are in segments of the ledger that were removed "
                           "after later checkpoints: they are made again"));
  return std::move(recorded->samples);
}

Result<std::optional<checkpoint::FoundCheckpoint>> find_resumable(const config::RunConfig& config) {
  return checkpoint::find_latest(config.output, [&](const std::string& path, const auto& saved) {
    return verify_rest(config, path, saved);
  });
}

Result<Warnings> verify_resumable(const config::RunConfig& config, const std::string& path) {
  const auto manifest = checkpoint::verify_checkpoint(path);
  RETURN_IF_ERROR(manifest);
  const auto saved = checkpoint::read_training_state(path);
  RETURN_IF_ERROR(saved);
  return verify_rest(config, path, *saved);
}

}  // namespace troupe::launch::run
