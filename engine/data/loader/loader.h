// Loader: the examples of a dataset in their order of training, batch by batch, resumable at the
// exact example. They are all in memory, or come from a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/data/experience.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/loader/order.h"
#include "engine/data/loader/stream.h"

namespace troupe::engine::data {

template <class T>
struct Batch {
  std::vector<const T*> examples;  ///< alive as long as the loader or, of a stream, as `held`
  std::vector<std::uint64_t> ids;  ///< Order::Draw::id of each
  std::vector<std::shared_ptr<const T>> held = {};  ///< of a stream: what keeps the examples
};

template <class T>
class Loader {
 public:
  /// `dataset` has at least one example.
  Loader(Dataset<T> dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(options) {
    if (dataset_.parts.empty())
      dataset_.parts.push_back({.size = dataset_.examples.size(), .weight = 1, .epochs = 0});
    order_.emplace(dataset_.parts, options);
  }
  Loader(Stream<T> stream, LoaderOptions options)
      : stream_(std::make_unique<Stream<T>>(std::move(stream))), options_(options) {}

  /// The next batch; nullopt after options.epochs. Throws Failure when a stream cannot be read
  /// further.
  std::optional<Batch<T>> next() {
    Batch<T> batch;
    if (stream_) {
      while (static_cast<std::int64_t>(batch.ids.size()) < options_.batch_size) {
        auto item = value_or_throw(stream_->next());
        if (!item) break;
        batch.examples.push_back(item->example.get()), batch.ids.push_back(item->id),
            batch.held.push_back(std::move(item->example));
      }
    } else {
      for (const auto& draw : order_->next_batch())
        batch.examples.push_back(&dataset_.examples[draw.index]), batch.ids.push_back(draw.id);
    }
    if (batch.ids.empty()) return std::nullopt;
    return batch;
  }
  /// What was handed out by next(), for a checkpoint: restoring it goes on with the batch after the
  /// last one handed out.
  Json state() const { return stream_ ? stream_->state() : order_state(*order_, dataset_.files); }
  Result<> restore(const Json& state) {
    return stream_ ? stream_->restore(state) : restore_order(*order_, dataset_.files, state);
  }

  /// Batches of a whole run; 0 when without end, or of a stream, whose length nobody knows.
  std::int64_t batches() const { return stream_ ? 0 : order_->batches(); }
  bool streams() const { return stream_ != nullptr; }
  /// All examples; none of a stream.
  const Dataset<T>& dataset() const { return dataset_; }

 private:
  Dataset<T> dataset_;
  std::optional<Order> order_;
  std::unique_ptr<Stream<T>> stream_;
  LoaderOptions options_;
};

/// A loader over what the options name: a stream where loader.stream_rows says so. `encoder`
/// outlives it.
template <class T>
Result<Loader<T>> make_loader(const DataOptions& options, const TextEncoder& encoder,
                              const LoaderOptions& loader) {
  if (loader.stream_rows > 0) {
    auto stream = Stream<T>::open(options, encoder, loader);
    RETURN_IF_ERROR(stream);
    return Loader<T>(std::move(*stream), loader);
  }
  auto dataset = load<T>(options, encoder);
  RETURN_IF_ERROR(dataset);
  return Loader<T>(std::move(*dataset), loader);
}

/// Sequences with their weights and ids; count = trained weight of the batch (tokens, for weights
/// of 0 and 1).
Experience to_experience(const Batch<SftExample>& batch);
/// Chosen 2k, rejected 2k+1, unit 2, count = pairs.
Experience to_experience(const Batch<PairExample>& batch);
/// The same for a reward model: the mask is 1 at each sequence's last token alone, whose score is
/// the sequence's; `label` has the margins at the sequences 2k, where any pair of the batch has
/// one.
Experience to_scored_pairs(const Batch<PairExample>& batch);
/// One sequence an example, cut to `max_length` tokens (0: not cut); label 1 desirable, 0
/// undesirable; count = sequences.
Experience to_experience(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// The same prompts, each with the answer of the example before it (the first with the last one's):
/// what KTO's KL term is measured on, over the batch's own answers. Empty for a batch of one, which
/// has no other answer. No labels.
Experience mismatched(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// The mask is 1 where a step is judged, `classes` says what it is; count = judged tokens.
Experience to_experience(const Batch<StepExample>& batch);

}  // namespace troupe::engine::data
