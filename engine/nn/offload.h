// Offload: saved activations in files on a disk from the forward pass of a layer until shortly
// before its backward pass.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/nn/saved.h"
#include "engine/ops/host_values.h"

namespace troupe::engine::nn {

/// A directory for files of activations, and the thread that writes and reads them. A file is
/// unlinked right after its creation: however the process ends, nothing is left.
class Offload {
 public:
  /// Longest wait for one layer's activations.
  static constexpr std::chrono::seconds deadline{600};

  /// Whether files can be created in the directory, or in the one in which it would be created:
  /// Errc::io, not_found.
  static Result<> check_directory(const std::string& directory);
  /// Failure where they cannot.
  explicit Offload(std::string directory);
  ~Offload();
  Offload(const Offload&) = delete;

  const std::string& directory() const { return directory_; }
  /// Runs work on the thread, in the order of the calls. An error is a value: the thread keeps no
  /// part of it.
  std::future<Result<>> run(std::function<Result<>()> work);

 private:
  void serve();

  std::string directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<Result<>()>> tasks_;  ///< guarded by mutex_, as stops_ is
  bool stops_ = false;
  std::thread thread_;
};

/// The offloaded activations of one pass, which are read in the reverse order of writing. At most
/// two layers' activations are in memory: one that is used, and one that is written or read.
class OffloadedPass {
 public:
  OffloadedPass(Offload& to, ops::Device& device);
  /// Waits for work that was started: the thread uses the memory of tensors.
  ~OffloadedPass();
  OffloadedPass(const OffloadedPass&) = delete;

  /// Starts to write what was pushed to `saved` since `mark`, and releases what the call before
  /// wrote. Failure: Errc::io (no space), Errc::timeout.
  void unload(Saved& saved, std::size_t mark);
  /// Puts back what the last unload() took that was not put back yet, and starts to read what the
  /// one before took.
  void load(Saved& saved);

 private:
  /// A tensor, wherever it was pushed.
  struct Part {
    std::vector<std::size_t> places;
    Shape shape;
    std::int64_t offset;                      ///< in the file
    Tensor tensor;                            ///< absent while only the file has the values
    std::unique_ptr<ops::HostValues> values;  ///< while they are written or read
  };
  struct Segment {
    std::vector<Part> parts;
    std::int64_t begin, end;     ///< in the file
    std::future<Result<>> work;  ///< writing or reading
    bool in_memory = true;
  };
  class File;

  std::vector<Part> take(Saved& saved, std::size_t mark, std::int64_t& end) const;
  void start_reading(Segment& segment);
  void finish(Segment& segment, const char* what) const;

  Offload& to_;
  ops::Device& device_;
  std::unique_ptr<File> file_;
  std::vector<std::unique_ptr<Segment>> segments_;
};

}  // namespace troupe::engine::nn
