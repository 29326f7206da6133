// Order: which example of a data set comes when. In each pass over a source its examples come in a
// permutation that depends on (seed, source, number of the pass) only. Of several sources the next
// draw is that of the one which is most behind its weight.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

struct LoaderOptions {
  std::int64_t batch_size = 8;  ///< rows, pairs or prompts an optimizer step
  std::int64_t epochs =
      0;  ///< 0: without end (a number of steps stops the run); else the last batch may be short
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::int64_t stream_rows = 0;  ///< 0: all examples in memory; else so many at a time (stream.h)
};

/// The source whose (drawn + 1/2) / weight is least, the first of equals, as seats are given to
/// parties (Sainte-Lague). `open`: which ones have something left. Nullopt: none.
std::optional<std::size_t> next_source(const std::vector<double>& weights,
                                       const std::vector<std::uint64_t>& drawn,
                                       const std::vector<bool>& open);

/// The number of the permutation of pass `epoch` over source `part`; streams permute it block by
/// block.
constexpr std::uint64_t order_stream(std::size_t part, std::uint64_t epoch,
                                     std::uint64_t block = 0) {
  return epoch | (block << 20) | (static_cast<std::uint64_t>(part) << 52);
}

class Order {
 public:
  struct Draw {
    std::size_t index = 0;
    std::uint64_t id =
        0;  ///< pass over its source * size() + index: stable across restarts, never twice
  };
  Order(std::size_t size, LoaderOptions options)
      : Order(std::vector<Part>{{.size = size, .weight = 1, .epochs = 0}}, options) {}
  /// Each part has at least one example. options.epochs counts draws in size(): with weights, some
  /// examples come more often than others.
  Order(std::vector<Part> parts, LoaderOptions options);
  /// The next draw; nullopt after options.epochs, or when every part's own are over.
  std::optional<Draw> next();
  /// The next batch: batch_size draws, fewer at the end, none after it.
  std::vector<Draw> next_batch();
  /// Batches of a whole run; 0 when without end.
  std::int64_t batches() const;
  std::size_t size() const { return size_; }
  const LoaderOptions& options() const { return options_; }

  /// {"epoch", "position"} of one source, {"parts": [{"size", "weight", "epochs", "epoch",
  /// "position"}]} of several.
  Json place() const;
  /// Errc::bad_input: a place that is not there, or in other parts.
  Result<> move_to(const Json& state);

 private:
  struct Source {
    Part part;
    std::size_t offset = 0;
    std::uint64_t epoch = 0;
    std::size_t position = 0;
    std::vector<std::uint32_t> permutation = {};  // of epoch, empty without shuffle
    std::uint64_t drawn() const { return epoch * part.size + position; }
  };
  bool is_open(const Source& source) const;
  void begin(std::size_t part, std::uint64_t epoch, std::size_t position);
  Result<> move_part(std::size_t part, const Json& state);
  std::optional<std::uint64_t> limit() const;  // draws of a whole run

  std::size_t size_ = 0;
  LoaderOptions options_;
  std::vector<Source> sources_;
};

/// {"epoch", "position" or "parts", "examples", "shuffle", "seed", "files": [{"name", "bytes",
/// "xxh3"}]}.
Json order_state(const Order& order, const std::vector<FilePrint>& files);
/// Errc::bad_input when the state does not fit: changed data (names the file), another seed,
/// shuffle, number of examples or mix.
Result<> restore_order(Order& order, const std::vector<FilePrint>& files, const Json& state);

}  // namespace troupe::engine::data
