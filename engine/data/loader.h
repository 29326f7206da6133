// Loader: the examples of a dataset in their order of training, batch by batch, resumable at the exact example.
//
// The order of epoch e is a permutation that depends on (seed, e) only; a batch may take the end of one epoch and the start of the next.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/experience.h"

namespace troupe::engine::data {

struct LoaderOptions {
  std::int64_t batch_size = 8;  ///< rows, pairs or prompts an optimizer step
  std::int64_t epochs = 0;      ///< 0: without end (a number of steps stops the run); else the last batch may be short
  bool shuffle = true;
  std::uint64_t seed = 0;
};

/// The order of training over `size` examples, without the examples: which one comes when.
class Order {
 public:
  struct Draw {
    std::size_t index = 0;
    std::uint64_t id = 0;  ///< epoch * size + index: stable across restarts, never twice
  };
  Order(std::size_t size, LoaderOptions options);
  /// The next draw; nullopt after options.epochs.
  std::optional<Draw> next();
  /// The next batch: batch_size draws, fewer at the end, none after it.
  std::vector<Draw> next_batch();
  /// Batches of a whole run: ceil(size * epochs / batch_size); 0 when without end.
  std::int64_t batches() const;
  std::uint64_t epoch() const { return epoch_; }
  std::size_t position() const { return position_; }
  /// Goes to draw `position` of epoch `epoch`. Our caller checked position <= size.
  void move_to(std::uint64_t epoch, std::size_t position);
  std::size_t size() const { return size_; }
  const LoaderOptions& options() const { return options_; }

 private:
  std::size_t size_;
  LoaderOptions options_;
  std::uint64_t epoch_ = 0;
  std::size_t position_ = 0;
  std::vector<std::uint32_t> permutation_;  // of epoch_, empty without shuffle
};

/// {"epoch", "position", "examples", "shuffle", "seed", "files": [{"name", "bytes", "xxh3"}]}.
Json order_state(const Order& order, const std::vector<FilePrint>& files);
/// Errc::bad_input when the state does not fit: changed data (names the file), another seed, shuffle or number of examples.
Result<> restore_order(Order& order, const std::vector<FilePrint>& files, const Json& state);

template <class T>
struct Batch {
  std::vector<const T*> examples;  ///< alive as long as the loader
  std::vector<std::uint64_t> ids;  ///< Order::Draw::id of each
};

template <class T>
class Loader {
 public:
  /// `dataset` has at least one example.
  Loader(Dataset<T> dataset, LoaderOptions options) : dataset_(std::move(dataset)), order_(dataset_.examples.size(), options) {}

  /// The next batch; nullopt after options.epochs.
  std::optional<Batch<T>> next() {
    Batch<T> batch;
    for (const auto& draw : order_.next_batch()) batch.examples.push_back(&dataset_.examples[draw.index]), batch.ids.push_back(draw.id);
    if (batch.ids.empty()) return std::nullopt;
    return batch;
  }
  /// What was handed out by next(), for a checkpoint: restoring it goes on with the batch after the last one handed out.
  Json state() const { return order_state(order_, dataset_.files); }
  Result<> restore(const Json& state) { return restore_order(order_, dataset_.files, state); }

  const Dataset<T>& dataset() const { return dataset_; }
  const Order& order() const { return order_; }

 private:
  Dataset<T> dataset_;
  Order order_;
};

/// Sequences with their weights and ids; count = trained weight of the batch (tokens, for weights of 0 and 1).
Experience to_experience(const Batch<SftExample>& batch);
/// Chosen 2k, rejected 2k+1, unit 2, count = pairs.
Experience to_experience(const Batch<PairExample>& batch);
/// The same for a reward model: the mask is 1 at each sequence's last token alone, whose score is the sequence's; `label` has the margins
/// at the sequences 2k, where any pair of the batch has one.
Experience to_scored_pairs(const Batch<PairExample>& batch);
/// One sequence an example, cut to `max_length` tokens (0: not cut); label 1 desirable, 0 undesirable; count = sequences.
Experience to_experience(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// The same prompts, each with the answer of the example before it (the first with the last one's): what KTO's KL term is measured on, over
/// the batch's own answers. Empty for a batch of one, which has no other answer. No labels.
Experience mismatched(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// The mask is 1 where a step is judged, `classes` says what it is; count = judged tokens.
Experience to_experience(const Batch<StepExample>& batch);

}  // namespace troupe::engine::data
