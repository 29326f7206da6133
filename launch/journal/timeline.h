// timeline.jsonl and timeline.svg: who worked and who waited, ask by ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/runtime/ask_record.h"
#include "engine/base/error.h"
#include "launch/journal/metrics_file.h"

namespace troupe::launch {

class Timeline {
 public:
  /// Cuts FOLDER/timeline.jsonl back to the steps that are done and goes on after them. Throws
  /// Failure (Errc::io).
  Timeline(const std::string& folder, std::int64_t done_steps);

  /// Writes one line: {"step", "actor", "message", "asked", "began", "ended", "answered"}, in
  /// seconds since the first ask. What comes after record(n) belongs to step n + 1: so does the
  /// saving of the checkpoint of step n.
  void answered(const actors::AskRecord& ask);
  /// The step is over.
  void record(std::int64_t step);
  /// Draws FOLDER/timeline.svg: the last whole step.
  Result<> draw() const;

 private:
  std::string folder_;
  LineFile file_;
  std::int64_t next_step_;
  std::optional<std::int64_t> origin_;
  std::vector<actors::AskRecord> current_, last_;
};

/// A row for each actor: the dark bar is its handler at work, the pale one from the ask to the
/// answer. Ask times are nanoseconds.
std::string timeline_svg(std::int64_t step, const std::vector<actors::AskRecord>& asks);

}  // namespace troupe::launch
