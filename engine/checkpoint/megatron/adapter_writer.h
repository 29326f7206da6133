// Writing LoRA adapters in the form of MindSpeed-LLM's checkpoints (megatron_adapter.h).
//
// MindSpeed has one A and one B for a tensor that joins several modules, such as linear_qkv; an
// adapter here has an A and a B for each. In the joined form of rank P*R, P the smallest power of
// two that is not below the number of modules of any tensor, the A of module m are rows m*R..m*R+R
// of A, its B times P are columns m*R..m*R+R of its rows of B, and the rest is 0: with the scale
// alpha / (P*R) the product is the same, and exactly so, as only exponents change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/models/spec.h"

namespace troupe::engine::checkpoint {

/// The matrices of a module, row-major: A [R, D] and B [F, R].
struct AdapterModule {
  std::vector<float> a, b;
};

/// An adapter whose modules have one rank and one alpha.
struct JoinedAdapter {
  std::map<std::string, AdapterModule> modules;  ///< by name: "model.layers.0.self_attn.q_proj"
  std::int64_t rank = 0;                         ///< R
  double alpha = 0;
};

/// P of the adapter in the division of `grid`: 1, 2 or 4.
std::int64_t joined_copies(const models::DecoderSpec& spec, const MegatronGrid& grid,
                           const JoinedAdapter& adapter);

/// Writes the files of all ranks, iter_NNNNNNN/mp_rank_.../model_optim_rng.pt and the tracker:
/// checkpoint_version 3, the iteration, "lora" {rank, alpha, copies} and the tensors, in F32.
/// Errc::unsupported for a module that has no place in these layouts; errors of the folder.
Result<> write_megatron_adapter(const models::DecoderSpec& spec, const MegatronGrid& grid,
                                const JoinedAdapter& adapter, std::int64_t iteration,
                                ResultFolder& folder);

}  // namespace troupe::engine::checkpoint
