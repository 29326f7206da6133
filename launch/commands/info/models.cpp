#include "launch/commands/info/models.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "engine/models/families.h"

namespace troupe::launch::commands {
namespace {

/// A row of MindSpeed-LLM's table of dense models (docs/pytorch/models/dense_model.md, and
/// docs/models/dense_model.md of release 2.0.0), with the architecture of its published files.
struct DenseModel {
  std::string_view name, sizes, architecture;
};

constexpr auto dense_models = std::to_array<DenseModel>({
    {"Aquila", "7B", "AquilaModel"},
    {"Aquila2", "7B, 34B", "AquilaForCausalLM"},
    {"Baichuan", "7B", "BaiChuanForCausalLM"},
    {"Baichuan", "13B", "BaichuanForCausalLM"},
    {"Baichuan2", "7B, 13B", "BaichuanForCausalLM"},
    {"Bloom", "7B1, 176B", "BloomForCausalLM"},
    {"ChatGLM3", "6B", "ChatGLMModel"},
    {"GLM4", "9B", "ChatGLMModel"},
    {"CodeLlama", "34B", "LlamaForCausalLM"},
    {"InternLM", "7B, 65B", "InternLMForCausalLM"},
    {"InternLM2", "20B", "InternLM2ForCausalLM"},
    {"InternLM2.5", "1.8B, 7B, 20B", "InternLM2ForCausalLM"},
    {"InternLM3", "8B", "InternLM3ForCausalLM"},
    {"LLaMA", "7B, 13B, 33B, 65B", "LlamaForCausalLM"},
    {"LLaMA2", "7B, 13B, 34B, 70B", "LlamaForCausalLM"},
    {"LLaMA3", "8B, 70B", "LlamaForCausalLM"},
    {"LLaMA3.1", "8B, 50B, 70B, 200B, 405B", "LlamaForCausalLM"},
    {"LLaMA3.2", "1B, 3B", "LlamaForCausalLM"},
    {"LLaMA3.3", "70B-Instruct", "LlamaForCausalLM"},
    {"Qwen", "7B, 14B, 72B", "QWenLMHeadModel"},
    {"Qwen1.5", "0.5B, 1.8B, 4B, 7B, 14B, 32B, 72B, 110B", "Qwen2ForCausalLM"},
    {"CodeQwen1.5", "7B", "Qwen2ForCausalLM"},
    {"Qwen2", "0.5B, 1.5B, 7B, 72B", "Qwen2ForCausalLM"},
    {"Qwen2.5", "0.5B, 1.5B, 3B, 7B, 14B, 32B, 72B", "Qwen2ForCausalLM"},
    {"Qwen3", "0.6B, 1.7B, 4B, 8B, 14B, 32B", "Qwen3ForCausalLM"},
    {"QwQ", "32B", "Qwen2ForCausalLM"},
    {"Qwen2.5-Math", "1.5B, 7B, 72B", "Qwen2ForCausalLM"},
    {"CodeQwen2.5", "7B", "Qwen2ForCausalLM"},
    {"Yi", "9B, 34B", "LlamaForCausalLM"},
    {"Yi1.5", "6B, 9B, 34B", "LlamaForCausalLM"},
    {"Mistral", "7B", "MistralForCausalLM"},
    {"Gemma", "2B, 7B", "GemmaForCausalLM"},
    {"Gemma2", "9B, 27B", "Gemma2ForCausalLM"},
    {"GPT3", "175B", "GPT2LMHeadModel"},
    {"grok-1", "40B", "Grok1ModelForCausalLM"},
    {"MiniCPM", "2B", "MiniCPMForCausalLM"},
    {"MiniCPM3", "4B", "MiniCPM3ForCausalLM"},
    {"Phi3.5", "mini-instruct", "Phi3ForCausalLM"},
    {"DeepSeek-Math", "7B", "LlamaForCausalLM"},
    {"DeepSeek-R1-Distill-Qwen", "1.5B, 7B, 14B, 32B", "Qwen2ForCausalLM"},
    {"DeepSeek-R1-Distill-LLaMA", "8B, 70B", "LlamaForCausalLM"},
    {"Seed-OSS", "36B", "SeedOssForCausalLM"},
});

bool loads(const DenseModel& model) {
  return engine::models::find_family(model.architecture) != nullptr;
}

Json to_json() {
  Json::Array rows;
  for (const DenseModel& model : dense_models)
    rows.push_back(Json::Object{{"model", std::string(model.name)},
                                {"sizes", std::string(model.sizes)},
                                {"architecture", std::string(model.architecture)},
                                {"usable", loads(model)}});
  return rows;
}

}  // namespace

int list_models(bool as_json) {
  if (as_json) {
    std::cout << to_json().dump() << '\n';
    return 0;
  }
  for (const DenseModel& model : dense_models)
    std::cout << std::left << std::setw(27) << model.name << std::setw(44) << model.sizes
              << model.architecture << (loads(model) ? "" : " (not supported)") << '\n';
  return 0;
}

}  // namespace troupe::launch::commands
