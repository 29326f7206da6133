// RunProfile: the profiling of a run, in one of its processes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/ops/device.h"
#include "engine/parallel/grid.h"
#include "launch/config/run_config.h"
#include "launch/profile/recorder.h"
#include "launch/profile/report.h"
#include "launch/profile/step_board.h"

namespace troupe::launch {

/// One rank. Its devices are used by one thread at a time.
class Profiler {
 public:
  /// `files`: the beginning of the path of every file that is written.
  Profiler(const RunConfig& config, const StepBoard& board, ReportOf of, std::string files);
  /// Writes what is not written yet.
  ~Profiler();

  std::unique_ptr<engine::ops::Device> watch(std::unique_ptr<engine::ops::Device> device);
  std::unique_ptr<engine::parallel::Communicator> watch(
      std::unique_ptr<engine::parallel::Communicator> communicator);
  /// Of a rank that ends; the text of its table, or "" where nothing was recorded.
  std::string finish();

 private:
  engine::ops::Ceiling measure();
  std::int64_t memory() const;
  void write(const Recorder& recorder);

  const ReportOf of_;
  const std::string files_;
  const bool bf16_;
  bool wants_counts_;
  std::unique_ptr<Counters> counters_;
  std::vector<std::weak_ptr<engine::ops::Device>> devices_;  ///< the ceiling is that of the last
  std::string table_;
  std::optional<Recorder> recorder_;
};

/// The device of a rank that is profiled (`by` is there), or as it was.
std::unique_ptr<engine::ops::Device> watched(Profiler* by,
                                             std::unique_ptr<engine::ops::Device> device);

class RunProfile {
 public:
  /// `leads`: this process runs the algorithm, and makes the board before the others look for it.
  /// `node`: what this process is called where there are several groups, or "". Outlives every
  /// device that is watched. Throws Failure (Errc::io). Does nothing where profile.enabled is
  /// false.
  RunProfile(const RunConfig& config, std::string node, bool leads);
  /// Writes what is not written yet, and the table of the first profiled rank to stderr.
  ~RunProfile();

  /// Leader: step `step` begins.
  void at_step(std::int64_t step);
  /// nullptr: it is not profiled. From any thread; the same for the same rank.
  Profiler* rank(int rank);
  /// Its communicators watched, where communication is recorded. Collective: every rank calls it,
  /// profiled or not.
  engine::parallel::Mesh watched(engine::parallel::Mesh given);

 private:
  bool chosen(int rank) const;

  const RunConfig config_;
  const std::string node_;
  std::optional<StepBoard> board_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Profiler>> ranks_;
};

}  // namespace troupe::launch
