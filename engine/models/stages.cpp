#include "engine/models/stages.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

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
  if (layer >= 0)
    return std::ranges::any_of(stage.chunks, [layer](const parallel::Range& chunk) {
      return chunk.begin <= layer && layer < chunk.end;
    });
  return name.starts_with("model.embed_") ? stage.first() : stage.last();
}

// Numbers of `places` for each chunk: `wanted`, or an even division where it is empty.
Result<std::vector<std::int64_t>> divided(std::int64_t places, int stages, int chunks,
                                          const std::vector<std::int64_t>& wanted,
                                          std::string_view which) {
  const std::int64_t parts = std::int64_t{stages} * chunks;
  if (wanted.empty()) {
    std::vector<std::int64_t> even;
    for (std::int64_t i = 0; i < parts; ++i)
      even.push_back(places / parts + (i < places % parts ? 1 : 0));
    return even;
  }
  if (std::ssize(wanted) != parts)
    return fail(
        Errc::usage,
        cat("parallel.layers: expected ", parts, " numbers, one for each stage of ", "parallel.pp",
            chunks == 1 ? "" : " and each of its parallel.vpp chunks", ", found ", wanted.size()));
  std::int64_t sum = 0;
  for (const auto count : wanted) {
    if (count < 1 || count > places)
      return fail(Errc::usage,
                  cat("parallel.layers: expected 1 to ", places, " layers ",
                      chunks == 1 ? "on each stage" : "in each chunk", ", found ", count));
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

// Removes the empty places from the numbers of places of the chunks.
void leave_out(const std::vector<std::int64_t>& noop, std::vector<std::int64_t>& counts) {
  std::int64_t end = 0;
  for (std::int64_t& count : counts) {
    const std::int64_t begin = end;
    end += count;
    count -= std::ranges::count_if(
        noop, [&](std::int64_t place) { return begin <= place && place < end; });
  }
}

}  // namespace

std::vector<std::int64_t> PipelineStage::layers() const {
  std::vector<std::int64_t> all;
  for (const parallel::Range& chunk : chunks)
    for (std::int64_t layer = chunk.begin; layer < chunk.end; ++layer) all.push_back(layer);
  return all;
}

parallel::Range PipelineStage::places(std::size_t chunk) const {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < chunk; ++i) begin += chunks[i].size();
  return {begin, begin + chunks.at(chunk).size()};
}

Result<std::vector<std::int64_t>> stage_layers(const DecoderSpec& spec, int stages,
                                               const std::vector<std::int64_t>& wanted,
                                               const std::vector<std::int64_t>& noop, int chunks) {
  if (stages < 1 || (stages > 1 && stages > spec.layers))
    return fail(Errc::usage,
                cat("parallel.pp ", stages, " is not possible for a model of ", spec.layers,
                    " layers: every stage needs one; allowed: 1 to ", spec.layers));
  const std::int64_t places = spec.layers + std::ssize(noop);
  if (chunks < 1 || (chunks > 1 && stages == 1) || std::int64_t{stages} * chunks > places)
    return fail(Errc::usage,
                cat("parallel.vpp ", chunks, " is not possible for parallel.pp ", stages, " and ",
                    places, " layers: every chunk of a stage needs one; allowed: 1 to ",
                    stages == 1 ? 1 : places / stages));
  RETURN_IF_ERROR(check_noop_layers(places, noop));
  auto counts = divided(places, stages, chunks, wanted,
                        noop.empty() ? "as the model has"
                                     : cat(spec.layers, " of the model and ", noop.size(),
                                           " of parallel.noop_layers"));
  RETURN_IF_ERROR(counts);
  const std::vector<std::int64_t> with_noop = *counts;
  leave_out(noop, *counts);
  for (int i = 0; i < stages; ++i)
    if (stage_of(i, *counts, chunks).layers().empty()) {
      std::vector<std::string> found;
      for (const auto& chunk : stage_of(i, with_noop, chunks).chunks)
        found.push_back(cat(chunk.begin, " to ", chunk.end - 1));
      return fail(Errc::usage, cat("parallel.noop_layers: layers ", join(found, " and "),
                                   " are a stage, which needs a layer of the model"));
    }
  return counts;
}

PipelineStage stage_of(int index, const std::vector<std::int64_t>& layers, int chunks) {
  const int count = static_cast<int>(layers.size()) / chunks;
  check(0 <= index && index < count, "stage_of: a stage that does not exist");
  PipelineStage stage{index, count, {}};
  std::int64_t begin = 0;
  for (int i = 0; i < std::ssize(layers); ++i) {
    const std::int64_t end = begin + layers[static_cast<std::size_t>(i)];
    if (i % count == index) stage.chunks.push_back({begin, end});
    begin = end;
  }
  return stage;
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
