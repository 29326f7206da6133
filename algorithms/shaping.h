// Shaping: what becomes of a sample's reward before samples are compared. Pure functions, in
// float64.
#pragma once

#include "algorithms/token_rewards.h"

namespace troupe::algorithms {

struct Shaping {
  /// Soft overlong punishment (DAPO, arXiv:2503.14476 sec. 3.4): an answer that is longer than
  /// allowed - buffer loses (its length - (allowed - buffer)) / buffer * factor; capped: at most
  /// `factor` (OpenRLHF, MindSpeed), else as far as it goes (verl, AReaL).
  double overlong_buffer = 0;  ///< tokens; 0: none
  double overlong_factor = 1;
  bool overlong_capped = true;
  /// Stop properly (ProRL, as OpenRLHF has it): the reward of an answer that was cut is multiplied
  /// by it; a negative one replaces the reward.
  double truncated_scale = 1;
  ScoreShape score;  ///< then scaled, clipped, and what a missing end costs
};

/// 0 or less. Lengths in tokens.
double overlong_penalty(double length, double allowed, const Shaping& shaping);
/// Of an answer of `length` tokens that was cut (`truncated`) or ended by itself. Not-a-number
/// stays.
double shaped_reward(double reward, double length, double allowed, bool truncated,
                     const Shaping& shaping);

}  // namespace troupe::algorithms
