// BatchSampler: the next token of each sequence whose last row was computed, with its
// log-probabilities, from the hidden states of one forward pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/logits_processors.h"

namespace troupe::engine::generate {

/// A sequence whose next token is to be sampled. `request` and the spans must outlive the call.
struct RowToSample {
  std::uint64_t sequence = 0;
  const Request* request = nullptr;
  std::span<const std::int32_t> tokens;      ///< prompt and output so far
  std::span<const std::int32_t> end_tokens;  ///< end and stop tokens
  std::int32_t limit = 0;                    ///< maximum tokens of prompt and output
  std::int32_t row = 0;                      ///< of the hidden states: its last token
  float inverse_temperature = 1;
  std::shared_ptr<const constraints::TokenMask> allowed;  ///< nullptr: all tokens
  bool drafted = false;  ///< `tokens` ends with draft tokens, which may turn out to be wrong

  ProcessorContext context() const {
    return {request->params,
            tokens,
            request->prompt.size(),
            end_tokens,
            static_cast<std::size_t>(limit),
            allowed.get()};
  }
};

struct SampledToken {
  static constexpr std::int32_t no_token = ops::no_target;
  std::uint64_t sequence = 0;
  std::size_t position = 0;  ///< tokens before it
  std::int32_t id = 0;       ///< no_token: none can be sampled
  float logp = 0;            ///< at temperature 1
  float sampling_logp = 0;   ///< at the request's temperature, over the tokens of `mask`
  std::string mask;          ///< the tokens it was sampled from, with params.report_masks
  std::vector<Alternative> top;
};

class BatchSampler {
 public:
  /// `decoder` must outlive this. `packed`: logits are products with the packed weights.
  BatchSampler(models::Decoder& decoder, ops::Precision precision, bool packed)
      : decoder_(decoder), precision_(precision), packed_(packed) {}

  /// One token per row, in no particular order, but none for a drafted row whose logits leave none.
  /// hidden [T, D], absent where another pipeline stage has it. Throws Failure when a logit of
  /// another row is not finite. Collective over the decoder's tensor-parallel group and stages.
  std::vector<SampledToken> sample(std::vector<RowToSample> rows, const Tensor& hidden) const;

 private:
  /// sample() where the hidden states are.
  std::vector<SampledToken> sample_rows(std::vector<RowToSample> rows, const Tensor& hidden) const;
  /// [M, V/tp].
  Tensor logits(std::span<const RowToSample> rows, const Tensor& hidden) const;
  void sample_block(std::span<const RowToSample> rows, const Tensor& hidden,
                    std::vector<SampledToken>& out) const;
  void set_sampling_logprobs(std::span<const RowToSample> rows, const Tensor& logits,
                             std::span<SampledToken> tokens) const;

  models::Decoder& decoder_;
  ops::Precision precision_;
  bool packed_;
};

}  // namespace troupe::engine::generate
