// Scores of the tokens of a prompt from the hidden states of the pass that computes its keys.
#pragma once

#include <cstdint>

#include "engine/generate/generator.h"
#include "engine/models/decoder.h"

namespace troupe::engine::generate {

class PromptScorer {
 public:
  /// `decoder` must outlive this. `packed`: logits are products with the packed weights.
  PromptScorer(models::Decoder& decoder, ops::Precision precision, bool packed)
      : decoder_(decoder), precision_(precision), packed_(packed) {}

  /// Tokens first .. first + count of a prompt, of which the rows of a pass from number `row` have
  /// the states.
  struct Part {
    std::int32_t first = 0, count = 0;
    std::int64_t row = 0;
  };
  /// Scores those tokens of the prompt that follow the part's. `hidden` [T, D]: the states of the
  /// pass, absent where another pipeline stage has them. The log-probabilities have the bits of
  /// train::logprobs(). Throws Failure (Errc::bad_input) when a logit is not finite. Collective
  /// over the decoder's tensor-parallel group and stages.
  void score(const Request& request, const Part& part, const Tensor& hidden,
             PromptScores& out) const;

 private:
  void score_block(const Request& request, std::size_t first, const Tensor& hidden,
                   PromptScores& out) const;

  models::Decoder& decoder_;
  ops::Precision precision_;
  bool packed_;
};

}  // namespace troupe::engine::generate
