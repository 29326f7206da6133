// The sections `simpo`, `cpo`, `orpo` and `kto` of a run file.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::launch {

struct SimpoConfig {
  std::string loss = "sigmoid";
  double beta = 2;
  double gamma_beta_ratio = 0.25;
  double gamma = -1;  ///< -1: gamma_beta_ratio says it
  double label_smoothing = 0;
  double alpha = 0;
  double nll_weight = 0;
  std::string nll_mean = "token";
};

struct CpoConfig {
  std::string loss = "sigmoid";
  double beta = 0.1;
  double label_smoothing = 0;
  double alpha = 0;
  double nll_weight = 1;
  std::string nll_mean = "token";
};

struct OrpoConfig {
  double beta = 0.1;
  bool nll_on_prompt = true;
};

struct KtoConfig {
  std::string loss = "kto";
  double beta = 0.1;
  double desirable_weight = 1, undesirable_weight = 1;
  std::string reference;  ///< a model directory; empty: the starting weights
  std::int64_t sync_every = 0;
  double sync_share = 0.6;
};

}  // namespace troupe::launch
