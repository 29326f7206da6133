// Split: which part of a decoder each rank of a tensor-parallel group computes. A pure function of
// the spec and the rank.
#pragma once

#include "engine/models/spec.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::models {

/// Heads are counted in heads, not in columns. Query heads lie where their key/value heads do.
struct Split {
  int index = 0, parts = 1;
  parallel::Range vocabulary, inner, heads, kv_heads;
  bool shares_kv_heads = false;  ///< several ranks hold the same key/value head
  bool first_holder = true;      ///< of the ranks that hold ours
};

/// Up to kv_heads ranks share the key/value heads out, as evenly as it goes; more ranks hold them
/// together, when kv_heads divides the ranks and the ranks divide the heads. Errc::usage for what
/// cannot be split, with the numbers that can.
Result<> check_split(const DecoderSpec& spec, int parts);

/// Part `index` of `parts`, which check_split has seen.
Split split_of(const DecoderSpec& spec, int index, int parts);

/// parameter_list(spec) with the shapes and shards of that part.
std::vector<nn::Parameters::Wanted> parameter_list(const DecoderSpec& spec, const Split& split);

}  // namespace troupe::engine::models
