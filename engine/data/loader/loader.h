// Loader: batches of the examples of a dataset in training order, resumable at the exact example.
// The examples are all in memory, or come from a stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/data/experience.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/loader/sampler.h"
#include "engine/data/loader/stream.h"

namespace troupe::engine::data {

template <class T>
struct Batch {
  std::vector<const T*> examples;  ///< owned by the loader or, in a stream, by `owners`
  std::vector<std::uint64_t> ids;  ///< Sampler::Item::id of each example
  std::vector<std::shared_ptr<const T>> owners = {};  ///< streams only
};

template <class T>
class Loader {
 public:
  /// `dataset` has at least one example.
  Loader(Dataset<T> dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(options) {
    if (dataset_.sources.empty())
      dataset_.sources.push_back({.size = dataset_.examples.size(), .weight = 1, .epochs = 0});
    sampler_.emplace(dataset_.sources, options);
    options_ = sampler_->options();
  }
  Loader(Stream<T> stream, LoaderOptions options)
      : stream_(std::make_unique<Stream<T>>(std::move(stream))), options_(options) {}

  /// The next batch; nullopt after options.epochs. Throws Failure when a stream cannot be read
  /// further, or has fewer examples than a batch with LastBatch::drop.
  std::optional<Batch<T>> next() { return next(options_.batch_size); }
  /// The same with `size` examples, at most all.
  std::optional<Batch<T>> next(std::int64_t size) {
    if (!stream_ && dataset_.sources.size() == 1)
      size = std::min(size, static_cast<std::int64_t>(sampler_->size()));
    const bool ends_with_epoch = options_.last_batch != LastBatch::join;
    const bool drops = options_.last_batch == LastBatch::drop;
    Batch<T> batch;
    bool left_out = false;
    while (std::ssize(batch.ids) < size && draw(batch)) {
      if (!ends_with_epoch || !at_epoch_end() || std::ssize(batch.ids) == size) continue;
      if (!drops) break;
      if (left_out) throw too_few(std::ssize(batch.ids), size);
      left_out = true;
      batch = {};
    }
    if (batch.ids.empty() || (drops && std::ssize(batch.ids) < size)) return std::nullopt;
    return batch;
  }
  /// Rows of a whole batch.
  std::int64_t batch_size() const { return options_.batch_size; }
  /// The position for a checkpoint: after restore() next() returns the batch after the last one
  /// returned before.
  Json state() const {
    return stream_ ? stream_->state() : sampler_state(*sampler_, dataset_.files);
  }
  Result<> restore(const Json& state) {
    return stream_ ? stream_->restore(state) : restore_sampler(*sampler_, dataset_.files, state);
  }

  /// Number of batches of a whole run; 0: no limit, or a stream, whose length is not known.
  std::int64_t batches() const { return stream_ ? 0 : sampler_->batches(); }
  /// Passes over the data so far; nullopt for a stream, whose length is not known.
  std::optional<double> epoch() const {
    return stream_ ? std::nullopt : std::optional(sampler_->epoch());
  }
  bool streams() const { return stream_ != nullptr; }
  /// All examples; empty for a stream.
  const Dataset<T>& dataset() const { return dataset_; }

 private:
  /// Adds the next example to a batch; false after options.epochs.
  bool draw(Batch<T>& batch) {
    if (stream_) {
      auto item = value_or_throw(stream_->next());
      if (!item) return false;
      batch.examples.push_back(item->example.get());
      batch.ids.push_back(item->id);
      batch.owners.push_back(std::move(item->example));
      return true;
    }
    const auto item = sampler_->next();
    if (!item) return false;
    batch.examples.push_back(&dataset_.examples[item->index]);
    batch.ids.push_back(item->id);
    return true;
  }
  static Failure too_few(std::int64_t examples, std::int64_t size) {
    return Failure(
        {Errc::usage, cat("data.last_batch: drop: an epoch has ", examples,
                          " examples, fewer than a batch of ", size, "; lower train.batch_size")});
  }
  bool at_epoch_end() {
    return stream_ ? value_or_throw(stream_->at_pass_end()) : sampler_->at_epoch_end();
  }

  Dataset<T> dataset_;
  std::optional<Sampler> sampler_;
  std::unique_ptr<Stream<T>> stream_;
  LoaderOptions options_;
};

/// A loader of the data that the options name; a stream if loader.stream_rows > 0. `encoder`
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

/// Sequences with their weights and ids; count = sum of the weights (trained tokens if the weights
/// are 0 and 1).
Experience to_experience(const Batch<SftExample>& batch);
/// Chosen 2k, rejected 2k+1, unit 2, count = pairs.
Experience to_experience(const Batch<PairExample>& batch);
/// Batch for a reward model: as above, but the mask is 1 only at the last token of each sequence,
/// whose score is the score of the sequence. `label` holds the margins at the sequences 2k if any
/// pair of the batch has one.
Experience to_scored_pairs(const Batch<PairExample>& batch);
/// One sequence per example, truncated to `max_length` tokens (0: no limit); label 1 desirable, 0
/// undesirable; count = sequences.
Experience to_experience(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// Each prompt with the answer of the previous example (the first with that of the last), on which
/// KTO estimates its KL term. Empty for a batch of one. No labels.
Experience mismatched(const Batch<UnpairedExample>& batch, std::int64_t max_length);
/// The mask is 1 at tokens with a step label; `classes` holds the labels; count = labelled tokens.
Experience to_experience(const Batch<StepExample>& batch);

}  // namespace troupe::engine::data
