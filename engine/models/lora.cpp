#include "engine/models/lora.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/models/spec.h"

namespace troupe::engine::models {

std::vector<nn::ParameterSpec> lora_tensors(const LoraTarget& target, const nn::ParameterSpec& base,
                                            bool dora, bool first_rank) {
  const std::int64_t rank = target.rank, out = base.shape[0], in = base.shape[1];
  parallel::Shard whole{.first = first_rank}, rows = whole, shared = whole, columns = whole;
  if (base.shard.axis == 0) {  // A is replicated; its gradient is summed over the ranks
    rows = base.shard;
    shared = {0, 0, rank, rank, true, first_rank};
  } else if (base.shard.axis == 1) {
    columns = base.shard;
  }
  std::vector<nn::ParameterSpec> list{
      {cat(target.module, lora_a), Shape{rank, in}, base.shard.axis == 0 ? shared : columns, true,
       true},
      {cat(target.module, lora_b), Shape{out, rank}, rows, true, true}};
  if (dora) list.push_back({cat(target.module, lora_magnitude), Shape{out}, rows, true, true});
  return list;
}

void add_lora(const DecoderSpec& spec, std::vector<nn::ParameterSpec>& list, bool first_rank) {
  if (!spec.lora) return;
  const auto saved = [&](const std::string& name) {
    return std::ranges::any_of(spec.lora->saved, [&](const std::string& module) {
      return name.starts_with(module + ".");
    });
  };
  for (auto& wanted : list) wanted.trainable = saved(wanted.name);
  std::ranges::stable_partition(list, [](const auto& wanted) { return !wanted.trainable; });
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(list, [&](const auto& wanted) { return wanted.name == name; });
  };
  for (const auto& target : spec.lora->targets) {
    auto base = named(target.module + ".weight");
    if (base == list.end() && spec.tied && target.module == "lm_head")
      base = named("model.embed_tokens.weight");
    check(base != list.end(), cat("add_lora: no module ", target.module));
    for (auto& wanted : lora_tensors(target, nn::ParameterSpec(*base), spec.lora->dora, first_rank))
      list.push_back(std::move(wanted));
  }
}

}  // namespace troupe::engine::models
