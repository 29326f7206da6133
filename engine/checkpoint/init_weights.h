// Initial weights of a model that is trained from scratch, for a model folder without weights.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/models/decoder.h"

namespace troupe::engine::checkpoint {

struct InitOptions {
  double std_dev = 0.02;  ///< of all matrices
  /// Divide the standard deviation of the output projections of attention and MLP by sqrt(2 L),
  /// as GPT-2 and Megatron-LM do (L: layers).
  bool scaled_output = true;
  std::uint64_t seed = 0;
};

/// Whether a model folder has weight files of any format.
bool has_weight_files(const std::string& folder);

/// "initializer_range" of config.json; transformers' default 0.02 without it. Errc::bad_input
/// unless it is a positive number; errors of reading.
Result<double> initializer_range(const std::string& folder);

/// Matrices are drawn from a normal distribution with mean 0, norm gains are 1, biases 0. A value
/// depends on the seed, the name of its tensor and its index in the logical tensor only, so every
/// grid starts from the same bytes. No communication.
void init_weights(models::Decoder& model, const InitOptions& options);

}  // namespace troupe::engine::checkpoint
