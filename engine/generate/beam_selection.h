// BeamSelection: which continuations of a beam search continue, which end, and when to stop,
// without a model. Rules of transformers' beam search for one prompt (generation/utils.py,
// _beam_search), in f64; ties go to the better beam, then to the lower id. With sampling, the
// continuations that are considered are drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/sampler.h"

namespace troupe::engine::generate {

/// Score of a beam that must not be selected: all but one in the first step, and ended ones that
/// only fill the list.
inline constexpr double beam_ban = -1e9;

/// A beam extended by one token.
struct Continuation {
  std::size_t parent = 0;  ///< index of the beam
  std::int32_t token = 0;
  double score = 0;  ///< sum of log-probabilities after penalties and filters
  bool ends = false;
  double priority = 0;  ///< of a draw: the score plus Gumbel noise
};

/// Appends the `wanted` best continuations of a beam with `score`; `row`: its log-probabilities
/// after penalties and filters.
void add_best(const LogitsRow& row, std::size_t parent, double score, std::size_t wanted,
              std::vector<Continuation>& to);
/// Sorts, best first, and keeps `wanted`.
void keep_best(std::vector<Continuation>& all, std::size_t wanted);

/// The random stream of a draw; together with beam and token it determines the noise.
struct BeamDraw {
  std::uint64_t seed = 0, sample_id = 0, position = 0;  ///< position: of the new token
};
/// Appends `wanted` continuations of a beam with their priorities, as add_best() does. The `wanted`
/// continuations with the highest priorities over all beams are a sample without replacement from
/// the softmax of their scores (Kool et al. 2019, arXiv:1903.06059), in the order of the draws:
/// what torch.multinomial draws in transformers.
void add_drawn(const LogitsRow& row, std::size_t parent, double score, std::size_t wanted,
               const BeamDraw& draw, std::vector<Continuation>& to);
/// Sorts in the order of the draws, and keeps `wanted`.
void keep_drawn(std::vector<Continuation>& all, std::size_t wanted);

class BeamSelection {
 public:
  /// `max_tokens`: maximum length of an output.
  BeamSelection(const Beams& beams, std::size_t max_tokens)
      : beams_(beams), max_tokens_(max_tokens) {}

  /// Number of continuations to consider per step: enough that some continue when the best all end.
  /// `ends`: number of end tokens.
  std::size_t wanted(std::size_t ends) const;
  /// The continuations that continue, best first. An ended one is among them only when there are
  /// too few others. `best`: best first, or in the order of the draws.
  std::vector<Continuation> continuing(std::span<const Continuation> best) const;
  /// Whether the continuation at this index may be returned: it ended and is among the best
  /// num_beams.
  bool may_return(std::span<const Continuation> best, std::size_t index) const;
  /// Adds an ended sequence with complete ids; `sum`: the score of its continuation. Keeps the
  /// best.
  void end(Generation sequence, double sum);
  /// Whether another step can change the result. `length`: current length of the outputs.
  bool may_improve(std::span<const Continuation> best, std::span<const Continuation> running,
                   std::size_t length) const;
  /// Returns the best num_return_sequences, best first.
  std::vector<Generation> take_returned();

 private:
  double normalized_score(double sum, std::size_t length) const;

  Beams beams_;
  std::size_t max_tokens_;
  std::vector<Generation> ended_;  // best first, at most beams_.count
};

}  // namespace troupe::engine::generate
