// Split: the part of a decoder that each rank of a tensor-parallel group computes; a pure function
// of the spec and the rank.
#pragma once

#include "engine/models/spec.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::models {

/// Ranges of heads are in heads, not in columns. Query heads are on the rank of their key/value
/// heads.
struct Split {
  int index = 0, parts = 1;
  parallel::Range vocabulary, inner, heads, kv_heads;
  bool shares_kv_heads = false;  ///< several ranks hold the same key/value head
  bool first_holder = true;      ///< this is the first rank with its key/value heads
  bool divides_rows = false;     ///< sequence parallelism (nn/sequence_parallel.h)
};

/// Checks that the model can be split into `parts`: up to kv_heads ranks get distinct key/value
/// heads, as evenly as possible; more ranks replicate them, where kv_heads divides the ranks and
/// the ranks divide the heads. Errc::usage otherwise, listing the possible numbers.
Result<> check_split(const DecoderSpec& spec, int parts);

/// Checks that the model can be divided by a kind of parallelism ("tensor", "pipeline", "context")
/// over this number of ranks: for a mixture of experts, one. Errc::usage otherwise.
Result<> check_mixture(const DecoderSpec& spec, std::string_view kind, int ranks);

/// Part `index` of `parts`, which check_split has accepted.
Split split_of(const DecoderSpec& spec, int index, int parts);

/// parameter_list(spec) with the shapes and shards of that part.
std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec, const Split& split);

/// ALiBi slope of each of these heads (Press et al. 2021): powers of 2^(-8/n) for the first n = 2^k
/// heads; the others take every second power for 2n heads. `scale` multiplies those of a spec with
/// alibi_scaled. Empty without ALiBi.
std::vector<float> alibi_slopes(const DecoderSpec& spec, parallel::Range heads, double scale);

}  // namespace troupe::engine::models
