#include "launch/memory/model_shares.h"

#include <algorithm>

#include "engine/base/errors/error.h"
#include "engine/generate/kv_cache.h"
#include "launch/run/settings.h"

namespace troupe::launch::memory {

namespace models = engine::models;

std::vector<PartOfModel> parts_of_model(const config::RunConfig& config,
                                        const models::DecoderSpec& spec) {
  const int tp = config.parallel.tp, pp = config.parallel.pp, vpp = config.parallel.vpp;
  value_or_throw(models::check_split(spec, tp));
  const auto layers = value_or_throw(
      models::stage_layers(spec, pp, config.parallel.layers, config.parallel.noop_layers, vpp));
  std::vector<PartOfModel> parts;
  for (int index = 0; index < pp; ++index)
    for (int part = 0; part < tp; ++part) {
      models::Split split = models::split_of(spec, part, tp);
      split.divides_rows = config.parallel.sp;
      parts.push_back({models::stage_of(index, layers, vpp), std::move(split)});
    }
  return parts;
}

ModelShares::ModelShares(const config::RunConfig& config, const models::DecoderSpec& spec) {
  const auto parts = parts_of_model(config, spec);
  ranks = parts.size();
  for (const auto& [stage, split] : parts) {
    std::uint64_t values = 0;
    for (const auto& tensor : models::parameter_list(spec, split, stage))
      values += count_of(tensor.shape.count());
    models::DecoderSpec own = spec;
    own.layers = std::ssize(stage.layers());
    own.kv_heads = static_cast<int>(split.kv_heads.size());
    all += values;
    largest = std::max(largest, values);
    cached = std::max(cached, count_of(engine::generate::cached_token_bytes(own)));
  }
}

}  // namespace troupe::launch::memory
