// Experience: the one batch type of every algorithm. N sequences packed end to end into T tokens,
// one column per quantity; no padding.
//
// Columns are indexed by the token they speak of: logp[t] is log p(tokens[t] | the tokens before it
// in its sequence), mask[t] says whether token t is trained on. The first token of a sequence has
// no such probability: its mask is 0 and its logp counts as 0. Preference data: sequence 2k is
// chosen, 2k+1 rejected. Samples of one prompt stand next to each other.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::engine::data {

struct Experience {
  std::vector<std::int32_t> offsets{0};  ///< [N+1]
  std::vector<std::int32_t> tokens;      ///< [T]
  std::vector<float> mask;               ///< [T] weight of the token in the loss, usually 0 or 1

  // Columns of [T]; empty until somebody fills them.
  std::vector<float>
      answer;  ///< weight of the token among its answer's, where the mask names prompts too (ORPO)
  std::vector<float> old_logp;      ///< under the weights that the update started from (those that
                                    ///< sampled, where nothing came between)
  std::vector<float> rollout_logp;  ///< under the weights that sampled, where they are others than
                                    ///< those of old_logp
  std::vector<float> reference_logp;  ///< under the reference model
  std::vector<float> advantage;
  std::vector<float> value;           ///< a critic's estimate of the return, from before the token
  std::vector<float> returns;         ///< what the critic is trained towards
  std::vector<std::int32_t> classes;  ///< index of the right class where a token is judged (process
                                      ///< rewards); -1 elsewhere

  // Columns of [N].
  std::vector<float> reward;
  std::vector<float> label;  ///< what the data says: KTO's 1 (desirable) or 0; the margin of a
                             ///< pair, at its sequence 2k
  std::vector<std::uint64_t> sample_id;  ///< stable across restarts
  std::vector<std::uint64_t> version;    ///< oldest weights that made a token of the sequence
  std::vector<std::uint64_t>
      number;  ///< of the sequence in the whole batch: names the draws of dropout in any part of it

  int unit = 1;      ///< sequences that must stay in one micro-batch: 1, 2 for pairs
  double count = 0;  ///< what the loss averages over (tokens, sequences or pairs), counted on the
                     ///< *global* batch: a constant for any split
  double scale =
      1;  ///< a further constant of the loss, where an algorithm needs one (dr_grpo's length)

  std::int32_t sequences() const { return static_cast<std::int32_t>(offsets.size()) - 1; }
  std::int32_t token_count() const { return offsets.back(); }

  /// Appends one sequence; `weights` as long as `ids`.
  void append(const std::vector<std::int32_t>& ids, const std::vector<float>& weights);
  /// Sequences [begin, end) with all their columns; `count` and `scale` stay those of the whole.
  Experience slice(std::int32_t begin, std::int32_t end) const;
  /// Sequences in the given order (units are the caller's concern).
  Experience select(const std::vector<std::int32_t>& order) const;
  /// Throws Bug unless offsets rise, columns have their lengths, and every token is in [0,
  /// vocabulary).
  void validate(std::int64_t vocabulary) const;
};
/// For the wire: every column and constant.
inline auto fields(Experience& e) {
  return std::tie(e.offsets, e.tokens, e.mask, e.answer, e.old_logp, e.rollout_logp,
                  e.reference_logp, e.advantage, e.value, e.returns, e.classes, e.reward, e.label,
                  e.sample_id, e.version, e.number, e.unit, e.count, e.scale);
}

/// Splits a batch into consecutive ranges of whole units with at most `token_budget` tokens each (a
/// longer unit stands alone). Returns boundaries in sequences: {0, ..., N}.
std::vector<std::int32_t> micro_batches(const Experience& batch, std::int32_t token_budget);

}  // namespace troupe::engine::data
