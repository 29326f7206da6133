// StatusWriter: writes status.json of a launch every second (launch/run/group_status.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "actors/runtime/scheduler.h"
#include "engine/base/files/output_folder.h"
#include "launch/run/group_status.h"

namespace troupe::launch::cluster {

class StatusWriter {
 public:
  /// `gather` is called on `control`, at most once at a time. What it uses outlives this and the
  /// jobs of the executor.
  StatusWriter(OutputFolder folder, actors::Executor& control,
               std::function<run::RunStatus()> gather,
               std::chrono::milliseconds every = std::chrono::seconds(1));
  ~StatusWriter();

 private:
  void write_all();
  void write(const run::RunStatus& status);
  bool ended_within(std::chrono::milliseconds time);

  OutputFolder folder_;
  actors::Executor& control_;
  const std::function<run::RunStatus()> gather_;
  const std::chrono::milliseconds every_;
  bool warned_ = false;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace troupe::launch::cluster
