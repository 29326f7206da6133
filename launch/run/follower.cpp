#include "launch/run/follower.h"

#include <filesystem>

#include "engine/base/text.h"
#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "launch/run/settings.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;
namespace roles = actors::roles;

namespace {

using Model = std::unique_ptr<engine::models::Decoder>;

std::string folder_of(const std::string& output) {
  return output + "/reference";
}

// The reference's checkpoint of the step of the policy's, which stands beside the folder
// `reference`.
std::string saved_beside(const std::string& from) {
  const std::filesystem::path policy(from);
  const std::string path =
      cat(folder_of(policy.parent_path().string()), "/", policy.filename().string());
  if (auto whole = checkpoint::verify_checkpoint(path); !whole)
    throw Failure(
        {whole.error().code, cat("the run goes on from ", from,
                                 ", whose reference, which follows the policy, must be in ", path,
                                 ": ", whole.error().what,
                                 "; give resume a checkpoint that has both, or begin anew in "
                                 "another output directory")});
  return path;
}

Model load(const RoleParts& parts, const std::string& source) {
  auto* tp = parts.mesh ? &parts.mesh->tp() : nullptr;
  if (parts.from.empty())
    return value_or_throw(checkpoint::load_decoder(parts.device, source, false, tp));
  const std::string path = saved_beside(parts.from);
  auto spec = value_or_throw(checkpoint::read_folder_spec(path));
  const bool tied = spec.tied;
  auto model = std::make_unique<engine::models::Decoder>(parts.device, std::move(spec), false, tp);
  value_or_throw(checkpoint::load_checkpoint(path, model->parameters(), tied, nullptr, nullptr));
  return model;
}

// One more is kept than the policy keeps: the reference is saved first, and may be alone with the
// newest step.
roles::ScorerSaver saver(const RoleParts& parts, const std::string& source) {
  std::shared_ptr<const checkpoint::DirectoryLock> output;
  if (!parts.mesh || parts.mesh->leads()) {
    const std::string folder = folder_of(parts.config.output);
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) throw Failure({Errc::io, cat(folder, ": cannot create: ", failed.message())});
    output = std::make_shared<const checkpoint::DirectoryLock>(
        checkpoint::DirectoryLock::held_by_launch(folder));
  }
  const int keep = static_cast<int>(parts.config.train.keep_last);
  return
      [output, source, keep, mesh = parts.mesh](std::int64_t step, engine::models::Decoder& model) {
        const checkpoint::Snapshot snapshot{
            step, model.parameters(), {.source = source, .tied = model.spec().tied}, {},
            {},   Json::Object{}};
        const checkpoint::WriteOptions options{.keep_last = keep == 0 ? 0 : keep + 1};
        if (mesh) return checkpoint::write_checkpoint(*mesh, output.get(), snapshot, options);
        return checkpoint::write_checkpoint(*output, snapshot, options);
      };
}

}  // namespace

roles::Scorer make_follower(const RoleParts& parts, const std::string& source) {
  return roles::Scorer(load(parts, source), scoring_settings(parts.config), parts.mesh,
                       saver(parts, source));
}

}  // namespace troupe::launch
