#include "engine/models/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/support/assemble_stored.h"
#include "tests/support/llama_spec.h"

namespace troupe::engine::models {
namespace {

DecoderSpec small(std::string architecture) {
  DecoderSpec spec = test::llama_spec({.vocabulary = 7,
                                       .width = 3,
                                       .layers = 2,
                                       .inner = 4,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_size = 6});
  spec.architecture = std::move(architecture);
  return spec;
}

StoredTensor named(const std::vector<StoredTensor>& all, const std::string& name) {
  for (const auto& tensor : all)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

/// Values by parameter: 1000 * its place in the list + the place in it.
std::map<std::string, std::vector<float>> numbered(const DecoderSpec& spec) {
  std::map<std::string, std::vector<float>> out;
  float next = 0;
  for (const auto& wanted : parameter_list(spec)) {
    auto& values = out[wanted.name];
    values.resize(static_cast<std::size_t>(wanted.shape.count()));
    std::iota(values.begin(), values.end(), next);
    next += 1000;
  }
  return out;
}

TEST(Storage, OfALlamaIsWhatItIs) {
  const auto spec = small("LlamaForCausalLM");
  const auto all = stored_tensors(spec);
  const auto list = parameter_list(spec);
  ASSERT_EQ(all.size(), list.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name, list[i].name);
    EXPECT_TRUE(all[i].plain());
  }
}

TEST(Storage, PacksAndUnpacksEveryFamilyWithoutLoss) {
  for (const char* name :
       {"LlamaForCausalLM", "Phi3ForCausalLM", "GlmForCausalLM", "Glm4ForCausalLM",
        "Gemma2ForCausalLM", "Olmo2ForCausalLM", "CohereForCausalLM", "Starcoder2ForCausalLM",
        "BloomForCausalLM", "GPT2LMHeadModel", "InternLM2ForCausalLM", "FalconForCausalLM",
        "GPTNeoXForCausalLM", "HunYuanDenseV1ForCausalLM"})
    for (const HeadOrder order : {HeadOrder{}, HeadOrder{6, 6, true}, HeadOrder{6, 2, true},
                                  HeadOrder{6, 4, false}, HeadOrder{6, 2, false}}) {
      auto spec = small(name);
      spec.head_order = order;
      spec.attention_bias = true;
      const auto values = numbered(spec);
      std::map<std::string, std::vector<float>> back;
      for (const auto& [parameter, v] : values) back[parameter].assign(v.size(), -1.0f);
      for (const auto& tensor : stored_tensors(spec)) {
        const auto stored = test::assemble_stored(
            tensor, [&](const std::string& parameter) { return values.at(parameter).data(); });
        for (const auto& rows : tensor.rows)
          extract_parameter(tensor, stored.data(), rows.parameter, back.at(rows.parameter).data());
      }
      EXPECT_EQ(back, values) << name << ", " << order.rotary_dim << " channels turn";
    }
}

TEST(Storage, InterleavedPairsBecomeHalves) {
  auto spec = small("CohereForCausalLM");
  spec.head_order = {6, 6, true};
  const Rows rows =
      named(stored_tensors(spec), "model.layers.0.self_attn.k_proj.weight").rows.front();
  std::vector<std::int64_t> found;
  for (std::int64_t r = 0; r < rows.count; ++r) found.push_back(rows.row(r));
  EXPECT_THAT(found, testing::ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11))
      << "stored 2i is i, 2i + 1 is i + K/2";
}

TEST(Storage, OfHalvesThatTurnInPartTheRestFillsUp) {
  const Rows rows{"x", 0, 6, {6, 4, false}};
  std::vector<std::int64_t> found;
  for (std::int64_t r = 0; r < rows.count; ++r) found.push_back(rows.row(r));
  EXPECT_THAT(found, testing::ElementsAre(0, 1, 3, 4, 2, 5))
      << "pairs (0, 2) and (1, 3) turn, 4 and 5 do not";
}

TEST(Storage, FusedTensorsHaveTheRowsOfTheirParts) {
  const auto qkv = [](const char* name, const char* tensor) {
    std::vector<std::string> parts;
    const StoredTensor fused = named(stored_tensors(small(name)), tensor);
    for (const auto& rows : fused.rows)
      parts.push_back(rows.parameter.substr(rows.parameter.find("attn.") + 5, 1) +
                      std::to_string(rows.first) + "+" + std::to_string(rows.count));
    return parts;
  };
  EXPECT_THAT(qkv("Phi3ForCausalLM", "model.layers.1.self_attn.qkv_proj.weight"),
              testing::ElementsAre("q0+24", "k0+12", "v0+12"));
  EXPECT_THAT(qkv("InternLM2ForCausalLM", "model.layers.0.attention.wqkv.weight"),
              testing::ElementsAre("q0+12", "k0+6", "v0+6", "q12+12", "k6+6", "v6+6"));
  const auto all = stored_tensors(small("GPT2LMHeadModel"));
  EXPECT_THAT(named(all, "transformer.h.0.attn.c_attn.weight").shape(), testing::ElementsAre(3, 48))
      << "the other way round";
  EXPECT_THAT(named(all, "transformer.wte.weight").shape(), testing::ElementsAre(7, 3));
}

TEST(Storage, ATokenClassifierOfGpt2CallsItsHeadAsTransformersDoes) {
  auto spec = small("GPT2LMHeadModel");
  spec.labels = 2;
  EXPECT_EQ(stored_tensors(spec).back().name, "score.weight");
  spec.score_bias = true;
  EXPECT_EQ(stored_tensors(spec).back().name, "classifier.bias");
}

}  // namespace
}  // namespace troupe::engine::models
