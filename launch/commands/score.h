// `troupe score`: evaluates a reward model on preference pairs. `troupe logprobs`:
// log-probabilities of token sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/model/model.h"

namespace troupe::launch::commands {

struct ScoreOptions {
  model::ModelOptions model;
  std::vector<std::string> data;  ///< files of preference pairs
  std::int64_t max_length = 0;    ///< drops pairs with a longer sequence; 0: the model's
  int bins = 10;                  ///< calibration bins over the confidence
};
/// Returns the exit code. Throws Failure.
int score(const ScoreOptions& options);

/// Returns the exit code. Throws Failure.
int logprobs(const model::ModelOptions& options);

}  // namespace troupe::launch::commands
