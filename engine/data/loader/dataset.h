// Dataset: files read, parsed and tokenized, with a report of the rows that were not used and the
// fingerprints of the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/ranges.h"
#include "engine/data/layouts/encode.h"
#include "engine/data/layouts/unpaired.h"

namespace troupe::engine::data {

/// RowSelection: which rows of a source are used: the first ones only, and either those held out
/// for evaluation or the others.
struct RowSelection {
  std::int64_t first_rows = 0;  ///< only the first rows of each source; 0: all
  double split = 0;             ///< fraction of the rows held out, in [0, 1)
  bool held_out = false;        ///< use the rows held out instead of the others
  std::uint64_t seed = 0;       ///< of the choice of the rows held out

  static void each_field(auto& self, auto&& field) {
    field("max_samples", self.first_rows, count_from_0, "rows of each source to use; 0: all");
    field("split", self.split, from_0_below_1,
          "fraction of the rows to evaluate on, and not to train on; instead of eval.path");
  }

  /// Whether the position within a source decides which rows are used.
  bool any() const { return first_rows > 0 || split > 0; }
  /// True if there is no row to use from row `number` of the source on, counted from 0.
  bool ends_before(std::int64_t number) const { return first_rows > 0 && number >= first_rows; }
  bool uses(std::int64_t number) const;
};

/// Whether row `number` of a source, counted from 0, is held out: of every 1 / split consecutive
/// rows exactly one is, chosen by the seed. Adding rows at the end changes nothing for the others.
bool is_held_out(std::int64_t number, double split, std::uint64_t seed);

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

  static void each_field(auto& self, auto&& field) {
    field("path", self.paths, "file, folder, pattern, or list of them");
    field("weight", self.weight, above_0, "sampling weight");
    field("epochs", self.epochs, passes_from_0, "passes after which the source ends; 0: no limit");
    field("format", self.layout, "row layout");
    field("columns", self.columns, "column names");
    field("system", self.system, "system message of its rows that have none");
  }
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

  static void each_source_field(auto& self, auto&& field) {
    field("path", self.paths,
          "file, folder, pattern (data/*.jsonl), or list of them (jsonl, json, csv, tsv, txt, each "
          "also .gz; parquet, arrow); this or data.mix is required");
    field("mix", self.mix,
          "instead of data.path: weighted sources, each {path, weight, epochs, format, columns, "
          "system}; epochs 0: repeat without limit");
    field("format", self.layout, "row layout; auto: detected from the keys of the first row");
    field("columns", self.columns,
          "map from the expected column name to the file's, such as {prompt: question}; dots "
          "address nested values, \"\" ignores a column. data.map_keys accepts MindSpeed's "
          "--map-keys");
    field("tags", self.tags,
          "names used in conversations where they differ from ShareGPT's and OpenAI's: role_tag, "
          "content_tag, user_tag, assistant_tag, system_tag, observation_tag, function_tag");
    field("system", self.system,
          "system message of rows without one in a column or message; data.mix: its own");
    ReadOptions::each_field(self.reading, field);
  }
  /// What a row's tokens are beside those of its texts.
  static void each_token_field(auto& self, auto&& field) {
    field("chunk", self.encode.chunk,
          "split documents of the text layout longer than train.max_length; false: truncate them");
    field("chat", self.chat,
          "apply the chat template to plain prompts as a user message; auto: alpaca rows only, if "
          "the model has a template");
    EncodeOptions::each_token_field(self.encode, field);
    field("max_bad_rows", self.bad_row_limit, count_from_0,
          "malformed rows that are skipped and counted; one more stops the run");
  }
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
