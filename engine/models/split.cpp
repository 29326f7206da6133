#include "engine/models/split.h"

#include <bit>
#include <cmath>
#include <optional>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

using parallel::Range;
using parallel::Shard;

bool splits_into(const DecoderSpec& spec, int parts) {
  if (parts < 1 || parts > spec.vocabulary || parts > spec.inner) return false;
  if (spec.experts && (parts > spec.experts->inner ||
                       (spec.experts->shared_inner > 0 && parts > spec.experts->shared_inner)))
    return false;
  return parts <= spec.kv_heads || (parts % spec.kv_heads == 0 && spec.heads % parts == 0);
}

Shard rows(Range part, std::int64_t full) {
  return {0, part.begin, part.end, full, false, true};
}

bool is_norm(std::string_view name) {
  const std::string_view tensor = name.substr(0, name.rfind('.'));
  return tensor.ends_with("norm");
}

Range times(Range heads, std::int64_t size) {
  return {heads.begin * size, heads.end * size};
}

// Rows of this rank's key/value heads, which several ranks may have.
Shard kv_rows(const DecoderSpec& spec, const Split& split) {
  const Range part = times(split.kv_heads, spec.head_size);
  return {0,
          part.begin,
          part.end,
          spec.kv_heads * spec.head_size,
          split.shares_kv_heads,
          split.first_holder};
}

// The shards of latent attention: what makes and normalizes the vectors is replicated; each rank
// has the gradients of its own heads. Absent: another tensor.
std::optional<Shard> latent_shard(const std::string& name, const DecoderSpec& spec,
                                  const Split& split) {
  if (!spec.latent) return {};
  const auto is = [&](std::string_view module) { return name.find(module) != name.npos; };
  const std::int64_t pair = spec.head_size - spec.latent->rotary + spec.latent->value_size;
  if (is(".q_b_proj."))
    return rows(times(split.heads, spec.head_size), spec.heads * spec.head_size);
  if (is(".kv_b_proj.")) return rows(times(split.heads, pair), spec.heads * pair);
  const auto replicated = [&](std::int64_t size) {
    return Shard{0, 0, size, size, true, split.index == 0};
  };
  if (is(".q_a_")) return replicated(spec.latent->query_rank);
  if (is(".kv_a_layernorm.")) return replicated(spec.latent->key_rank);
  if (is(".kv_a_")) return replicated(spec.latent->key_rank + spec.latent->rotary);
  return {};
}

// Inner width of the MLP, the expert or the shared expert of this tensor.
std::int64_t inner_of(std::string_view name, const DecoderSpec& spec) {
  if (!spec.experts) return spec.inner;
  if (name.find(".mlp.experts.") != name.npos) return spec.experts->inner;
  return name.find(".mlp.shared_experts.") != name.npos ? spec.experts->shared_inner : spec.inner;
}

// The shard of the tensor of this name, by the end of the name ("q_proj.weight").
Shard shard_of(const std::string& name, const DecoderSpec& spec, const Split& split) {
  const auto is = [&](std::string_view layer) {
    return name.ends_with(cat(".", layer, ".weight")) || name.ends_with(cat(".", layer, ".bias"));
  };
  const auto columns = [&](Range part, std::int64_t full) {
    return name.ends_with(".bias") ? Shard{.first = split.index == 0}
                                   : Shard{1, part.begin, part.end, full, false, true};
  };
  const std::int64_t size = spec.head_size;
  if (const auto latent = latent_shard(name, spec, split)) return *latent;
  if (name.ends_with("embed_tokens.weight") || name == "lm_head.weight" || name == "lm_head.bias")
    return rows(split.vocabulary, spec.vocabulary);
  if (is("q_proj")) return rows(times(split.heads, size), spec.heads * size);
  if (is("k_proj") || is("v_proj")) return kv_rows(spec, split);
  if (spec.width_norms && is("q_norm")) return rows(times(split.heads, size), spec.heads * size);
  if (spec.width_norms && is("k_norm")) return kv_rows(spec, split);
  // Replicated; each rank has the gradients of its own heads.
  if (is("q_norm") || is("k_norm")) return {0, 0, size, size, true, split.index == 0};
  if (is("o_proj"))
    return columns(times(split.heads, spec.value_size()), spec.heads * spec.value_size());
  // Replicated; each rank has the gradients of its own rows.
  if (split.divides_rows && is_norm(name))
    return {0, 0, spec.width, spec.width, true, split.index == 0};
  const std::int64_t inner = inner_of(name, spec);
  const Range own = parallel::even_range(inner, split.index, split.parts);
  if (is("gate_proj") || is("up_proj")) return rows(own, inner);
  if (is("down_proj")) return columns(own, inner);
  return {.first = split.index == 0};
}

}  // namespace

Result<> check_mixture(const DecoderSpec& spec, std::string_view kind, int ranks) {
  if (!spec.experts || ranks <= 1) return {};
  return fail(Errc::usage,
              cat(kind, " parallelism of ", ranks, " is not possible for a mixture of experts (",
                  spec.architecture, "); allowed: 1; more ranks can be replicas (parallel.dp)"));
}

Result<> check_split(const DecoderSpec& spec, int parts) {
  if (splits_into(spec, parts)) return {};
  std::vector<std::string> valid;
  for (int choice = 1; choice <= spec.heads; ++choice)
    if (splits_into(spec, choice)) valid.push_back(cat(choice));
  return fail(
      Errc::usage,
      cat("tensor parallelism of ", parts, " is not possible for this model of ", spec.heads,
          " heads, ", spec.kv_heads, " key/value heads, an inner width of ", spec.inner,
          " and a vocabulary of ", spec.vocabulary, "; allowed: ", join(valid, ", ")));
}

Split split_of(const DecoderSpec& spec, int index, int parts) {
  check(splits_into(spec, parts) && 0 <= index && index < parts,
        "split_of: a part that does not exist");
  Split split{index,
              parts,
              parallel::even_range(spec.vocabulary, index, parts),
              parallel::even_range(spec.inner, index, parts),
              {},
              {}};
  if (parts <= spec.kv_heads) {
    split.kv_heads = parallel::even_range(spec.kv_heads, index, parts);
    split.heads = times(split.kv_heads, spec.heads / spec.kv_heads);
  } else {
    const int holders = parts / spec.kv_heads;
    split.kv_heads = {index / holders, index / holders + 1};
    split.heads = parallel::even_range(spec.heads, index, parts);
    split.shares_kv_heads = true;
    split.first_holder = index % holders == 0;
  }
  return split;
}

std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec, const Split& split) {
  if (split.parts == 1) return parameter_list(spec);
  DecoderSpec base = spec;
  base.lora.reset();
  auto list = parameter_list(base);
  for (auto& wanted : list) {
    wanted.shard = shard_of(wanted.name, spec, split);
    const std::int64_t size = wanted.shard.end - wanted.shard.begin;
    if (wanted.shard.whole()) continue;
    if (wanted.shape.rank() == 1)
      wanted.shape = Shape{size};
    else
      wanted.shape =
          wanted.shard.axis == 0 ? Shape{size, wanted.shape[1]} : Shape{wanted.shape[0], size};
  }
  add_lora(spec, list, split.index == 0);
  return list;
}

std::vector<float> alibi_slopes(const DecoderSpec& spec, parallel::Range heads, double scale) {
  std::vector<float> slopes;
  const double factor = spec.alibi_scaled ? scale : 1;
  if (!spec.alibi) return slopes;
  const int below = static_cast<int>(std::bit_floor(static_cast<unsigned>(spec.heads)));
  for (std::int64_t head = heads.begin; head < heads.end; ++head) {
    const double power = head < below ? -8.0 * static_cast<double>(head + 1) / below
                                      : -4.0 * static_cast<double>(2 * (head - below) + 1) / below;
    slopes.push_back(static_cast<float>(std::exp2(power) * factor));
  }
  return slopes;
}

}  // namespace troupe::engine::models
