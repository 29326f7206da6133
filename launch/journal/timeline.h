// timeline.jsonl and timeline.svg: when each actor worked and waited, call by call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime/ask_record.h"
#include "launch/journal/diagnostic_file.h"

namespace troupe::launch::journal {

class Timeline {
 public:
  static constexpr std::uint64_t default_bytes = std::uint64_t{64} << 20;
  /// Truncates FOLDER/timeline.jsonl to `done_steps` and appends to it. Before timeline.jsonl
  /// exceeds half of `max_bytes`, it is renamed to timeline.jsonl.1, which replaces an earlier one.
  /// 0: no call is recorded. A file that cannot be written is given up with a warning.
  Timeline(const OutputFolder& folder, std::int64_t done_steps,
           std::uint64_t max_bytes = default_bytes);

  /// Writes one line: {"step", "actor", "message", "asked", "began", "ended", "answered"}, in
  /// seconds since the first call. Calls after record(n) belong to step n + 1, including the save
  /// of the checkpoint of step n.
  void answered(const actors::AskRecord& ask);
  /// Ends a step.
  void record(std::int64_t step);
  /// Draws FOLDER/timeline.svg: the last complete step and, of a method with several updates per
  /// rollout step, those before it from the sampling on.
  Result<> draw() const;

 private:
  void append(const std::string& line);

  OutputFolder folder_;
  std::uint64_t max_bytes_, bytes_ = 0;  ///< of timeline.jsonl
  std::optional<DiagnosticFile> file_;   ///< absent: switched off
  std::int64_t next_step_, first_drawn_ = 0;
  std::optional<std::int64_t> origin_;
  std::vector<actors::AskRecord> current_, last_;
};

/// One row per actor: dark bars are running handlers, light bars last from the call to the answer.
/// Times of calls are in nanoseconds.
std::string timeline_svg(std::int64_t first_step, std::int64_t last_step,
                         const std::vector<actors::AskRecord>& asks);

}  // namespace troupe::launch::journal
