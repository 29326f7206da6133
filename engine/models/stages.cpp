#include "engine/models/stages.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::models {
namespace {

constexpr std::string_view table_name = "model.embed_tokens.weight";

// The number of the layer whose tensor has this name; -1: outside the layers.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view prefix = "model.layers.";
  std::int64_t layer = -1;
  if (name.starts_with(prefix))
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
  return layer;
}

bool is_on(const PipelineStage& stage, std::string_view name) {
  const std::int64_t layer = layer_of(name);
  if (layer >= 0) return stage.layers.begin <= layer && layer < stage.layers.end;
  return name.starts_with("model.embed_") ? stage.first() : stage.last();
}

// Numbers of `places` for each stage: `wanted`, or an even division where it is empty.
Result<std::vector<std::int64_t>> divided(std::int64_t places, int stages,
                                          const std::vector<std::int64_t>& wanted,
                                          std::string_view which) {
  if (wanted.empty()) {
    std::vector<std::int64_t> even;
    for (std::int64_t i = 0; i < stages; ++i)
      even.push_back(places / stages + (i < places % stages ? 1 : 0));
    return even;
  }
  if (std::ssize(wanted) != stages)
    return fail(Errc::usage,
                cat("parallel.layers: expected ", stages,
                    " numbers, one for each stage of parallel.pp, found ", wanted.size()));
  std::int64_t sum = 0;
  for (const auto count : wanted) {
    if (count < 1 || count > places)
      return fail(Errc::usage, cat("parallel.layers: expected 1 to ", places,
                                   " layers on each stage, found ", count));
    sum += count;
  }
  if (sum != places)
    return fail(Errc::usage, cat("parallel.layers: expected ", places, " layers in all, ", which,
                                 ", found ", sum));
  return wanted;
}

Result<> check_noop_layers(std::int64_t places, std::vector<std::int64_t> noop) {
  std::ranges::sort(noop);
  for (const auto place : noop)
    if (place < 0 || place >= places)
      return fail(Errc::usage, cat("parallel.noop_layers: expected 0 to ", places - 1, " (",
                                   places - std::ssize(noop), " layers of the model and ",
                                   noop.size(), " of this list), found ", place));
  if (const auto twice = std::ranges::adjacent_find(noop); twice != noop.end())
    return fail(Errc::usage, cat("parallel.noop_layers: found ", *twice, " twice"));
  return {};
}

}  // namespace

Result<std::vector<std::int64_t>> stage_layers(const DecoderSpec& spec, int stages,
                                               const std::vector<std::int64_t>& wanted,
                                               const std::vector<std::int64_t>& noop) {
  if (stages < 1 || (stages > 1 && stages > spec.layers))
    return fail(Errc::usage,
                cat("parallel.pp ", stages, " is not possible for a model of ", spec.layers,
                    " layers: every stage needs one; allowed: 1 to ", spec.layers));
  const std::int64_t places = spec.layers + std::ssize(noop);
  RETURN_IF_ERROR(check_noop_layers(places, noop));
  auto counts = divided(places, stages, wanted,
                        noop.empty() ? "as the model has"
                                     : cat(spec.layers, " of the model and ", noop.size(),
                                           " of parallel.noop_layers"));
  RETURN_IF_ERROR(counts);
  std::int64_t end = 0;
  for (std::int64_t& count : *counts) {
    const std::int64_t begin = end;
    end += count;
    count -= std::ranges::count_if(
        noop, [&](std::int64_t place) { return begin <= place && place < end; });
    if (count == 0)
      return fail(Errc::usage, cat("parallel.noop_layers: layers ", begin, " to ", end - 1,
                                   " are a stage, which needs a layer of the model"));
  }
  return counts;
}

PipelineStage stage_of(int index, const std::vector<std::int64_t>& layers) {
  check(0 <= index && index < std::ssize(layers), "stage_of: a stage that does not exist");
  const auto begin = std::accumulate(layers.begin(), layers.begin() + index, std::int64_t{0});
  return {index,
          static_cast<int>(layers.size()),
          {begin, begin + layers[static_cast<std::size_t>(index)]}};
}

std::vector<nn::ParameterSpec> parameter_list(const DecoderSpec& spec, const Split& split,
                                              const PipelineStage& stage) {
  auto all = parameter_list(spec, split);
  if (stage.count == 1) return all;
  std::vector<nn::ParameterSpec> list;
  for (const auto& wanted : all)
    if (is_on(stage, wanted.name)) list.push_back(wanted);
  if (!spec.tied || spec.labels > 0 || !stage.last()) return list;
  for (auto& wanted : all) {
    if (wanted.name != table_name) continue;
    wanted.shard.first = false;
    // Frozen tensors come before the trained ones.
    const auto at = wanted.trainable ? list.end()
                                     : std::ranges::find(list, true, &nn::ParameterSpec::trainable);
    list.insert(at, wanted);
  }
  return list;
}

}  // namespace troupe::engine::models
