// Sampler: the order in which the examples of a dataset are used. In each pass over a source the
// examples follow a permutation that depends on (seed, source, number of the pass) only. Several
// sources are interleaved deterministically in proportion to their weights.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/data/loader/dataset.h"

namespace troupe::engine::data {

/// What becomes of the rows at the end of an epoch that do not fill a batch: `join` completes it
/// with rows of the next epoch, `keep` makes a shorter batch (transformers' Trainer without
/// dataloader_drop_last), `drop` leaves them out (PyTorch's DataLoader with drop_last).
enum class LastBatch { join, keep, drop };
constexpr auto names_of(LastBatch) {
  return std::array<std::string_view, 3>{"join", "keep", "drop"};
}

struct LoaderOptions {
  /// Rows, pairs or prompts per optimizer step; a batch of one source has each example at most
  /// once.
  std::int64_t batch_size = 8;
  /// Number of passes over the data, possibly a fraction; the last batch may be short. 0: no limit
  /// (the number of steps ends the run).
  double epochs = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::int64_t stream_rows = 0;            ///< examples in memory at a time (stream.h); 0: all
  LastBatch last_batch = LastBatch::join;  ///< of an epoch
};

/// Returns the source with the smallest (drawn + 1/2) / weight (Sainte-Lague) among those that are
/// `open`, the first one of equals; nullopt if none is open.
std::optional<std::size_t> next_source(const std::vector<double>& weights,
                                       const std::vector<std::uint64_t>& drawn,
                                       const std::vector<bool>& open);

/// The random stream of the permutation of pass `epoch` over source `source`; streamed data is
/// permuted block by block.
constexpr std::uint64_t permutation_stream(std::size_t source, std::uint64_t epoch,
                                           std::uint64_t block = 0) {
  return epoch | (block << 20) | (static_cast<std::uint64_t>(source) << 52);
}

class Sampler {
 public:
  struct Item {
    std::size_t index = 0;
    /// Pass over its source * size() + index: unique, stable across restarts.
    std::uint64_t id = 0;
  };
  Sampler(std::size_t size, LoaderOptions options)
      : Sampler(std::vector<SourceInfo>{{.size = size, .weight = 1, .epochs = 0}}, options) {}
  /// Each source has at least one example. One epoch of options.epochs is size() items: with
  /// weights some examples are used more often than others.
  Sampler(std::vector<SourceInfo> sources, LoaderOptions options);
  /// The next item; nullopt after options.epochs, or when all sources have reached their own limit.
  std::optional<Item> next();
  /// Number of batches of a whole run; 0: no limit.
  std::int64_t batches() const;
  /// True if the item returned last was the last one of an epoch: of size() items.
  bool at_epoch_end() const;
  std::size_t size() const { return size_; }
  /// Passes over the data so far: items returned / size().
  double epoch() const;
  const LoaderOptions& options() const { return options_; }

  /// {"epoch", "position"} of one source, {"parts": [{"size", "weight", "epochs", "epoch",
  /// "position"}]} of several.
  Json state() const;
  /// Errc::bad_input if the position does not exist or the sources differ.
  Result<> restore(const Json& state);

 private:
  struct Source {
    SourceInfo info;
    std::size_t offset = 0;
    std::uint64_t epoch = 0;
    std::size_t position = 0;
    std::vector<std::uint32_t> permutation = {};  // of epoch, empty without shuffle
    std::uint64_t drawn() const { return epoch * info.size + position; }
  };
  bool is_open(const Source& source) const;
  void begin(std::size_t source, std::uint64_t epoch, std::size_t position);
  Result<> restore_source(std::size_t source, const Json& state);
  std::optional<std::uint64_t> limit() const;  // items of a whole run
  std::uint64_t items_of_epochs() const;
  std::int64_t batches_of(std::uint64_t items) const;

  std::size_t size_ = 0;
  LoaderOptions options_;
  std::vector<Source> sources_;
};

/// {"epoch", "position" or "parts", "examples", "shuffle", "seed", "files": [{"name", "bytes",
/// "xxh3"}]}.
Json sampler_state(const Sampler& sampler, const std::vector<FileFingerprint>& files);
/// Errc::bad_input if the data (names the file), the seed, shuffle, the number of examples or the
/// mix have changed.
Result<> restore_sampler(Sampler& sampler, const std::vector<FileFingerprint>& files,
                         const Json& state);

}  // namespace troupe::engine::data
