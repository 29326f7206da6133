// Small random models of several families in the Hugging Face layout.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/models/spec.h"
#include "engine/models/storage.h"

namespace troupe::launch {

/// config.json of five layers with eight heads, four key/value heads and a vocabulary of 67.
inline Json small_config(const std::string& architecture) {
  Json out;
  out.set("architectures", Json::Array{architecture})
      .set("vocab_size", 67)
      .set("hidden_size", 32)
      .set("intermediate_size", 24)
      .set("num_hidden_layers", 5)
      .set("num_attention_heads", 8)
      .set("num_key_value_heads", 4)
      .set("head_dim", 4)
      .set("rms_norm_eps", 1e-6)
      .set("rope_theta", 10000.0)
      .set("hidden_act", "silu")
      .set("max_position_embeddings", 64)
      .set("torch_dtype", "bfloat16")
      .set("tie_word_embeddings", architecture == "Qwen3ForCausalLM");
  return out;
}

/// Writes config.json and model.safetensors with random BF16 bits into the existing folder.
inline engine::models::DecoderSpec put_small_model(const std::string& folder, const Json& config) {
  namespace checkpoint = engine::checkpoint;
  value_or_throw(write_file_durably(folder + "/config.json", config.dump(2)));
  auto spec = value_or_throw(engine::models::read_spec(config, "config.json"));
  std::vector<checkpoint::SafetensorsWriter::Plan> plans;
  for (const auto& tensor : engine::models::stored_tensors(spec))
    plans.push_back({tensor.name, checkpoint::StoredType::bf16, tensor.shape()});
  auto writer =
      value_or_throw(checkpoint::SafetensorsWriter::create(folder + "/model.safetensors", plans));
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.5f);
  for (const auto& tensor : writer.tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.count()));
    for (float& value : values) value = normal(random);
    value_or_throw(writer.write(tensor.name, values));
  }
  value_or_throw(writer.finish());
  return spec;
}

inline std::string content(const std::string& path) {
  return value_or_throw(read_file(path));
}

}  // namespace troupe::launch
