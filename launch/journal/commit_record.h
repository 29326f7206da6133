// What the journal had when a checkpoint was saved: lines, bytes and checksums of metrics.jsonl and
// samples.jsonl, in training/journal.json of the checkpoint. A resumed run compares them with what
// is there: a power failure may leave a file without its end, and a file may be damaged. Version
// 0.1.0 wrote the numbers of lines to OUTPUT/.journal.jsonl, which is still read for its
// checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "launch/journal/metrics_file.h"

namespace troupe::launch::journal {

inline constexpr std::string_view commit_record_name = ".journal.jsonl";

/// A file of lines.
struct LinesRecord {
  std::int64_t lines = 0;
  std::uint64_t bytes = 0;
  std::string xxh3_128;  ///< of these bytes; "": not recorded
};
struct JournalRecord {
  LinesRecord metrics, samples;
};

/// RunState::journal and training/journal.json: {"metrics.jsonl": {"lines", "bytes", "xxh3_128"},
/// "samples.jsonl": {...}}; a run adds the anchor of its ledger.
Json to_json(const JournalRecord& record);
/// The record in the state of a checkpoint; nullopt where there is none.
std::optional<JournalRecord> journal_record(const Json& journal);
/// The record of step `step` in FOLDER/.journal.jsonl, without checksums; nullopt where there is
/// none.
std::optional<JournalRecord> committed_lines(const OutputFolder& folder, std::int64_t step);

/// One sentence for each difference between the journal of a resumed run and the record of its
/// checkpoint, if there is one: removed bytes that are no complete lines, missing lines, with their
/// steps, and changed lines.
std::vector<std::string> describe_gaps(const OutputFolder& folder, std::int64_t step,
                                       const std::optional<JournalRecord>& expected,
                                       const KeptLines& metrics, const KeptLines& samples);

}  // namespace troupe::launch::journal
