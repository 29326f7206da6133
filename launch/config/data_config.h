// The section `data` of a run file: files, layouts, and the order of rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/json/fields.h"
#include "engine/data/loader/sampler.h"
#include "launch/config/yaml.h"

namespace troupe::launch::config {

struct DataConfig : engine::data::DataOptions {
  DataConfig() { encode.chunk = true; }

  bool stream = false;
  std::int64_t shuffle_buffer = 10000;
  bool shuffle = true;
  engine::data::LastBatch last_batch = engine::data::LastBatch::join;

  static void each_field(auto& self, auto&& field) {
    each_source_field(self, field);
    field("stream", self.stream,
          "read the data while training, for files larger than memory; needs train.steps");
    field("shuffle_buffer", self.shuffle_buffer, Range{1, 1 << 30},
          "streaming: examples in the shuffle buffer");
    field("shuffle", self.shuffle, "shuffle each epoch, seeded by train.seed");
    engine::data::RowSelection::each_field(self.selection, field);
    field(
        "last_batch", self.last_batch,
        "rows at the end of an epoch that do not fill a batch: join completes the batch with rows "
        "of the next epoch, keep makes a shorter batch, drop leaves them out");
    each_token_field(self, field);
  }
};

constexpr std::string_view column_maps_key = "data.map_keys";

/// `node` is their map, or its text: {prompt, query, response, history, system, chosen, rejected}
/// of Alpaca's rows; {messages, tags: {...}, system, tools, chosen, rejected, kto_tag} of
/// ShareGPT's. An empty text or null is a column that is not used. Returns "" or what is wrong.
std::string apply_map_keys(const YamlNode& node, DataConfig& data);

}  // namespace troupe::launch::config
