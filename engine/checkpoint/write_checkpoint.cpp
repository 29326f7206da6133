#include "engine/checkpoint/write_checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "engine/base/check.h"
#include "engine/base/environment_error.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/leftovers.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/training_tensors.h"

namespace troupe::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

// Replaces a checkpoint of the same step by an atomic exchange where the file system supports it,
// otherwise by two renames (a kill between them leaves the earlier checkpoints).
Result<> publish(const std::string& temporary, const std::string& path, const std::string& aside) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) return system_error(path, "publish");
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS) return system_error(path, "replace");
  if (::rename(path.c_str(), aside.c_str()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    return system_error(path, "replace");
  return {};
}

class Protocol {
 public:
  Protocol(const DirectoryLock& output, const Snapshot& snapshot, nn::LogicalTensors& tensors,
           const WriteOptions& options)
      : output_(output.directory()), snapshot_(snapshot), tensors_(tensors), options_(options) {}

  Result<std::string> run() {
    RETURN_IF_ERROR(sweep());
    RETURN_IF_ERROR(check_space(output_, tensor_bytes(), options_.free_bytes(output_)));
    auto written = write();
    const std::string aside = cat(output_, "/", temporary_prefix, snapshot_.step, "-0");
    if (written) written = step("publish", [&] { return publish(temporary_, path_, aside); });
    if (written) written = step("sync output", [&] { return sync_directory(output_); });
    std::error_code ignored;
    // The incomplete folder after an error, or the old checkpoint after an exchange.
    fs::remove_all(temporary_, ignored);
    fs::remove_all(aside, ignored);
    if (written) written = swing_best();
    if (written) written = swing("latest", temporary_link_prefix, snapshot_.step);
    if (written) written = prune();
    RETURN_IF_ERROR(written);
    return path_;
  }

 private:
  template <class Act>
  Result<> step(std::string_view name, Act act) {
    if (options_.before) RETURN_IF_ERROR(options_.before(name));
    return act();
  }

  // The lock guarantees that no other run is active here: temporary names belong to dead runs.
  Result<> sweep() {
    return step("sweep", [&] { return remove_temporaries(output_); });
  }

  // Of the weights as they are stored, the moments, and the f32 weights beside rounded ones.
  std::uint64_t tensor_bytes() const {
    std::int64_t values = 0;
    for (const nn::Parameter& each : tensors_.parameters().all())
      values += each.logical_shape().count();
    const bool rounded = snapshot_.model.type != StoredType::f32;
    const bool whole = !snapshot_.only_model;
    const auto bits = bits_of(snapshot_.model.type) + (whole && snapshot_.exp_avg ? 64u : 0u) +
                      (whole && rounded ? 32u : 0u) + (snapshot_.average ? 32u : 0u);
    return static_cast<std::uint64_t>(values) * bits / 8;
  }

  Result<> write() {
    const auto make = [&](const std::string& path) -> Result<> {
      return ::mkdir(path.c_str(), 0777) == 0 ? Result<>() : system_error(path, "create");
    };
    const std::string training = cat(temporary_, "/training");
    auto done = step("create folder", [&] { return make(temporary_); });
    if (done) done = step("write model", [&] { return write_model(); });
    if (done && snapshot_.average) done = write_average(make);
    if (done) done = step("create training folder", [&] { return make(training); });
    const bool rounded = snapshot_.model.type != StoredType::f32;
    if (done && !snapshot_.only_model && (snapshot_.exp_avg || rounded))
      done = step("write optimizer", [&] {
        return save_training_tensors(cat(temporary_, "/", optimizer_file), tensors_,
                                     static_cast<bool>(snapshot_.exp_avg), rounded);
      });
    Json state(Json::Object{{"step", snapshot_.step}, {"state", snapshot_.state}});
    if (snapshot_.only_model) state.set("only_model", true);
    if (done)
      done = step("write state", [&] {
        return write_new_file(cat(training, "/state.json"), state.dump(1) + "\n");
      });
    if (done) done = step("write manifest", [&] { return write_manifest(); });
    if (done) done = step("sync training folder", [&] { return sync_directory(training); });
    if (done) done = step("sync folder", [&] { return sync_directory(temporary_); });
    return done;
  }

  Result<> write_model() {
    return snapshot_.write_model ? snapshot_.write_model(temporary_, tensors_)
                                 : save_parameters(temporary_, tensors_, snapshot_.model);
  }

  template <class MakeFolder>
  Result<> write_average(const MakeFolder& make) {
    const std::string folder = cat(temporary_, "/", average_folder);
    RETURN_IF_ERROR(step("create folder of the average", [&] { return make(folder); }));
    SaveOptions options = snapshot_.model;
    options.type = StoredType::f32;
    options.arena = average_arena;
    return step("write average", [&] { return save_parameters(folder, tensors_, options); });
  }

  Result<> write_manifest() {
    const auto manifest = measure_checkpoint(temporary_, snapshot_.step);
    RETURN_IF_ERROR(manifest);
    return write_new_file(cat(temporary_, "/", manifest_file), to_text(*manifest));
  }

  // Before `latest`: a run that is killed between the two resumes from an earlier checkpoint, whose
  // own best one has not been pruned yet.
  Result<> swing_best() {
    std::error_code failed;
    const std::string target = name_of_step(options_.best_step);
    if (options_.best_step == 0 || !fs::exists(cat(output_, "/", target), failed)) return {};
    if (fs::read_symlink(cat(output_, "/best"), failed).string() == target) return {};
    return swing("best", temporary_best_prefix, options_.best_step);
  }

  // Points the link OUTPUT/`name` at the checkpoint of a step.
  Result<> swing(std::string_view name, std::string_view prefix, std::int64_t to) {
    const std::string link = cat(output_, "/", prefix, ::getpid()), path = cat(output_, "/", name),
                      target = name_of_step(to);
    auto done = step("make link", [&]() -> Result<> {
      return ::symlink(target.c_str(), link.c_str()) == 0 ? Result<>()
                                                          : system_error(link, "create");
    });
    if (done)
      done = step(cat("swing ", name), [&]() -> Result<> {
        return ::rename(link.c_str(), path.c_str()) == 0 ? Result<>()
                                                         : system_error(path, "replace");
      });
    if (!done) ::unlink(link.c_str());
    return done ? step(cat("sync ", name), [&] { return sync_directory(output_); }) : done;
  }

  // The target of OUTPUT/best stays even if it is not the best one of this run's state: a run that
  // repeats a rollout step does not know the evaluation within it.
  Result<> prune() {
    std::error_code none;
    const auto best = step_of_name(fs::read_symlink(cat(output_, "/best"), none).string());
    const std::vector<std::int64_t> kept{options_.best_step, options_.round_start,
                                         best.value_or(0)};
    return prune_checkpoints(output_, {snapshot_.step, options_.keep_last, kept}, options_.before);
  }

  std::string output_;
  const Snapshot& snapshot_;
  nn::LogicalTensors& tensors_;
  const WriteOptions& options_;
  std::string path_ = cat(output_, "/", name_of_step(snapshot_.step));
  std::string temporary_ = temporary_checkpoint(output_, snapshot_.step);
};

// `mesh` nullptr: one rank.
nn::LogicalTensors tensors_of(const Snapshot& snapshot, const parallel::Mesh* mesh) {
  check(static_cast<bool>(snapshot.exp_avg) == static_cast<bool>(snapshot.exp_avg_sq),
        "write_checkpoint: one moment without the other");
  std::vector<Tensor> arenas{snapshot.parameters.values()}, moments;  // order of CheckpointArena
  check(!snapshot.average || snapshot.exp_avg, "write_checkpoint: an average without moments");
  if (snapshot.exp_avg) moments = {snapshot.exp_avg, snapshot.exp_avg_sq};
  if (snapshot.average) moments.push_back(snapshot.average);
  if (mesh != nullptr && snapshot.shards != nullptr)
    return {snapshot.parameters, std::move(arenas), std::move(moments), *snapshot.shards, *mesh};
  arenas.insert(arenas.end(), moments.begin(), moments.end());
  return {snapshot.parameters, std::move(arenas), mesh ? &mesh->tp() : nullptr};
}

// Of all pipeline stages, where the model has several.
nn::LogicalTensors tensors_of_group(const Snapshot& snapshot, const parallel::Mesh& mesh) {
  if (mesh.grid().pp == 1) return tensors_of(snapshot, &mesh);
  check(snapshot.whole != nullptr, "write_checkpoint: stages without a description of the model");
  return {*snapshot.whole, std::make_unique<nn::LogicalTensors>(tensors_of(snapshot, &mesh)), mesh};
}

Result<std::string> write_checkpoint(const DirectoryLock& output, const Snapshot& snapshot,
                                     nn::LogicalTensors& tensors, const WriteOptions& options) {
  check(snapshot.step >= 0, "write_checkpoint: a negative step");
  check(options.keep_last == 0 || options.keep_last >= 2,
        "write_checkpoint: keep_last must be 0 (all) or at least 2");
  return Protocol(output, snapshot, tensors, options).run();
}

// Broadcasts rank 0's result. Writing may take long, so the wait has no timeout.
Result<std::string> broadcast_result(parallel::Communicator& world, Result<std::string> result) {
  constexpr std::string_view what = "the result of write_checkpoint";
  constexpr std::int64_t written = -1;
  std::string text = result ? *result : result.error().what;
  std::array<std::int64_t, 2> header{
      result ? written : static_cast<std::int64_t>(result.error().code), std::ssize(text)};
  world.broadcast_idle(std::as_writable_bytes(std::span(header)), 0, what);
  text.resize(static_cast<std::size_t>(header[1]));
  world.broadcast(std::as_writable_bytes(std::span(text)), 0, what);
  if (header[0] == written) return text;
  return fail(static_cast<Errc>(header[0]), std::move(text));
}

}  // namespace

Result<std::string> write_checkpoint(const DirectoryLock& output, const Snapshot& snapshot,
                                     const WriteOptions& options) {
  auto tensors = tensors_of(snapshot, nullptr);
  return write_checkpoint(output, snapshot, tensors, options);
}

Result<std::string> write_checkpoint(const parallel::Mesh& mesh, const DirectoryLock* output,
                                     const Snapshot& snapshot, const WriteOptions& options) {
  check(mesh.is_root() == (output != nullptr),
        "write_checkpoint: only rank 0 holds the lock of the output");
  Result<std::string> result;
  // Without shards the other replicas have the same weights and moments; with stages they serve,
  // too, but send nothing.
  if (mesh.replicas().rank() == 0 || snapshot.shards != nullptr || mesh.grid().pp > 1) {
    auto tensors = tensors_of_group(snapshot, mesh);
    if (mesh.is_root()) {
      result = write_checkpoint(*output, snapshot, tensors, options);
      tensors.finish();
    } else {
      tensors.serve();
    }
  }
  return mesh.grid().ranks() == 1 ? result : broadcast_result(mesh.world(), std::move(result));
}

}  // namespace troupe::engine::checkpoint
