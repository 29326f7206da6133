// Every loss of a model with a score head, or of candidates instead of it, for the tables of the
// catalog tests.
#pragma once

#include <vector>

#include "algorithms/losses/orm_loss.h"
#include "algorithms/losses/prm_loss.h"
#include "algorithms/losses/value_loss.h"

namespace troupe::test {

inline std::vector<engine::loss::AnyLoss> orm_family() {
  using algorithms::OrmLoss;
  return {OrmLoss{}, OrmLoss{.center = 0.1},
          OrmLoss{.kind = algorithms::OrmLossKind::log_exp, .center = 0.01}};
}

inline std::vector<engine::loss::AnyLoss> value_family() {
  using algorithms::ValueLoss;
  return {ValueLoss{}, ValueLoss{.clip = 0, .coef = 0.1}, ValueLoss{.clip = 0.5, .huber = 0.3}};
}

/// Process losses by a score head of two labels, in float64 and rounded as in torch, and by the
/// language head at two tokens.
inline std::vector<engine::loss::AnyLoss> prm_family() {
  using algorithms::PrmLoss;
  return {PrmLoss{}, PrmLoss{.float32 = true}, PrmLoss{.reward_tokens = {5, 11}},
          PrmLoss{.reward_tokens = {5, 11}, .whole_vocabulary = true}};
}

}  // namespace troupe::test
