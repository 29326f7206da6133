#include "engine/checkpoint/write_checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/files/space_wait.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
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
Result<> rename_over(const std::string& temporary, const std::string& path,
                     const std::string& aside) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) return system_error(path, "publish");
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS) return system_error(path, "replace");
  if (::rename(path.c_str(), aside.c_str()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)
    return system_error(path, "replace");
  return {};
}

// How far the values of the arenas are written.
class Progress {
 public:
  // Longest time without a further value.
  static constexpr std::chrono::seconds deadline{600};

  explicit Progress(std::string checkpoint) : checkpoint_(std::move(checkpoint)) {}

  /// Returns whether to go on.
  bool reach(std::int64_t end) {
    progress::advance();
    const std::lock_guard lock(mutex_);
    end_ = end;
    changed_.notify_all();
    return !given_up_;
  }
  std::int64_t wait_for(std::int64_t begin) {
    const progress::Wait watched;  // the writer's thread is watched itself
    std::unique_lock lock(mutex_);
    while (end_ <= begin) {
      const std::int64_t before = end_;
      if (!changed_.wait_for(lock, deadline, [&] { return end_ != before; }))
        throw Failure({Errc::timeout,
                       cat("the update waited for ", checkpoint_, ": no value after ", before,
                           " was written within ", deadline.count(), " s; the disk is too slow")});
    }
    return end_;
  }
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }

 private:
  std::string checkpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t end_ = 0;
  bool given_up_ = false;
};

// `mesh` nullptr: one rank.
TensorParts tensors_of(const Snapshot& snapshot, const parallel::Mesh* mesh) {
  check(static_cast<bool>(snapshot.exp_avg) == static_cast<bool>(snapshot.exp_avg_sq),
        "write_checkpoint: one moment without the other");
  std::vector<Tensor> arenas{snapshot.parameters.values()}, moments;  // order of CheckpointArena
  check(!snapshot.average || snapshot.exp_avg, "write_checkpoint: an average without moments");
  if (snapshot.exp_avg) moments = {snapshot.exp_avg, snapshot.exp_avg_sq};
  if (snapshot.average) moments.push_back(snapshot.average);
  const bool divided = mesh != nullptr && snapshot.shards != nullptr;
  if (!divided) arenas.insert(arenas.end(), moments.begin(), moments.end());
  if (mesh == nullptr) return {snapshot.parameters, std::move(arenas)};
  check(mesh->grid().pp == 1 || snapshot.whole != nullptr,
        "write_checkpoint: stages without a description of the model");
  return {{.parameters = snapshot.parameters,
           .arenas = std::move(arenas),
           .divided = divided ? std::move(moments) : std::vector<Tensor>(),
           .shards = snapshot.shards,
           .whole = snapshot.whole},
          *mesh};
}

template <class T>
bool is_ready(const std::future<T>& result) {
  return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

// The steps of all ranks of a group; `output` is nullptr on the ranks other than 0.
class Protocol final : public CheckpointWrite {
 public:
  Protocol(const parallel::Mesh* mesh, const DirectoryLock* output, Snapshot snapshot,
           WriteOptions options)
      : snapshot_(std::move(snapshot)),
        options_(std::move(options)),
        world_(mesh != nullptr && mesh->grid().ranks() > 1 ? &mesh->world() : nullptr),
        tensors_(tensors_of(snapshot_, mesh)) {
    if (output != nullptr) {
      output_ = output->directory();
      path_ = cat(output_, "/", name_of_step(snapshot_.step));
      temporary_ = temporary_checkpoint(output_, snapshot_.step);
    }
    const auto shared = tensors_.share(output ? fs::absolute(temporary_).string() : "",
                                       "the folder of the new checkpoint");
    if (output == nullptr) temporary_ = shared;
    tensors_.defer_values();
  }
  Protocol(const Protocol&) = delete;
  ~Protocol() override {
    progress_.give_up();
    const progress::Wait watched;
    for (std::future<Result<>>* each : {&values_, &rest_})
      if (each->valid()) each->wait();
    if (!ended_) remove_incomplete();
  }

  /// Creates the folder and the files with their headers, and starts the thread of the values.
  Result<> start() {
    const auto created = tensors_.agree(create_files(tensors_.is_root() ? begin() : Result<>()),
                                        "the files of a checkpoint");
    RETURN_IF_ERROR(created);
    values_ = std::async(std::launch::async, [this] {
      const progress::Operation watched(cat("writing ", path_));
      return write_values();
    });
    return {};
  }

  std::int64_t wait_for(std::int64_t begin) override { return progress_.wait_for(begin); }
  void wait_for_all() override {
    const std::int64_t count = snapshot_.parameters.count();
    if (count > 0) progress_.wait_for(count - 1);
    value_or_throw(tensors_.agree({}, cat("the values of ", name_of_step(snapshot_.step))));
  }

  std::optional<Result<std::string>> finish(bool wait) override {
    check(!ended_, "CheckpointWrite::finish: it had a result");
    if (!rest_began_) {
      if (!wait && !all_wrote()) return std::nullopt;
      if (const auto written = tensors_.complete(get(values_)); !written) {
        remove_incomplete();
        return Result<std::string>(fail(written));
      }
      rest_began_ = true;
      if (tensors_.is_root())
        rest_ = std::async(std::launch::async, [this] {
          const progress::Operation watched(cat("publishing ", path_));
          return publish();
        });
    }
    if (!wait && !root_published()) return std::nullopt;
    return result_of_root();
  }

 private:
  /// Waits for a thread of this checkpoint, which is watched itself.
  static Result<> get(std::future<Result<>>& result) {
    const progress::Wait watched;
    return result.get();
  }
  /// A message to the other ranks, which are at the same point.
  bool all_wrote() {
    const std::array<std::uint8_t, 1> mine{is_ready(values_)};
    if (world_ == nullptr) return mine[0] != 0;
    std::vector<std::uint8_t> all(static_cast<std::size_t>(world_->size()));
    world_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                       "whether a checkpoint's values are written");
    return std::ranges::all_of(all, [](std::uint8_t each) { return each != 0; });
  }
  bool root_published() {
    std::array<std::uint8_t, 1> done{tensors_.is_root() && is_ready(rest_)};
    if (world_ != nullptr)
      world_->broadcast(std::as_writable_bytes(std::span(done)), 0,
                        "whether a checkpoint is published");
    return done[0] != 0;
  }
  Result<std::string> result_of_root() {
    auto result = tensors_.is_root() ? get(rest_) : Result<>();
    ended_ = true;
    RETURN_IF_ERROR(tensors_.agree(std::move(result), "the result of write_checkpoint"));
    return tensors_.share(path_, "the path of a checkpoint");
  }
  void remove_incomplete() {
    ended_ = true;
    std::error_code ignored;
    if (tensors_.is_root()) fs::remove_all(temporary_, ignored);
  }

  Result<> write_values() {
    struct AllReached {  // also after an error: nobody waits for values that nobody reads
      Protocol& of;
      ~AllReached() { of.progress_.reach(of.snapshot_.parameters.count()); }
    } const at_the_end{*this};
    const auto root_step = [this](std::string_view name) {
      return tensors_.is_root() ? step(name, [] { return Result<>(); }) : Result<>();
    };
    RETURN_IF_ERROR(root_step("write values"));
    return tensors_.write_values([this](std::int64_t end) { return progress_.reach(end); },
                                 [&] {
                                   progress_.reach(snapshot_.parameters.count());
                                   return root_step("sync values");
                                 });
  }

  /// Of rank 0, when all values are durable.
  Result<> publish() {
    auto written = write_rest();
    const std::string aside = cat(output_, "/", temporary_prefix, snapshot_.step, "-0");
    if (written) written = step("publish", [&] { return rename_over(temporary_, path_, aside); });
    if (written) written = step("sync output", [&] { return sync_directory(output_); });
    std::error_code ignored;
    // The incomplete folder after an error, or the old checkpoint after an exchange.
    fs::remove_all(temporary_, ignored);
    fs::remove_all(aside, ignored);
    if (written) written = swing_best();
    if (written) written = swing("latest", temporary_link_prefix, snapshot_.step);
    if (written) written = prune();
    return written;
  }

  template <class Act>
  Result<> step(std::string_view name, Act act) {
    if (options_.before) RETURN_IF_ERROR(options_.before(name));
    return act();
  }
  /// A step of all ranks, unless one of them has an error so far. `act` returns the same result on
  /// every rank.
  template <class Act>
  Result<> together(std::string_view name, Result<> so_far, Act act) {
    if (so_far && options_.before && tensors_.is_root()) so_far = options_.before(name);
    RETURN_IF_ERROR(tensors_.agree(std::move(so_far), name));
    return act();
  }
  static Result<> make_folder(const std::string& path) {
    SpaceWait space(path);
    while (::mkdir(path.c_str(), 0777) != 0)
      if (!space.again(errno)) return system_error(path, "create");
    return {};
  }

  Result<> begin() {
    RETURN_IF_ERROR(sweep());
    SpaceWait space(output_);
    for (;;) {
      const auto fits = check_space(output_, tensor_bytes(), options_.free_bytes(output_));
      if (fits) break;
      if (!space.again(ENOSPC)) return fits;
    }
    return step("create folder", [&] { return make_folder(temporary_); });
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
    const bool whole = !snapshot_.only_model;
    const auto bits = bits_of(snapshot_.model.type) + (whole && snapshot_.exp_avg ? 64u : 0u) +
                      (whole && rounded() ? 32u : 0u) + (snapshot_.average ? 32u : 0u);
    return static_cast<std::uint64_t>(values) * bits / 8;
  }

  bool rounded() const { return snapshot_.model.type != StoredType::f32; }
  std::string training_folder() const { return cat(temporary_, "/training"); }

  // An error of the steps of rank 0 between two of all ranks reaches the others with the next one.
  Result<> create_files(Result<> done) {
    done = together("write model", std::move(done), [&] { return write_model(); });
    RETURN_IF_ERROR(done);
    if (snapshot_.average) RETURN_IF_ERROR(write_average());
    if (tensors_.is_root())
      done = step("create training folder", [&] { return make_folder(training_folder()); });
    if (done && tensors_.is_root() && !snapshot_.kept.empty())
      done = step("take files", [&] { return take_files(); });
    if (snapshot_.only_model || (!snapshot_.exp_avg && !rounded())) return done;
    return together("write optimizer", std::move(done), [&] {
      return save_training_tensors(cat(temporary_, "/", optimizer_file), tensors_,
                                   static_cast<bool>(snapshot_.exp_avg), rounded());
    });
  }

  Result<> take_files() {
    const std::string from = cat(output_, "/", snapshot_.kept);
    std::error_code failed;
    for (fs::directory_iterator at(from, failed), end; !failed && at != end; at.increment(failed)) {
      const std::string to = cat(training_folder(), "/", at->path().filename().string());
      if (::rename(at->path().c_str(), to.c_str()) != 0)
        return system_error(at->path().string(), "move into the checkpoint");
    }
    if (!failed) fs::remove(from, failed);
    if (failed) return fail(os_error(failed.value(), cat(from, ": cannot take its files")));
    return {};
  }

  Result<> write_model() {
    return snapshot_.write_model ? snapshot_.write_model(temporary_, tensors_)
                                 : save_parameters(temporary_, tensors_, snapshot_.model);
  }

  Result<> write_average() {
    const std::string folder = cat(temporary_, "/", average_folder);
    Result<> done;
    if (tensors_.is_root())
      done = step("create folder of the average", [&] { return make_folder(folder); });
    SaveOptions options = snapshot_.model;
    options.type = StoredType::f32;
    options.arena = average_arena;
    return together("write average", std::move(done),
                    [&] { return save_parameters(folder, tensors_, options); });
  }

  Result<> write_rest() {
    Json state(Json::Object{{"step", snapshot_.step}, {"state", snapshot_.state}});
    if (snapshot_.only_model) state.set("only_model", true);
    RETURN_IF_ERROR(step("write state", [&] {
      return write_new_file(cat(training_folder(), "/state.json"), state.dump(1) + "\n");
    }));
    if (!snapshot_.journal.is_null())
      RETURN_IF_ERROR(step("write journal", [&] {
        return write_new_file(cat(temporary_, "/", journal_file), snapshot_.journal.dump(1) + "\n");
      }));
    RETURN_IF_ERROR(step("write manifest", [&] { return write_manifest(); }));
    RETURN_IF_ERROR(
        step("sync training folder", [&] { return sync_directory(training_folder()); }));
    return step("sync folder", [&] { return sync_directory(temporary_); });
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
    RETURN_IF_ERROR(
        prune_checkpoints(output_, {snapshot_.step, options_.keep_last, kept}, options_.before));
    // A checkpoint that replaced one of version 0.1.0 has these files itself.
    return remove_stale_versions(output_, snapshot_.step);
  }

  const Snapshot snapshot_;
  const WriteOptions options_;
  parallel::Communicator* world_;  ///< nullptr: one rank
  TensorParts tensors_;
  std::string output_, path_;  ///< of rank 0
  std::string temporary_;
  Progress progress_{name_of_step(snapshot_.step)};
  bool rest_began_ = false, ended_ = false;
  std::future<Result<>> values_, rest_;  ///< rest_ of rank 0
};

Result<std::string> write_checkpoint(const parallel::Mesh* mesh, const DirectoryLock* output,
                                     const Snapshot& snapshot, const WriteOptions& options) {
  const auto started = start_checkpoint(mesh, output, snapshot, options);
  RETURN_IF_ERROR(started);
  return *(*started)->finish(true);
}

}  // namespace

Result<std::unique_ptr<CheckpointWrite>> start_checkpoint(const parallel::Mesh* mesh,
                                                          const DirectoryLock* output,
                                                          Snapshot snapshot, WriteOptions options) {
  check((mesh == nullptr || mesh->is_root()) == (output != nullptr),
        "write_checkpoint: only rank 0 holds the lock of the output");
  check(snapshot.step >= 0, "write_checkpoint: a negative step");
  check(options.keep_last == 0 || options.keep_last >= 2,
        "write_checkpoint: keep_last must be 0 (all) or at least 2");
  auto write = std::make_unique<Protocol>(mesh, output, std::move(snapshot), std::move(options));
  RETURN_IF_ERROR(write->start());
  return std::unique_ptr<CheckpointWrite>(std::move(write));
}

Result<std::string> write_checkpoint(const DirectoryLock& output, const Snapshot& snapshot,
                                     const WriteOptions& options) {
  return write_checkpoint(nullptr, &output, snapshot, options);
}

Result<std::string> write_checkpoint(const parallel::Mesh& mesh, const DirectoryLock* output,
                                     const Snapshot& snapshot, const WriteOptions& options) {
  return write_checkpoint(&mesh, output, snapshot, options);
}

}  // namespace troupe::engine::checkpoint
