#include "launch/tools/convert/layer_split.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/layout.h"

namespace troupe::launch::tools::convert {
namespace {

using engine::checkpoint::empty_layer;
using Layers = std::vector<std::int64_t>;

/// All places in order: the layers, with the empty ones between them.
Result<Layers> places_of(std::int64_t layers, const LayerSplit& split) {
  Layers out(static_cast<std::size_t>(layers) + split.empty_places.size(), 0);
  for (const int place : split.empty_places) {
    if (place < 0 || static_cast<std::size_t>(place) >= out.size())
      return fail(Errc::usage, cat("--noop-layers: place ", place, " of ", out.size(),
                                   " places does not exist"));
    if (out[static_cast<std::size_t>(place)] == empty_layer)
      return fail(Errc::usage, cat("--noop-layers: place ", place, " is repeated"));
    out[static_cast<std::size_t>(place)] = empty_layer;
  }
  std::int64_t next = 0;
  for (auto& place : out)
    if (place != empty_layer) place = next++;
  return out;
}

Result<std::vector<int>> shares_of(std::size_t places, const LayerSplit& split) {
  const auto ranks = static_cast<std::size_t>(split.pipeline);
  if (split.layer_list.empty()) {
    if (places < ranks)
      return fail(Errc::usage, cat(places, " layers for ", ranks,
                                   " pipeline ranks; set --target-pipeline-parallel-size to ",
                                   places, " at most"));
    std::vector<int> out;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      out.push_back(static_cast<int>(places / ranks + (rank < places % ranks ? 1 : 0)));
    return out;
  }
  const auto sum =
      std::accumulate(split.layer_list.begin(), split.layer_list.end(), std::int64_t{0});
  if (split.layer_list.size() != ranks || sum != static_cast<std::int64_t>(places) ||
      std::ranges::any_of(split.layer_list, [](int share) { return share < 1; }))
    return fail(Errc::usage,
                cat("--num-layer-list: expected ", ranks, " positive numbers with the sum ", places,
                    ", found ", split.layer_list.size(), " with the sum ", sum));
  return split.layer_list;
}

}  // namespace

Result<std::vector<int>> parse_numbers(const std::string& text, const std::string& option) {
  std::vector<int> out;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',' && *next != ' '))
      return fail(Errc::usage,
                  cat(option, ": expected numbers with commas between them, found ", quote(text)));
    out.push_back(value);
    at = next;
  }
  return out;
}

Result<std::vector<std::vector<std::vector<std::int64_t>>>> split_layers(std::int64_t layers,
                                                                         const LayerSplit& split) {
  const auto places = places_of(layers, split);
  RETURN_IF_ERROR(places);
  std::vector<std::vector<Layers>> out(static_cast<std::size_t>(split.pipeline));
  if (split.layers_per_virtual > 0) {
    const auto part = static_cast<std::size_t>(split.layers_per_virtual), round = part * out.size();
    if (!split.layer_list.empty() || places->size() % round != 0)
      return fail(Errc::usage,
                  cat("--num-layers-per-virtual-pipeline-stage ", part, ": expected a ",
                      "number that divides ", places->size(), " layers over ", out.size(),
                      " pipeline ranks, and no --num-layer-list"));
    for (std::size_t at = 0; at < places->size(); at += part) {
      const auto begin = places->begin() + static_cast<std::ptrdiff_t>(at);
      out[at / part % out.size()].emplace_back(begin, begin + split.layers_per_virtual);
    }
    return out;
  }
  const auto shares = shares_of(places->size(), split);
  RETURN_IF_ERROR(shares);
  auto begin = places->begin();
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    out[rank].emplace_back(begin, begin + (*shares)[rank]);
    begin += (*shares)[rank];
  }
  return out;
}

}  // namespace troupe::launch::tools::convert
