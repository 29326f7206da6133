// The folders of golden/models with a model whose layers have one MLP.
#pragma once

namespace troupe::test {

inline constexpr const char* dense_models[] = {"llama",
                                               "llama-tied",
                                               "llama-linear-rope",
                                               "llama-dynamic-rope",
                                               "llama-bias-headdim",
                                               "llama3-rope",
                                               "llama3-rope-config4",
                                               "internlm-style-llama-mha",
                                               "mistral-sliding",
                                               "qwen2",
                                               "qwen2-yarn",
                                               "qwen2-yarn-config4",
                                               "qwen3",
                                               "phi3",
                                               "phi3-longrope",
                                               "glm",
                                               "glm4",
                                               "gemma",
                                               "gemma2",
                                               "gemma3",
                                               "olmo2",
                                               "granite",
                                               "cohere",
                                               "starcoder2",
                                               "smollm3",
                                               "bloom",
                                               "gpt2"};

}  // namespace troupe::test
