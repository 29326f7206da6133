// The column maps of MindSpeed (--map-keys) and LLaMA-Factory (columns and tags of
// dataset_info.json) as data.columns and data.tags.
#pragma once

#include <string>

#include "launch/config/data_config.h"
#include "launch/config/yaml.h"

namespace troupe::launch {

constexpr std::string_view column_maps_key = "data.map_keys";

/// `node` is their map, or its text: {prompt, query, response, history, system, chosen, rejected}
/// of Alpaca's rows; {messages, tags: {...}, system, tools, chosen, rejected, kto_tag} of
/// ShareGPT's. An empty text or null is a column that is not used. Returns "" or what is wrong.
std::string apply_map_keys(const YamlNode& node, DataConfig& data);

}  // namespace troupe::launch
