// Stream: the examples of data that does not fit into memory. A block of examples is read, put into
// a seeded order and handed out, then the next one; so memory holds one block of each source, and a
// checkpoint needs no more than where the block begins. Data that fits into one block comes in the
// very order, and under the very ids, in which an Order over all of it would have it.
#pragma once

#include <memory>

#include "engine/data/loader/example_reader.h"
#include "engine/data/loader/order.h"

namespace troupe::engine::data {

/// A block also ends where its examples take so much memory.
constexpr std::size_t block_bytes = 256u << 20;

template <class T>
class Stream {
 public:
  struct Item {
    std::shared_ptr<const T> example;
    std::uint64_t id = 0;  ///< as Order::Draw has it for one source; of a mix with the source in
                           ///< the highest 12 bits
  };
  /// `encoder` outlives this. Errors of options and files, but not yet of rows.
  static Result<Stream> open(DataOptions options, const TextEncoder& encoder,
                             const LoaderOptions& loader);

  /// Nullopt after the sources' own epochs (loader.epochs is not looked at). Errors of rows beyond
  /// the limit, and of files.
  Result<std::optional<Item>> next();
  /// {"shuffle", "seed", "rows", "sources": [...], "files"}.
  Json state() const;
  /// Errc::bad_input where the state does not fit; errors of files, which are read up to the place.
  Result<> restore(const Json& state);

 private:
  struct Source {
    DataSource of;
    ExampleReader<T> reader;
    std::vector<std::shared_ptr<const T>> block = {};
    std::vector<std::uint32_t> order = {};  // of the block; empty without shuffle
    std::size_t at = 0;                     // in the block
    Place begin = {};                       // of the block
    std::uint64_t number = 0;               // of the block in its pass
    std::uint64_t first = 0;                // examples of the pass before the block
    std::uint64_t epoch = 0, drawn = 0;
    std::uint64_t size = 0;  // examples of a pass; 0: the first one is not over
    std::int64_t bad = 0;    // malformed rows of the pass before the block
    bool over = false;       // has given all its epochs
    bool whole = true;       // the pass was read from its first row
  };
  Stream(DataOptions options, LoaderOptions loader)
      : options_(std::make_unique<DataOptions>(std::move(options))), loader_(loader) {}
  Result<> fill(std::size_t k);
  Result<> make_ready(std::size_t k);
  Result<> end_pass(Source& source);
  Result<> restore_source(std::size_t k, const Json& state);

  std::unique_ptr<DataOptions> options_;  // where the readers find it, wherever this is moved
  LoaderOptions loader_;
  std::vector<Source> sources_;
  std::vector<FilePrint> files_;
};

}  // namespace troupe::engine::data
