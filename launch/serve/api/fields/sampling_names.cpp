#include "launch/serve/api/fields/sampling_names.h"

#include <algorithm>

#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

namespace {

constexpr Range of_openai{-2, 2};

constexpr RequestParam request_params[] = {
    {"temperature", "temperature", openai | vllm | llama | sglang},
    {"top_p", "top_p", openai | vllm | llama | sglang},
    {"top_k", "top_k", vllm | llama | sglang, Range{-1, 1e12}, "; -1: all"},
    {"min_p", "min_p", vllm | llama | sglang},
    {"typical_p", "typical_p", llama},
    {"repetition_penalty", "repetition_penalty", vllm | sglang},
    {"presence_penalty", "presence_penalty", openai | vllm | llama | sglang, of_openai},
    {"frequency_penalty", "frequency_penalty", openai | vllm | llama | sglang, of_openai},
    {"bad_words", "bad_words", vllm},
    {"max_new_tokens", "max_tokens", openai | vllm | llama | sglang},
    {"min_new_tokens", "min_tokens", vllm | sglang},
    {"stop", "stop", openai | vllm | llama | sglang},
    {"ignore_eos", "ignore_eos", vllm | llama | sglang}};

}  // namespace

const RequestParam* request_param(std::string_view name) {
  const auto* found = std::ranges::find(request_params, name, &RequestParam::name);
  return found == std::end(request_params) ? nullptr : found;
}

std::string_view request_name(std::string_view name) {
  const RequestParam* param = request_param(name);
  return param ? param->request : name;
}

bool is_common_field(std::string_view name) {
  return name != "max_new_tokens" && name != "stop";
}

}  // namespace troupe::launch::serve::api
