// .journal.jsonl: how many lines the journal had when each checkpoint was saved. A resumed run
// compares them with what is there, because a power failure may leave a file without its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "launch/journal/metrics_file.h"

namespace troupe::launch {

inline constexpr std::string_view commit_record_name = ".journal.jsonl";

/// Lines of metrics.jsonl and samples.jsonl.
struct JournalLines {
  std::int64_t metrics = 0, samples = 0;
};

/// {"step", "metrics", "samples"}.
std::string commit_line(std::int64_t step, const JournalLines& lines);
/// The lines of step `step` in FOLDER/.journal.jsonl. nullopt without a record: the checkpoint is
/// of another directory or of an earlier version.
std::optional<JournalLines> committed_lines(const OutputFolder& folder, std::int64_t step);

/// One sentence for each difference between the journal of a resumed run and the record of its
/// checkpoint: removed bytes that are no complete lines, and missing lines, with their steps.
std::vector<std::string> describe_gaps(const OutputFolder& folder, std::int64_t step,
                                       const KeptLines& metrics, const KeptLines& samples);

}  // namespace troupe::launch
