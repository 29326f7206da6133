// Dataset: files read, understood and tokenised, with an account of every row that was not used,
// and the files' fingerprint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/encode.h"
#include "engine/data/layouts/unpaired.h"

namespace troupe::engine::data {

/// Files that belong together: one of several whose rows are drawn by their shares, or all the data
/// there is.
struct DataSource {
  std::vector<std::string> paths;  ///< files, folders of files, or patterns (readers/file_list.h)
  double weight = 1;               ///< of draws, beside the other sources
  std::int64_t epochs = 0;         ///< passes over it, after which it gives no more; 0: no limit
  Layout layout = Layout::automatic;
  std::map<std::string, std::string> columns;
};

struct DataOptions {
  std::vector<std::string> paths;  ///< as a source's
  Layout layout = Layout::automatic;
  std::map<std::string, std::string> columns;
  std::vector<DataSource> mix;  ///< instead of the three
  Tags tags;
  ReadOptions reading;
  ChatUse chat = ChatUse::automatic;
  std::int64_t bad_row_limit =
      0;  ///< malformed rows that are left out (each is logged); one more stops the run
  EncodeOptions encode;

  /// The mix, or the one source that the options describe.
  std::vector<DataSource> sources() const;
};

/// What became of the rows: rows = used + bad + untrainable.
struct DataReport {
  Layout layout = Layout::automatic;
  std::int64_t rows = 0;
  std::int64_t bad = 0;  ///< malformed, left out within the limit
  std::int64_t untrainable =
      0;  ///< well-formed, but nothing to train on is left within max_length (prompts: longer than
          ///< it; pairs of a reward model: one of them is)
  std::int64_t truncated = 0;         ///< used, but cut to max_length
  std::vector<std::string> examples;  ///< the first messages about rows left out, at most 10
  /// One line for a log.
  std::string text() const;
};

/// One data file as it was when it was read.
struct FilePrint {
  std::string path;
  std::uint64_t bytes = 0;
  std::string xxh3;  ///< XXH3-128 of the content, hexadecimal; of a part of it behind "sampled-"
  bool operator==(const FilePrint&) const = default;
};
/// Errc::not_found, io.
Result<FilePrint> fingerprint(const std::string& path);
/// Of files that are too long to be read for it: 64 pieces of 1 MiB, evenly over the file, the
/// first and the last among them. Shorter ones are read whole. The same errors.
Result<FilePrint> sampled_fingerprint(const std::string& path);

/// A source's part in a Dataset.
struct Part {
  std::size_t size = 0;  ///< examples
  double weight = 1;
  std::int64_t epochs = 0;  ///< 0: no limit
  bool operator==(const Part&) const = default;
};

template <class T>
struct Dataset {
  std::vector<T> examples;  ///< of the sources one behind the other
  std::vector<FilePrint> files;
  DataReport report;
  std::vector<Part> parts = {};  ///< empty: the whole is one
};

/// Reads everything. Errc::bad_input when the limit of bad rows is passed or no row is left; errors
/// of files and options as they come. T: SftExample, PairExample, UnpairedExample (a row that is a
/// pair gives two), StepExample (options.encode.steps says which dialect the rows are to be of),
/// PromptRow.
template <class T>
Result<Dataset<T>> load(const DataOptions& options, const TextEncoder& encoder);

inline Result<Dataset<SftExample>> load_sft(const DataOptions& options,
                                            const TextEncoder& encoder) {
  return load<SftExample>(options, encoder);
}
inline Result<Dataset<PairExample>> load_pairs(const DataOptions& options,
                                               const TextEncoder& encoder) {
  return load<PairExample>(options, encoder);
}
inline Result<Dataset<UnpairedExample>> load_unpaired(const DataOptions& options,
                                                      const TextEncoder& encoder) {
  return load<UnpairedExample>(options, encoder);
}
inline Result<Dataset<StepExample>> load_steps(const DataOptions& options,
                                               const TextEncoder& encoder) {
  return load<StepExample>(options, encoder);
}
inline Result<Dataset<PromptRow>> load_prompts(const DataOptions& options,
                                               const TextEncoder& encoder) {
  return load<PromptRow>(options, encoder);
}

}  // namespace troupe::engine::data
