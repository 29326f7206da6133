// BeamSelection: which continuations of a beam search go on, which end, and when to stop. Pure
// bookkeeping: it knows no model. Rules of transformers' beam search for one prompt
// (generation/utils.py, _beam_search), in f64; ties to the better beam, then the lower id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/sampler.h"

namespace troupe::engine::generate {

/// What a beam that must not win weighs: all but one at the start, and those that ended but are
/// needed to fill the row.
inline constexpr double beam_ban = -1e9;

/// A beam and one token more.
struct Continuation {
  std::size_t parent = 0;  ///< place of the beam
  std::int32_t token = 0;
  double score = 0;  ///< sum of penalised log-probabilities
  bool ends = false;
};

/// Appends the `wanted` best continuations of a beam that has `score` so far; `row` is penalised
/// log-probabilities.
void add_best(const Row& row, std::size_t parent, double score, std::size_t wanted,
              std::vector<Continuation>& to);
/// Sorts them, best first, and keeps `wanted`.
void keep_best(std::vector<Continuation>& all, std::size_t wanted);

class BeamSelection {
 public:
  /// `room`: tokens that an output may have.
  BeamSelection(const Beams& beams, std::size_t room) : beams_(beams), room_(room) {}

  /// Continuations to look at in a step: enough that some go on when the best all end. `ends`: how
  /// many tokens end an output.
  std::size_t wanted(std::size_t ends) const;
  /// Of continuations, best first, those that go on, best first. One that ended is among them only
  /// when there are too few others.
  std::vector<Continuation> going_on(std::span<const Continuation> best) const;
  /// Whether the continuation at this place may be returned: it ended, and is among the best as
  /// many as there are beams.
  bool may_return(std::span<const Continuation> best, std::size_t place) const;
  /// Takes an ended sequence, whose ids are complete; `sum` is its continuation's score. The best
  /// ones stay.
  void end(Generation sequence, double sum);
  /// Whether another step may change the answer. `length`: tokens of the outputs now.
  bool undecided(std::span<const Continuation> best, std::span<const Continuation> running,
                 std::size_t length) const;
  /// The best num_return_sequences, best first.
  std::vector<Generation> take_returned();

 private:
  double normalised(double sum, std::size_t length) const;

  Beams beams_;
  std::size_t room_;
  std::vector<Generation> ended_;  // best first, at most beams_.count
};

}  // namespace troupe::engine::generate
