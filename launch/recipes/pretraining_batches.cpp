#include "launch/recipes/pretraining_batches.h"

#include <numeric>
#include <utility>

#include "launch/recipes/model_spec.h"

namespace troupe::launch::recipes {
namespace {

namespace data = engine::data;
namespace megatron = engine::data::megatron;

void count_tokens(data::Experience& batch) {
  batch.count = std::accumulate(batch.mask.begin(), batch.mask.end(), 0.0);
}

class TokenBatches final : public algorithms::PretrainingBatches {
 public:
  TokenBatches(megatron::PretrainingSplit split, std::int64_t consumed, std::int64_t vocabulary,
               algorithms::LossAverage average)
      : split_(std::move(split)), consumed_(consumed), vocabulary_(vocabulary), average_(average) {}

  std::optional<data::Experience> next(std::int64_t size) override {
    data::Experience batch;
    for (std::int64_t i = 0; i < size && consumed_ < split_.size(); ++i, ++consumed_)
      append_sample(value_or_throw(split_.sample(consumed_)), static_cast<std::uint64_t>(consumed_),
                    batch);
    for (const auto token : batch.tokens)
      if (token < 0 || token >= vocabulary_)
        throw Failure({Errc::bad_input,
                       cat("token ", token, " of a token file: expected one below ", vocabulary_,
                           ", the vocabulary of the model; preprocess the text with the model's "
                           "tokenizer")});
    if (batch.sequences() == 0) return std::nullopt;
    count_tokens(batch);
    average_.apply(batch, true);
    return batch;
  }
  Json state() const override {
    return Json::Object{{"consumed_samples", consumed_}, {"samples", split_.size()}};
  }
  std::optional<double> epoch() const override { return std::nullopt; }

 private:
  megatron::PretrainingSplit split_;
  std::int64_t consumed_, vocabulary_;
  algorithms::LossAverage average_;
};

class RowBatches final : public algorithms::PretrainingBatches {
 public:
  RowBatches(data::Loader<data::SftExample> rows, algorithms::LossAverage average)
      : rows_(std::move(rows)), average_(average) {}

  std::optional<data::Experience> next(std::int64_t size) override {
    const auto batch = rows_.next(size);
    if (!batch) return std::nullopt;
    data::Experience out = data::to_experience(*batch);
    average_.apply(out);
    return out;
  }
  Json state() const override { return rows_.state(); }
  std::optional<double> epoch() const override { return rows_.epoch(); }

 private:
  data::Loader<data::SftExample> rows_;
  algorithms::LossAverage average_;
};

}  // namespace

Result<megatron::PretrainingOptions> token_file_options(const config::RunConfig& config,
                                                        std::int64_t sequence_length) {
  megatron::PretrainingOptions out;
  for (const std::string& path : config.data.paths) out.parts.push_back({path, 0});
  for (const engine::data::DataSource& source : config.data.mix)
    for (const std::string& path : source.paths)
      out.parts.push_back({path, source.weight / static_cast<double>(source.paths.size())});
  out.has_weights = !config.data.mix.empty();
  out.split = config.pretrain.split;
  const auto spec = spec_of(config, config.model);
  RETURN_IF_ERROR(spec);
  out.sample.sequence_length = static_cast<std::int32_t>(sequence_length);
  out.sample.seed = static_cast<std::uint32_t>(config.train.seed);
  if (!spec->eos_ids.empty()) out.sample.end_of_document = spec->eos_ids.front();
  out.sample.reset_position_ids = config.pretrain.reset_documents;
  out.sample.mask_end_of_document = config.pretrain.mask_end_of_document;
  return out;
}

void append_sample(const megatron::PretrainingSample& sample, std::uint64_t id,
                   data::Experience& out) {
  const std::size_t length = sample.tokens.size();
  for (std::size_t begin = 0, end = 0; begin < length; begin = end) {
    for (end = begin + 1; end < length && sample.position_ids[end] != 0;) ++end;
    std::vector<std::int32_t> ids(sample.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                  sample.tokens.begin() + static_cast<std::ptrdiff_t>(end));
    ids.push_back(sample.labels[end - 1]);
    std::vector<float> weights{0};
    for (std::size_t i = begin; i < end; ++i) weights.push_back(sample.loss_mask[i]);
    out.append(ids, weights);
    out.sample_id.push_back(id);
  }
}

std::unique_ptr<algorithms::PretrainingBatches> token_batches(megatron::PretrainingSplit split,
                                                              std::int64_t consumed,
                                                              std::int64_t vocabulary,
                                                              algorithms::LossAverage average) {
  return std::make_unique<TokenBatches>(std::move(split), consumed, vocabulary, average);
}

std::unique_ptr<algorithms::PretrainingBatches> row_batches(data::Loader<data::SftExample> rows,
                                                            algorithms::LossAverage average) {
  return std::make_unique<RowBatches>(std::move(rows), average);
}

}  // namespace troupe::launch::recipes
