#include "engine/data/megatron/gpt_dataset.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <span>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data::megatron {
namespace {

constexpr std::int64_t max_stream_documents = std::numeric_limits<std::int32_t>::max();

/// Epochs of the stream, and how many of its samples are shuffled among themselves.
struct Epochs {
  std::int64_t count = 1;
  /// The last epoch is shuffled by itself, because less than 80 % of its samples are used.
  bool separate_last = false;
  std::int64_t samples = 0;         ///< all
  std::int64_t samples_before = 0;  ///< of all epochs but the last
};

Epochs epochs_of(std::int64_t tokens, std::optional<std::int64_t> samples, std::int64_t length) {
  Epochs out;
  // The fewest with samples * length + 1 tokens.
  if (samples) out.count = std::max<std::int64_t>(1, (*samples * length + tokens) / tokens);
  out.samples = (out.count * tokens - 1) / length;
  out.samples_before = ((out.count - 1) * tokens - 1) / length;
  if (out.count == 1) return out;
  const std::int64_t of_last = *samples - out.samples_before;
  const auto of_each = static_cast<double>((tokens - 1) / length);
  out.separate_last = of_last < static_cast<std::int64_t>(0.80 * of_each);
  return out;
}

// Repeats the range `epochs` times and shuffles it.
void add_documents(SequenceRange range, std::int64_t epochs, NumpyRandom& random,
                   std::vector<std::int32_t>& to) {
  const std::size_t begin = to.size();
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (std::int64_t i = range.begin; i < range.end; ++i)
      to.push_back(static_cast<std::int32_t>(i));
  random.shuffle(std::span(to).subspan(begin));
}

}  // namespace

// Draws the bits that `maximum` has until they are no more than it.
std::uint64_t NumpyRandom::interval(std::uint64_t maximum) {
  if (maximum == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(maximum);
  std::uint64_t value = 0;
  do {
    value = generator_();
    if (maximum > 0xffffffffu) value = (value << 32) | generator_();
    value &= mask;
  } while (value > maximum);
  return value;
}

Result<GptDataset> GptDataset::build(std::shared_ptr<const IndexedDataset> data,
                                     SequenceRange range, std::optional<std::int64_t> samples,
                                     const SampleOptions& options) {
  check(options.sequence_length > 0 && range.begin >= 0 && range.end <= data->sequences() &&
            (!samples || *samples >= 0),
        "a sequence length and a range of the dataset");
  std::int64_t tokens = 0;
  for (std::int64_t i = range.begin; i < range.end; ++i) tokens += data->length(i);
  const std::int64_t length = options.sequence_length;
  const auto problem = [&](std::string_view what) {
    return fail(Errc::bad_input, cat(data->prefix(), ": sequences ", range.begin, " to ", range.end,
                                     " have ", tokens, " tokens: ", what));
  };
  if (tokens <= length && (!samples || tokens < 2))
    return problem(cat("no sample of ", length,
                       " + 1 tokens; use more documents, another split or "
                       "a smaller sequence length"));
  if (samples && *samples > (std::numeric_limits<std::int64_t>::max() - tokens - 1) / length)
    return problem(cat(*samples, " samples of ", length, " tokens are too many"));
  const Epochs epochs = epochs_of(tokens, samples, length);
  if (range.end > max_stream_documents ||
      epochs.count > max_stream_documents / std::max<std::int64_t>(1, range.end - range.begin))
    return problem(cat(epochs.count, " epochs are more than 2^31 documents"));

  GptDataset out(std::move(data), options);
  NumpyRandom random(options.seed);
  add_documents(range, epochs.count - epochs.separate_last, random, out.documents_);
  if (epochs.separate_last) add_documents(range, 1, random, out.documents_);
  out.cut_samples(epochs.samples);
  out.shuffle_.resize(static_cast<std::size_t>(epochs.samples));
  std::iota(out.shuffle_.begin(), out.shuffle_.end(), 0);
  const std::span order(out.shuffle_);
  const auto first =
      epochs.separate_last ? static_cast<std::size_t>(epochs.samples_before) : order.size();
  random.shuffle(order.first(first));
  random.shuffle(order.subspan(first));
  return out;
}

void GptDataset::cut_samples(std::int64_t count) {
  starts_.reserve(static_cast<std::size_t>(count) + 1);
  Start at;
  starts_.push_back(at);
  const auto length_at = [&] {
    return data_->length(documents_[static_cast<std::size_t>(at.document)]);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    // A sample begins at the last token of the one before: only sequence_length tokens are passed,
    // and the place stays in the sequence that has that token.
    std::int32_t left = options_.sequence_length;
    for (; length_at() - at.offset <= left; at = {at.document + 1, 0})
      left -= length_at() - at.offset;
    at.offset += left;
    starts_.push_back(at);
  }
}

Result<std::vector<std::int32_t>> GptDataset::stream_tokens(std::int64_t index) const {
  check(index >= 0 && index < size(), "a sample of the dataset");
  const auto sample = static_cast<std::size_t>(shuffle_[static_cast<std::size_t>(index)]);
  const Start begin = starts_[sample], end = starts_[sample + 1];
  std::vector<std::int32_t> out;
  out.reserve(static_cast<std::size_t>(options_.sequence_length) + 1);
  for (std::int64_t i = begin.document; i <= end.document; ++i) {
    const std::int32_t sequence = documents_[static_cast<std::size_t>(i)];
    const std::int32_t from = i == begin.document ? begin.offset : 0;
    const std::int32_t to = i == end.document ? end.offset + 1 : data_->length(sequence);
    RETURN_IF_ERROR(data_->append(sequence, from, to - from, out));
  }
  return out;
}

Result<PretrainingSample> GptDataset::sample(std::int64_t index) const {
  const auto tokens = stream_tokens(index);
  RETURN_IF_ERROR(tokens);
  return sample_of(*tokens, options_);
}

PretrainingSample sample_of(const std::vector<std::int32_t>& tokens, const SampleOptions& options) {
  check(!tokens.empty(), "a sample of tokens");
  PretrainingSample out;
  out.tokens.assign(tokens.begin(), tokens.end() - 1);
  out.labels.assign(tokens.begin() + 1, tokens.end());
  std::int32_t position = 0;
  for (const std::int32_t token : out.tokens) {
    const bool ends = token == options.end_of_document;
    out.loss_mask.push_back(!(ends && options.mask_end_of_document));
    out.position_ids.push_back(position);
    position = ends && options.reset_position_ids ? 0 : position + 1;
  }
  return out;
}

}  // namespace troupe::engine::data::megatron
