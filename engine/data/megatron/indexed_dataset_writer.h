// IndexedDatasetWriter: writes PREFIX.bin and PREFIX.idx with the bytes that Megatron core's
// IndexedDatasetBuilder gives them. Until finish() the lengths are in PREFIX.idx.partial, and a
// killed program continues at its last sync().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files/descriptor.h"
#include "engine/data/megatron/indexed_dataset.h"

namespace troupe::engine::data::megatron {

class IndexedDatasetWriter {
 public:
  /// What is durable: bytes of PREFIX.bin and entries of PREFIX.idx.partial.
  struct Position {
    std::int64_t bytes = 0, entries = 0;
  };
  /// Opens both files for the documents behind `from`; what follows it in old files is removed. A
  /// PREFIX.idx that exists is removed: it says that the dataset is complete. Errc::io;
  /// Errc::usage if another process writes them;
  /// Errc::corrupt if the old files are shorter than `from`, or contradict each other;
  /// Errc::unsupported for floating-point types.
  static Result<IndexedDatasetWriter> open(const std::string& prefix, TokenType type,
                                           Position from);
  static Result<IndexedDatasetWriter> create(const std::string& prefix, TokenType type) {
    return open(prefix, type, {});
  }

  /// Appends a sequence to the current document. Errc::bad_input for a token outside the type;
  /// Errc::io.
  Result<> add_sequence(std::span<const std::int32_t> tokens);
  /// Ends the current document, which may be empty. Errc::io.
  Result<> end_document();
  /// Appends all documents of another dataset, whose type must be the same (Errc::usage).
  Result<> add_dataset(const IndexedDataset& other);
  std::int64_t sequences() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t documents() const { return static_cast<std::int64_t>(documents_.size()) - 1; }
  std::int64_t tokens() const { return tokens_; }
  /// Makes everything so far durable. Errc::io.
  Result<Position> sync();
  /// Makes the data durable and writes the index durably. Errc::io.
  Result<> write_index();
  /// Removes PREFIX.idx.partial: the dataset cannot be continued. Errc::io.
  Result<> remove_entries();
  /// Both.
  Result<> finish();

 private:
  // A file that is appended to in blocks.
  struct Appended {
    std::string path;
    Descriptor file = Descriptor();
    std::string buffer = {};
    std::int64_t bytes = 0;
    Result<> open();
    Result<> truncate(std::int64_t from);
    Result<> append(std::string_view text);
    Result<> flush();
    Result<> sync();
  };
  IndexedDatasetWriter(const std::string& prefix, TokenType type)
      : prefix_(prefix), type_(type), data_{prefix + ".bin"}, entries_{prefix + ".idx.partial"} {}
  Result<> read_entries(Position from);
  Result<> add_entry(std::int32_t entry);
  void count(std::int32_t entry);
  std::string index() const;

  std::string prefix_;
  TokenType type_;
  Appended data_, entries_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> documents_{0};
  std::int64_t tokens_ = 0;
};

}  // namespace troupe::engine::data::megatron
