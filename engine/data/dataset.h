// Dataset: files read, understood and tokenised, with an account of every row that was not used, and the files' fingerprint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/encode.h"

namespace troupe::engine::data {

struct DataOptions {
  std::vector<std::string> paths;  ///< files, or folders of files
  Layout layout = Layout::automatic;
  std::map<std::string, std::string> columns;
  ChatUse chat = ChatUse::automatic;
  std::int64_t bad_row_limit = 0;  ///< malformed rows that are left out (each is logged); one more stops the run
  EncodeOptions encode;
};

/// What became of the rows: rows = used + bad + untrainable.
struct DataReport {
  Layout layout = Layout::automatic;
  std::int64_t rows = 0;
  std::int64_t bad = 0;          ///< malformed, left out within the limit
  std::int64_t untrainable = 0;  ///< well-formed, but nothing to train on is left within max_length (prompts: longer than it; pairs of a
                                 ///< reward model: one of them is)
  std::int64_t truncated = 0;    ///< used, but cut to max_length
  std::vector<std::string> examples;  ///< the first messages about rows left out, at most 10
  /// One line for a log.
  std::string text() const;
};

/// One data file as it was when it was read.
struct FilePrint {
  std::string path;
  std::uint64_t bytes = 0;
  std::string xxh3;  ///< XXH3-128 of the content, hexadecimal
  bool operator==(const FilePrint&) const = default;
};
/// Errc::not_found, io.
Result<FilePrint> fingerprint(const std::string& path);

template <class T>
struct Dataset {
  std::vector<T> examples;
  std::vector<FilePrint> files;
  DataReport report;
};

/// Reads everything. Errc::bad_input when the limit of bad rows is passed or no row is left; errors of files and options as they come.
Result<Dataset<SftExample>> load_sft(const DataOptions& options, const TextEncoder& encoder);
Result<Dataset<PairExample>> load_pairs(const DataOptions& options, const TextEncoder& encoder);
/// options.encode.steps says which dialect the rows are to be of.
/// A row that is a pair gives two examples.
Result<Dataset<UnpairedExample>> load_unpaired(const DataOptions& options, const TextEncoder& encoder);
Result<Dataset<StepExample>> load_steps(const DataOptions& options, const TextEncoder& encoder);
Result<Dataset<PromptRow>> load_prompts(const DataOptions& options, const TextEncoder& encoder);

}  // namespace troupe::engine::data
