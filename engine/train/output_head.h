// OutputHead: forward and backward pass of a model's heads over the hidden states that a loss
// reads.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/experience.h"
#include "engine/loss/loss.h"
#include "engine/models/decoder.h"
#include "engine/nn/context_part.h"

namespace troupe::engine::train {

/// Outputs of the heads, [T] each: 0 at tokens that are not read, empty where not requested.
/// `scores` has one column per label or candidate.
struct HeadOutputs {
  std::vector<float> logp, entropy, whole_entropy, collision;
  std::vector<std::vector<float>> scores;

  loss::Outputs outputs() const { return {logp, entropy, collision, scores, whole_entropy}; }
  /// The columns that `needs` requests, in a fixed order; creates those of scores.
  std::vector<std::vector<float>*> columns(const loss::Needs& needs,
                                           const models::DecoderSpec& spec);
  /// Appends the columns of the batch's next tokens.
  void append(HeadOutputs next, const loss::Needs& needs, const models::DecoderSpec& spec);
};

/// Errc::usage where the model lacks what the loss needs: the right head, a candidate token.
Result<> check_needs(const models::DecoderSpec& spec, const loss::Needs& needs);

struct OutputHeadOptions {
  ops::Precision precision = ops::Precision::f32;
  bool every_token = false;  ///< false: only tokens that the mask selects
  bool backward = false;     ///< backward() follows
  /// Where a context-parallel group divides the rows: hidden states have own distinct rows.
  const nn::ContextPart* context = nullptr;
};

/// The heads on one micro-batch. Log-probabilities are read at the row before their token, scores
/// at needs.scores_at; the first token of a sequence has no row before it. The arguments must
/// outlive this. Under tensor and context parallelism every method is collective. With a context,
/// each rank runs the heads on the rows that it has; all ranks get the outputs of all tokens.
class OutputHead {
 public:
  OutputHead(const models::Decoder& model, const data::Experience& batch, const loss::Needs& needs,
             OutputHeadOptions options);

  /// True where no row is read: no forward pass of the decoder is needed.
  bool empty() const { return !reads_; }
  /// hidden [T, D], the decoder's output; saves what backward needs. `known`: gradients that are
  /// known before the forward pass; the language head then runs forward and backward at once.
  HeadOutputs forward(const Tensor& hidden, const loss::ValueAndGrads* known = nullptr);
  /// Gradients of the loss by the outputs -> dhidden [T, D]; adds into the gradients of the heads.
  /// Call it after forward().
  Tensor backward(const loss::ValueAndGrads& grads) const;

 private:
  /// Rows of the hidden states: one per token, or one per token and candidate.
  struct GatheredRows {
    std::vector<std::int32_t> tokens, rows, targets;
    IdSets masks;            ///< of the targets, or empty (nn::HeadTargets)
    Tensor hidden;           ///< [M, D]
    nn::TokenScores scores;  ///< [M], of the language head
    Tensor dhidden;          ///< [M, D] where the gradients were known
  };
  GatheredRows rows_read_at(loss::ReadAt at, std::size_t copies);
  /// Fills in the outputs of tokens whose rows other ranks have.
  void share_outputs(HeadOutputs& out) const;
  nn::HeadTargets targets_of(const GatheredRows& rows) const;
  void gather(const Tensor& hidden, GatheredRows& rows) const;
  /// Scatters column `first` of values [tokens, stride] to the tokens of the batch.
  std::vector<float> column(const GatheredRows& rows, const std::vector<float>& values,
                            std::size_t first, std::size_t stride) const;
  void forward_logprobs(const Tensor& hidden, HeadOutputs& out, const loss::ValueAndGrads* known);
  void forward_scores(const Tensor& hidden, HeadOutputs& out);
  /// Gradients at the tokens that were read; dentropy is absent where the loss has none.
  struct Upstream {
    Tensor dlogp, dentropy;
  };
  Upstream upstream(const loss::ValueAndGrads& grads) const;
  Tensor logprobs_backward(const loss::ValueAndGrads& grads) const;
  Tensor scores_backward(const loss::ValueAndGrads& grads) const;

  const models::Decoder& model_;
  const data::Experience& batch_;
  const loss::Needs& needs_;
  OutputHeadOptions options_;
  float inv_temperature_;
  bool reads_ = false;         ///< whether any rank reads a row
  GatheredRows logprob_rows_;  ///< one row per token
  GatheredRows score_rows_;    ///< one row per token, or one per token and candidate
};

}  // namespace troupe::engine::train
