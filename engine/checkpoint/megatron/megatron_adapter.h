// LoRA adapters in checkpoints of Megatron, as MindSpeed-LLM trains them: beside the weight
// NAME.weight [F, D] of a rank, NAME.lora_A.default.weight [R, D] and NAME.lora_B.default.weight
// [F, R] of the same rank, with or without "base_model.model." in front.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/megatron/layout.h"
#include "engine/checkpoint/pickle/torch_file.h"

namespace troupe::engine::checkpoint {

struct AdapterSettings {
  std::string folder;  ///< of the adapter's checkpoint (--lora-load); "": none
  int rank = 0;        ///< R (--lora-r); 0: as stored
  double alpha = 0;    ///< the product of B and A is multiplied by alpha / R (--lora-alpha)
  std::vector<std::string> targets;  ///< "linear_qkv" (--lora-target-modules); empty: as stored
};

/// The tensors of one weight in a rank's file.
struct LoraPair {
  const TorchFile* file = nullptr;
  const PickledTensor *a = nullptr, *b = nullptr;
  /// P, where the file is one of adapter_writer.h: A and B have P times --lora-r rows and columns.
  std::int64_t copies = 1;
};

/// The adapters among the tensors of a file by the names of their weights, "decoder.layers.0.mlp.
/// linear_fc1.weight". Errc::corrupt for an A without a B.
Result<std::map<std::string, LoraPair>> lora_pairs(
    const TorchFile& file, const std::map<std::string, const PickledTensor*>& tensors);

/// The values of a tensor, row-major. Errc::unsupported for types that are no floating-point
/// numbers; Errc::io, corrupt.
Result<std::vector<float>> floats_of(const TorchFile& file, const PickledTensor& tensor,
                                     const std::string& name);

/// Errc::usage when the shapes of a pair are not those of its weight, or the settings name others.
Result<> check_lora_pair(const LoraPair& pair, const ShardTensor& weight,
                         const AdapterSettings& settings);

/// base + alpha / R * B A, computed in f64 and rounded once to the base's type. Errc::unsupported
/// for types that are no floating-point numbers.
Result<std::vector<std::byte>> merge_lora(std::span<const std::byte> base, StoredType type,
                                          const ShardTensor& weight, const LoraPair& pair,
                                          double alpha);

}  // namespace troupe::engine::checkpoint
