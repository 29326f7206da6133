// The folders of golden/models with a mixture of experts.
#pragma once

namespace troupe::test {

inline constexpr const char* mixture_models[] = {
    "mixtral",         "mixtral-config4", "qwen2-moe",  "qwen2-moe-norm", "qwen3-moe",
    "qwen3-moe-mixed", "olmoe",           "granitemoe", "phimoe",         "dots1",
    "glm4-moe",        "ernie4_5-moe",    "hunyuan-moe"};

}  // namespace troupe::test
