// Readout: which hidden states of a batch a loss looks at, what the model's heads say there, and
// the way back to the hidden states.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/loss.h"
#include "engine/models/decoder.h"

namespace troupe::engine::train {

/// What was read, [T] each: 0 where nothing was, empty where it was not asked for. `scores` has one
/// column a label or candidate.
struct Readings {
  std::vector<float> logp, entropy, collision;
  std::vector<std::vector<float>> scores;

  loss::Outputs outputs() const { return {logp, entropy, collision, scores}; }
  /// The columns that `needs` asks for, in a fixed order; those of scores are made where there are
  /// none.
  std::vector<std::vector<float>*> columns(const loss::Needs& needs,
                                           const models::DecoderSpec& spec);
};

/// Errc::usage where this model cannot say what the loss needs: a score head is not a language
/// head, a candidate is no token.
Result<> check_readable(const models::DecoderSpec& spec, const loss::Needs& needs);

struct ReadoutOptions {
  ops::Precision precision = ops::Precision::f32;
  bool every_token = false;  ///< not only the tokens that the mask names
  bool backward = false;     ///< backward() follows
};

/// One micro-batch. Log-probabilities are read before their token, scores where needs.scores_at
/// says; a sequence's first token has nothing before it. The arguments must outlive this. Under
/// tensor parallelism every method is collective.
class Readout {
 public:
  Readout(const models::Decoder& model, const data::Experience& batch, const loss::Needs& needs,
          ReadoutOptions options);

  /// Nothing is read: no forward pass is needed.
  bool empty() const { return words_.rows.empty() && scores_.rows.empty(); }
  /// hidden [T, D], as the decoder gave it; keeps what backward needs.
  /// `known`: derivatives that are known already; the language head is then gone through once,
  /// forward and back, for backward().
  Readings read(const Tensor& hidden, const loss::Evaluation* known = nullptr);
  /// The derivatives of a loss by what was read -> dhidden [T, D]; adds into the gradients of the
  /// heads. After read().
  Tensor backward(const loss::Evaluation& slopes) const;

 private:
  /// Some rows of the hidden states: one for each of `tokens`, or one for each candidate of each.
  struct Picked {
    std::vector<std::int32_t> tokens, rows, targets;
    Tensor hidden;           ///< [M, D]
    nn::TokenScores scores;  ///< [M], of the language head
    Tensor dhidden;          ///< [M, D] where the derivatives were known
  };
  Picked pick(loss::ReadAt at, std::size_t copies) const;
  void gather(const Tensor& hidden, Picked& picked) const;
  /// Column `first` of values [tokens, stride], as a column of the batch.
  std::vector<float> column(const Picked& picked, const std::vector<float>& values,
                            std::size_t first, std::size_t stride) const;
  void read_words(const Tensor& hidden, Readings& out, const loss::Evaluation* known);
  void read_scores(const Tensor& hidden, Readings& out);
  /// The derivatives at the tokens that were read; of entropies absent where the loss knows none.
  struct Upstream {
    Tensor dlogp, dentropy;
  };
  Upstream upstream(const loss::Evaluation& slopes) const;
  Tensor words_backward(const loss::Evaluation& slopes) const;
  Tensor scores_backward(const loss::Evaluation& slopes) const;

  const models::Decoder& model_;
  const data::Experience& batch_;
  const loss::Needs& needs_;
  ReadoutOptions options_;
  float inv_temperature_;
  Picked words_;   ///< one row a token whose log-probability or distribution is wanted
  Picked scores_;  ///< one row a judged token, or one a candidate of it
};

}  // namespace troupe::engine::train
