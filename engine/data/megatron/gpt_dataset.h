// GptDataset: the samples that Megatron core's GPTDataset draws from an indexed dataset
// (megatron/core/datasets/gpt_dataset.py, 0.8 to 0.16). The sequences of a split, repeated for as
// many epochs as are needed and shuffled, are one stream of tokens; samples of sequence_length + 1
// tokens are cut from it, neighbours sharing a token, and shuffled.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "engine/data/megatron/indexed_dataset.h"

namespace troupe::engine::data::megatron {

/// NumpyRandom: numpy.random.RandomState(seed), whose shuffles give the order of Megatron's
/// samples.
class NumpyRandom {
 public:
  /// numpy seeds MT19937 as std::mt19937 does.
  explicit NumpyRandom(std::uint32_t seed) : generator_(seed) {}

  /// A uniform integer in [0, maximum]: random_interval() of numpy/random/src.
  std::uint64_t interval(std::uint64_t maximum);

  /// RandomState.shuffle of a one-dimensional array.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
  }

 private:
  std::mt19937 generator_;
};

/// The flags that say how samples are cut.
struct SampleOptions {
  std::int32_t sequence_length = 0;
  std::uint32_t seed = 1234;
  std::int32_t end_of_document = 0;   ///< id of the end token
  bool reset_position_ids = false;    ///< positions begin at 0 behind each end token
  bool mask_end_of_document = false;  ///< no loss where the input is the end token
};

/// One sample; all vectors have sequence_length elements.
struct PretrainingSample {
  std::vector<std::int32_t> tokens, labels;
  std::vector<std::uint8_t> loss_mask;  ///< 0 or 1
  std::vector<std::int32_t> position_ids;
};

/// Half-open.
struct SequenceRange {
  std::int64_t begin = 0, end = 0;
};

class GptDataset {
 public:
  /// Samples of the sequences in `range`: at least `samples` of them, or those of one epoch.
  /// Errc::bad_input if the range has too few tokens for a sample, or the epochs have more than
  /// 2^31 sequences.
  static Result<GptDataset> build(std::shared_ptr<const IndexedDataset> data, SequenceRange range,
                                  std::optional<std::int64_t> samples,
                                  const SampleOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(shuffle_.size()); }
  /// Sample `index` of [0, size()). Errors of IndexedDataset::append.
  Result<PretrainingSample> sample(std::int64_t index) const;

  /// Where a sample begins: an index into documents(), and a token of that sequence.
  struct Start {
    std::int64_t document = 0;
    std::int32_t offset = 0;
  };
  /// Sequences in the order of the stream.
  const std::vector<std::int32_t>& documents() const { return documents_; }
  /// size() + 1 places in the stream.
  const std::vector<Start>& starts() const { return starts_; }
  /// Order of the samples.
  const std::vector<std::int64_t>& shuffle() const { return shuffle_; }

 private:
  GptDataset(std::shared_ptr<const IndexedDataset> data, const SampleOptions& options)
      : data_(std::move(data)), options_(options) {}
  void cut_samples(std::int64_t count);
  Result<std::vector<std::int32_t>> stream_tokens(std::int64_t index) const;

  std::shared_ptr<const IndexedDataset> data_;
  SampleOptions options_;
  std::vector<std::int32_t> documents_;
  std::vector<Start> starts_;
  std::vector<std::int64_t> shuffle_;
};

/// The sample of sequence_length + 1 tokens of the stream: labels, loss mask, positions.
PretrainingSample sample_of(const std::vector<std::int32_t>& tokens, const SampleOptions& options);

}  // namespace troupe::engine::data::megatron
