// InternLM2 has no golden file of its own: a golden Llama is packed into its names and its wqkv, by
// hand, and must be the same model bit by bit, so that the Llama's golden numbers are its own.
#include <gtest/gtest.h>

#include <map>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/support/golden.h"

namespace troupe::engine::checkpoint {
namespace {

struct Matrix {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using Model = std::map<std::string, Matrix>;

Model read_model(const std::string& folder) {
  Model model;
  const auto weights = value_or_throw(SafetensorsFolder::open(folder));
  for (const auto& place : weights.all()) {
    Matrix& matrix = model[place.tensor->name];
    matrix.shape = place.tensor->shape;
    matrix.values.resize(static_cast<std::size_t>(place.tensor->count()));
    value_or_throw(place.file->read_f32(place.tensor->name, matrix.values));
  }
  return model;
}

// The order for each key/value head: its query heads, its key head, its value head.
Matrix packed(const Model& llama, const std::string& layer, std::int64_t head_size,
              std::int64_t kv_heads, std::int64_t each) {
  const Matrix &q = llama.at(layer + "q_proj.weight"), &k = llama.at(layer + "k_proj.weight"),
               &v = llama.at(layer + "v_proj.weight");
  const std::int64_t block = head_size * q.shape[1];
  Matrix out{{q.shape[0] + k.shape[0] + v.shape[0], q.shape[1]}, {}};
  const auto add = [&](const Matrix& from, std::int64_t first, std::int64_t count) {
    out.values.insert(out.values.end(), from.values.begin() + first * block,
                      from.values.begin() + (first + count) * block);
  };
  for (std::int64_t head = 0; head < kv_heads; ++head) {
    add(q, head * each, each);
    add(k, head, 1);
    add(v, head, 1);
  }
  return out;
}

std::string internlm_name(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"model.embed_tokens", "model.tok_embeddings"},
      {"lm_head", "output"},
      {"input_layernorm", "attention_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.o_proj", "attention.wo"},
      {"mlp.gate_proj", "feed_forward.w1"},
      {"mlp.up_proj", "feed_forward.w3"},
      {"mlp.down_proj", "feed_forward.w2"}};
  for (const auto& [llama, intern] : names)
    if (const auto at = name.find(llama); at != std::string::npos)
      return name.replace(at, llama.size(), intern);
  return name;
}

void write_internlm(const std::string& llama_folder, const std::string& folder) {
  const auto spec = value_or_throw(read_folder_spec(llama_folder));
  const Model llama = read_model(llama_folder);
  Model out;
  for (std::int64_t i = 0; i < spec.layers; ++i)
    out[cat("model.layers.", i, ".attention.wqkv.weight")] =
        packed(llama, cat("model.layers.", i, ".self_attn."), spec.head_size, spec.kv_heads,
               spec.heads / spec.kv_heads);
  for (const auto& [name, matrix] : llama)
    if (name.find("q_proj") == name.npos && name.find("k_proj") == name.npos &&
        name.find("v_proj") == name.npos)
      out[internlm_name(name)] = matrix;
  std::vector<SafetensorsWriter::Plan> plans;
  for (const auto& [name, matrix] : out) plans.push_back({name, StoredType::f32, matrix.shape});
  auto writer = value_or_throw(SafetensorsWriter::create(folder + "/model.safetensors", plans));
  for (const auto& tensor : writer.tensors())
    value_or_throw(writer.write(tensor.name, out.at(tensor.name).values));
  value_or_throw(writer.finish());
  Json config = value_or_throw(read_json(llama_folder + "/config.json"));
  config.set("architectures", Json::Array{"InternLM2ForCausalLM"})
      .set("model_type", "internlm2")
      .set("bias", false);
  put(folder + "/config.json", config.dump(2));
}

TEST(InternLM2, APackedLlamaIsTheSameModelAndIsSavedAsItWasStored) {
  for (const char* name : {"llama", "internlm-style-llama-mha"}) {
    SKIP_WITHOUT_GOLDEN(cat("models/", name, "/config.json"));
    const std::string source = cat(test::golden_folder(), "/models/", name);
    const Scratch packed_folder, saved_folder;
    write_internlm(source, packed_folder.path());
    const auto device = ops::make_cpu_device({.threads = 1});
    const auto llama = value_or_throw(load_decoder(*device, source, false));
    const auto internlm = value_or_throw(load_decoder(*device, packed_folder.path(), false));
    EXPECT_EQ(internlm->spec().architecture, "InternLM2ForCausalLM");
    EXPECT_EQ(ops::to_host(*device, internlm->parameters().values()),
              ops::to_host(*device, llama->parameters().values()));
    value_or_throw(save_parameters(saved_folder.path(), internlm->parameters(),
                                   {.source = packed_folder.path()}));
    EXPECT_EQ(slurp(saved_folder / "model.safetensors"),
              slurp(packed_folder / "model.safetensors"));
  }
}

}  // namespace
}  // namespace troupe::engine::checkpoint
