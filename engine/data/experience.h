// Experience: the one batch type of every algorithm. N sequences packed end to end into T tokens,
// one column per quantity; no padding.
//
// Columns are indexed by token: logp[t] is log p(tokens[t] | the previous tokens of its sequence),
// and mask[t] is the weight of token t in the loss. The first token of a sequence has no
// log-probability: its mask and logp are 0. Preference data: sequence 2k is chosen, 2k+1 rejected.
// Samples of one prompt are adjacent.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/sets/id_sets.h"

namespace troupe::engine::data {

struct Experience {
  std::vector<std::int32_t> offsets{0};  ///< [N+1]
  std::vector<std::int32_t> tokens;      ///< [T]
  std::vector<float> mask;               ///< [T] weight of the token in the loss, usually 0 or 1

  // Columns of [T]; empty until they are computed.
  /// Mask of the completion's tokens if `mask` covers prompts (ORPO).
  std::vector<float> answer;
  /// Under the weights from which the update started.
  std::vector<float> old_logp;
  /// Under the weights that sampled the token, if they differ from those of old_logp.
  std::vector<float> rollout_logp;
  std::vector<float> reference_logp;  ///< under the reference model
  std::vector<float> advantage;
  std::vector<float> value;    ///< the critic's estimate of the return before the token
  std::vector<float> returns;  ///< training targets of the critic
  /// Class of the step that ends here (process rewards), else -1.
  std::vector<std::int32_t> classes;
  /// Version of the weights that sampled the token (batches they were trained on); -1 in prompts.
  std::vector<std::int32_t> token_version;
  /// The tokens that the token was sampled from: its log-probabilities and entropies are those of
  /// the softmax over them.
  IdSets sampling_mask;

  // Columns of [N].
  std::vector<float> reward;
  /// KTO: 1 (desirable) or 0. Pairs: the margin, at sequence 2k.
  std::vector<float> label;
  std::vector<std::uint64_t> sample_id;  ///< stable across restarts
  std::vector<std::uint64_t> version;    ///< updates of the oldest weights that sampled a token
  std::vector<std::uint64_t> number;     ///< index in the whole batch: random stream of dropout

  int sequences_per_group = 1;  ///< sequences that stay in one micro-batch; 2 for pairs
  /// Denominator of the loss (tokens, sequences or pairs) of the *global* batch: the same for any
  /// split into micro-batches or ranks.
  double count = 0;
  double scale = 1;  ///< an additional constant factor of the loss (dr_grpo's length)

  std::int32_t sequences() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
  std::int32_t token_count() const { return offsets.back(); }

  /// Appends one sequence; `weights` as long as `ids`.
  void append(const std::vector<std::int32_t>& ids, const std::vector<float>& weights);
  /// Appends all sequences of `other`, whose columns must be those of this batch; an empty batch
  /// takes any. `unit`, `count` and `scale` stay.
  void append(const Experience& other);
  /// Sequences [begin, end) with all their columns; `count` and `scale` are those of the whole
  /// batch.
  Experience slice(std::int32_t begin, std::int32_t end) const;
  /// Sequences in the given order; the caller keeps units together.
  Experience select(const std::vector<std::int32_t>& order) const;
  /// Throws Bug unless offsets rise, columns have their lengths, and every token is in [0,
  /// vocabulary).
  void validate(std::int64_t vocabulary) const;
};
/// All columns and constants, for serialization.
inline auto fields(Experience& e) {
  return std::tie(e.offsets, e.tokens, e.mask, e.answer, e.old_logp, e.rollout_logp,
                  e.reference_logp, e.advantage, e.value, e.returns, e.classes, e.token_version,
                  e.sampling_mask, e.reward, e.label, e.sample_id, e.version, e.number,
                  e.sequences_per_group, e.count, e.scale);
}

/// Splits a batch into consecutive ranges of whole units with at most `token_budget` tokens each (a
/// longer group is a range of its own). Returns boundaries in sequences: {0, ..., N}.
std::vector<std::int32_t> micro_batches(const Experience& batch, std::int32_t token_budget);

}  // namespace troupe::engine::data
