// `troupe parity`: whether the paths of the program compute equal numbers: generation, scoring, the
// server's scores of prompts, the trainer's forward pass, and grids of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/model/model.h"

namespace troupe::launch::parity {

struct ParityOptions {
  model::ModelOptions model;  ///< without its dtype
  std::vector<engine::ops::Precision> dtypes{engine::ops::Precision::f32};
  std::string data;                  ///< file of JSON lines with "text" or "ids"; empty: `samples`
  std::int32_t samples = 8;          ///< texts that begin with random tokens
  std::int32_t max_new_tokens = 32;  ///< by which each prompt is continued
  std::vector<std::string> sets;     ///< "key=value" of rollout.* and parallel.*
  std::vector<std::string> paths;    ///< names; empty: all
  /// Tokens of the vocabulary that are compared at some positions; -1: all.
  std::int64_t targets = 64;
  bool locate = false;  ///< name the first operation of a broken promise
  bool json = false;
  std::string table;  ///< folder of models: prints docs/parity.md instead
};

/// Returns the exit code: 0, or run::exit_parity where a promise is broken. Throws Failure.
int parity(const ParityOptions& options);

}  // namespace troupe::launch::parity
