// Division of a model's layers over pipeline ranks, as the options of convert_ckpt.py describe it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::tools::convert {

struct LayerSplit {
  int pipeline = 1;
  int layers_per_virtual = 0;     ///< 0: no virtual pipeline ranks
  std::vector<int> layer_list;    ///< layers of each pipeline rank; empty: equal shares
  std::vector<int> empty_places;  ///< places among all layers that hold an empty layer
};

/// "11, 13, 19, 21" as numbers. Errc::usage, which names `option`.
Result<std::vector<int>> parse_numbers(const std::string& text, const std::string& option);

/// [pipeline rank][virtual rank][index]: the layers 0 .. layers - 1 in order, and empty_layer.
/// Without a list, the first ranks get one layer more where the ranks do not divide the layers.
/// Errc::usage.
Result<std::vector<std::vector<std::vector<std::int64_t>>>> split_layers(std::int64_t layers,
                                                                         const LayerSplit& split);

}  // namespace troupe::launch::tools::convert
