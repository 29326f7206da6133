// Stream: examples of data that does not fit into memory. A block of examples is read, shuffled
// with the seed and returned one by one, then the next block. Memory holds one block of each
// source, and a checkpoint records only where the block begins. Data that fits into one block has
// the same order and the same ids as with a Sampler over all of it.
#pragma once

#include <memory>

#include "engine/base/files/file_stamp.h"
#include "engine/data/loader/example_reader.h"
#include "engine/data/loader/sampler.h"

namespace troupe::engine::data {

/// A block also ends when its examples take this much memory.
constexpr std::size_t block_bytes = 256u << 20;

template <class T>
class Stream {
 public:
  struct Item {
    std::shared_ptr<const T> example;
    std::uint64_t id = 0;  ///< Sampler::Item::id; in a mix the highest 12 bits hold the source
  };
  /// `encoder` outlives this. Errors of options and files, but not yet of rows.
  static Result<Stream> open(DataOptions options, const TextEncoder& encoder,
                             const LoaderOptions& loader);

  /// The next example; nullopt after the sources' own epochs (loader.epochs is not used). Errors of
  /// malformed rows beyond the limit, and of files; Errc::bad_input for a file whose content was
  /// replaced since open(), which is checked after each block is read.
  Result<std::optional<Item>> next();
  /// True if the example returned last was the last one of a pass over the data, which has one
  /// source. Reads the next block where that is not known yet.
  Result<bool> at_pass_end();
  /// {"shuffle", "seed", "rows", "sources": [...], "files"}.
  Json state() const;
  /// Errc::bad_input if the state does not match the data; errors of files, which are read up to
  /// the position.
  Result<> restore(const Json& state);

 private:
  struct Source {
    DataSource options;
    ExampleReader<T> reader;
    std::vector<std::shared_ptr<const T>> block = {};
    std::vector<std::uint32_t> order = {};  // of the block; empty without shuffle
    std::size_t at = 0;                     // in the block
    RowPosition begin = {};                 // of the block
    std::uint64_t number = 0;               // of the block in its pass
    std::uint64_t first = 0;                // examples of the pass before the block
    std::uint64_t epoch = 0, drawn = 0;
    std::uint64_t size = 0;  // examples of a pass; 0: the first one is not over
    std::int64_t bad = 0;    // malformed rows of the pass before the block
    bool done = false;       // all its epochs are used
    bool whole = true;       // the pass was read from its first row
  };
  Stream(DataOptions options, LoaderOptions loader)
      : options_(std::make_unique<DataOptions>(std::move(options))), loader_(loader) {}
  Result<> fill(std::size_t k);
  Result<> make_ready(std::size_t k);
  Result<> end_pass(Source& source);
  Result<> check_unchanged(const Source& source);
  Result<> restore_source(std::size_t k, const Json& state);

  std::unique_ptr<DataOptions> options_;  // stable address for the readers when this is moved
  LoaderOptions loader_;
  std::vector<Source> sources_;
  std::vector<FileFingerprint> files_;
  std::vector<FileStamp> stamps_;  // of files_
};

}  // namespace troupe::engine::data
