// RunProfile: the profiling of a run in one of its processes.
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
#include "launch/profile/step_board.h"

namespace troupe::launch::profile {

/// The profiler of one rank. Its devices are used by one thread at a time.
class Profiler {
 public:
  /// `files`: prefix of the names of the output files in `folder`.
  Profiler(const config::RunConfig& config, const StepBoard& board, RecordedRank of,
           OutputFolder folder, std::string files);
  /// Writes pending output.
  ~Profiler();

  std::unique_ptr<engine::ops::Device> watch(std::unique_ptr<engine::ops::Device> device);
  std::unique_ptr<engine::parallel::Communicator> watch(
      std::unique_ptr<engine::parallel::Communicator> communicator);
  /// Ends the recording; returns the table as text, or "" if nothing was recorded.
  std::string finish();

 private:
  engine::ops::Ceiling measure();
  std::int64_t memory() const;
  void write(const Recorder& recorder);

  const RecordedRank of_;
  const OutputFolder folder_;
  const std::string files_;
  const bool bf16_;
  bool wants_counts_;
  std::unique_ptr<Counters> counters_;
  /// The last one determines the ceiling.
  std::vector<std::weak_ptr<engine::ops::Device>> devices_;
  std::string table_;
  std::optional<Recorder> recorder_;
};

/// The device wrapped by the profiler; unchanged if `by` is null.
std::unique_ptr<engine::ops::Device> watched(Profiler* by,
                                             std::unique_ptr<engine::ops::Device> device);

class RunProfile {
 public:
  /// `leads`: this process executes the algorithm and creates the board before the others open it.
  /// `node`: name of this process if there are several groups, or "". Outlives every watched
  /// device. Throws Failure (Errc::io). Does nothing if profile.enabled is false.
  RunProfile(const config::RunConfig& config, std::string node, bool leads);
  /// Writes pending output, and the table of the first profiled rank to stderr.
  ~RunProfile();

  /// Publishes the beginning of a step; on the leader only.
  void at_step(std::int64_t step);
  /// The profiler of a rank, or nullptr if it is not profiled. From any thread.
  Profiler* rank(int rank);
  /// Wraps the communicators of the mesh if communication is recorded. Collective: called by every
  /// rank, profiled or not.
  engine::parallel::Mesh watched(engine::parallel::Mesh given);

 private:
  bool chosen(int rank) const;

  const config::RunConfig config_;
  const std::string node_;
  std::optional<OutputFolder> folder_;
  std::optional<StepBoard> board_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Profiler>> ranks_;
};

}  // namespace troupe::launch::profile
