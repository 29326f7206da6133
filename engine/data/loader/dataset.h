// Dataset: files read, parsed and tokenized, with a report of the rows that were not used and the
// fingerprints of the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/data/layouts/encode.h"
#include "engine/data/layouts/unpaired.h"
#include "engine/data/loader/row_selection.h"

namespace troupe::engine::data {

/// The identity of a data file at the time it was read.
struct FileFingerprint {
  std::string path;
  std::uint64_t bytes = 0;
  /// XXH3-128 of the content, hexadecimal; prefixed with "sampled-" if only parts were hashed.
  std::string xxh3;
  bool operator==(const FileFingerprint&) const = default;
};

/// Errc::not_found, io.
Result<FileFingerprint> fingerprint(const std::string& path);
/// Hashes 64 blocks of 1 MiB, evenly spaced, including the first and the last; files of at most
/// 64 MiB are hashed whole. Errc::not_found, io.
Result<FileFingerprint> sampled_fingerprint(const std::string& path);

/// One source of a data mix, or all the data if there is no mix.
struct DataSource {
  std::vector<std::string> paths;  ///< files, folders of files, or patterns (readers/file_list.h)
  double weight = 1;               ///< mixing weight relative to the other sources
  std::int64_t epochs = 0;         ///< maximum number of passes over the source; 0: no limit
  Layout layout = Layout::automatic;
  std::map<std::string, std::string> columns;
  std::string system = {};  ///< LayoutOptions::system; empty: that of all sources
};

struct DataOptions {
  std::vector<std::string> paths;  ///< as in DataSource
  Layout layout = Layout::automatic;
  std::map<std::string, std::string> columns;
  std::vector<DataSource> mix;  ///< instead of paths, layout and columns
  Tags tags;
  std::string system = {};  ///< of all sources, LayoutOptions::system
  ReadOptions reading;
  ChatUse chat = ChatUse::automatic;
  /// Maximum number of malformed rows that are skipped (each is logged); one more stops the run.
  std::int64_t bad_row_limit = 0;
  EncodeOptions encode;
  RowSelection selection;
  /// An additional check of prompt rows; a row that fails it is malformed. Empty: none.
  std::function<Result<>(const PromptRow&)> check_prompt = {};

  /// The mix, or the single source given by paths, layout and columns.
  std::vector<DataSource> sources() const;
};

/// A reason why rows are not used.
struct UnusedRows {
  std::string why;    ///< without the place
  std::string first;  ///< place of the first such row: "rows.jsonl:17"
  bool malformed = false;
  std::int64_t rows = 0;
};

/// Counts of rows: rows = used + bad + untrainable + held_out.
struct DataReport {
  Layout layout = Layout::automatic;
  std::int64_t rows = 0;
  std::int64_t bad = 0;  ///< malformed and skipped
  /// Well-formed, but with no trainable token within max_length. Prompts: longer than max_length;
  /// pairs of a reward model: one of the two is longer.
  std::int64_t untrainable = 0;
  std::int64_t too_long = 0;       ///< untrainable because of max_length
  std::int64_t held_out = 0;       ///< held out by DataOptions::selection, for evaluation
  std::int64_t truncated = 0;      ///< used, but truncated to max_length
  std::int64_t cut_tokens = 0;     ///< tokens of the truncated rows that are dropped
  std::int64_t chunked = 0;        ///< used, and split into several examples
  std::int64_t chunks = 0;         ///< those examples
  std::vector<UnusedRows> unused;  ///< by reason; the rarest reasons are counted together
  /// Columns that the layout does not read, with the number of rows that have them; at most 32.
  std::map<std::string, std::int64_t> unread;
  std::int64_t used() const { return rows - bad - untrainable - held_out; }
  void add_unused(const UnusedRows& rows);
  void add_unread(const std::string& column, std::int64_t rows);
  /// "unread columns: id (8 rows), source (8 rows)"; empty: there are none. Reward programs get
  /// those of prompts.
  std::string unread_text() const;
  /// Adds the counts of another source.
  void add(const DataReport& other);
  /// The report as one line for a log.
  std::string text() const;
};

/// Size and mixing weight of one source of a Dataset.
struct SourceInfo {
  std::size_t size = 0;  ///< examples
  double weight = 1;
  std::int64_t epochs = 0;  ///< 0: no limit
  bool operator==(const SourceInfo&) const = default;
};

template <class T>
struct Dataset {
  std::vector<T> examples;  ///< source after source
  std::vector<FileFingerprint> files;
  DataReport report;
  std::vector<SourceInfo> sources = {};  ///< empty: a single source
};

/// Reads all sources. Errc::bad_input if more rows than the limit are malformed or no row is left;
/// errors of files and options are passed on. T: SftExample, PairExample, UnpairedExample (a pair
/// becomes two examples), StepExample (options.encode.steps selects the form of the rows),
/// PromptRow.
template <class T>
Result<Dataset<T>> load(const DataOptions& options, const TextEncoder& encoder);

}  // namespace troupe::engine::data
