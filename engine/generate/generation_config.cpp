#include "engine/generate/generation_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"

namespace troupe::engine::generate {

namespace {

/// Members without effect on the generated tokens: cache, padding, return values, speculative
/// decoding.
constexpr std::array<std::string_view, 30> ignored_members = {"_from_model_config",
                                                              "_commit_hash",
                                                              "transformers_version",
                                                              "bos_token_id",
                                                              "pad_token_id",
                                                              "decoder_start_token_id",
                                                              "use_cache",
                                                              "cache_implementation",
                                                              "cache_config",
                                                              "max_cache_len",
                                                              "return_dict_in_generate",
                                                              "output_scores",
                                                              "output_logits",
                                                              "output_attentions",
                                                              "output_hidden_states",
                                                              "remove_invalid_values",
                                                              "low_memory",
                                                              "is_assistant",
                                                              "num_assistant_tokens",
                                                              "num_assistant_tokens_schedule",
                                                              "assistant_confidence_threshold",
                                                              "assistant_lookbehind",
                                                              "target_lookbehind",
                                                              "max_matching_ngram_size",
                                                              "prompt_lookup_num_tokens",
                                                              "use_mtp",
                                                              "compile_config",
                                                              "disable_compile",
                                                              "prefill_chunk_size",
                                                              "continuous_batching_config"};

/// Settings of transformers that troupe does not have.
constexpr std::array<std::string_view, 12> unsupported = {"guidance_scale",
                                                          "watermarking_config",
                                                          "penalty_alpha",
                                                          "dola_layers",
                                                          "num_beam_groups",
                                                          "diversity_penalty",
                                                          "force_words_ids",
                                                          "constraints",
                                                          "token_healing",
                                                          "assistant_early_exit",
                                                          "assistant_ensemble_weight",
                                                          "speculation_type"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

/// Values that disable a setting.
bool is_neutral(const Json& value) {
  return (value.is_bool() && !value.boolean()) ||
         (value.is_number() && (value.number() == 0 || value.number() == 1)) ||
         (value.is_array() && value.array().empty()) ||
         (value.is_string() && value.string().empty());
}

/// Reads members that are not SamplingParams, with the reader of a similar one.
Result<bool> read_length_or_end(std::string_view key, const Json& value, GenerationConfig& config) {
  const auto read = [&](std::string_view alike, auto SamplingParams::*from,
                        auto& to) -> Result<bool> {
    SamplingParams scratch;
    if (auto done = read_sampling_param(alike, value, scratch); !done) {
      return fail(done.error().code, cat(key, done.error().what.substr(alike.size())));
    }
    to = scratch.*from;
    return true;
  };
  if (key == "max_length")
    return read("max_new_tokens", &SamplingParams::max_new_tokens, config.max_length);
  if (key == "min_length")
    return read("min_new_tokens", &SamplingParams::min_new_tokens, config.min_length);
  if (key == "eos_token_id")
    return read("stop_token_ids", &SamplingParams::stop_tokens, config.eos_ids);
  return false;
}

Result<> read_member(const std::string& key, const Json& value, GenerationConfig& config) {
  if (value.is_null()) return {};
  for (const auto& known :
       {read_sampling_param(key, value, config.params), read_length_or_end(key, value, config)}) {
    RETURN_IF_ERROR(known);
    if (*known) return {};
  }
  if (contains(ignored_members, key) || is_neutral(value)) return {};
  if (contains(unsupported, key)) {
    return fail(Errc::unsupported,
                cat(key, " is ", value.is_number() ? value.dump() : quote(value.dump(), 60),
                    "; troupe does not support it, and without it the output would differ; remove "
                    "it from the file"));
  }
  config.ignored.push_back(key);
  return {};
}

}  // namespace

Result<GenerationConfig> read_generation_config(const Json& file, const std::string& where) {
  if (!file.is_object())
    return fail(Errc::bad_input, cat(where, ": expected an object, found ", file.type_name()));
  GenerationConfig config;
  config.params.greedy = true;
  config.params.max_new_tokens = 0;
  for (const auto& [key, value] : file.object()) {
    if (auto read = read_member(key, value, config); !read)
      return fail(read.error().code, cat(where, ": ", read.error().what));
  }
  const Json* top_k = file.find("top_k");
  if (!config.params.greedy && (!top_k || top_k->is_null())) config.params.top_k = 50;
  return config;
}

Result<> refuse_file_setting(std::string_view key, const Json& value) {
  if (value.is_null()) return {};
  constexpr std::pair<std::string_view, std::string_view> instead[] = {
      {"max_length", "max_new_tokens"},
      {"min_length", "min_new_tokens"},
      {"eos_token_id", "stop_token_ids"}};
  for (const auto& [file_key, own_key] : instead)
    if (key == file_key)
      return fail(
          Errc::usage,
          cat(key, " is read from generation_config.json only; for one prompt use ", own_key));
  if (contains(unsupported, key) && !is_neutral(value))
    return fail(Errc::usage,
                cat(key, " is ", value.is_number() ? value.dump() : quote(value.dump(), 60),
                    "; troupe does not support it, and without it the output would "
                    "differ; remove it"));
  return {};
}

Result<SamplingParams> for_prompt(SamplingParams params, const GenerationConfig& config,
                                  std::size_t prompt_length, std::int32_t otherwise) {
  const auto length = static_cast<std::int64_t>(prompt_length);
  if (params.max_new_tokens == 0 && config.max_length > 0) {
    if (length >= config.max_length) {
      return fail(Errc::usage,
                  cat("max_length of the model's generation_config.json is ", config.max_length,
                      " tokens, and the prompt has ", length, "; give max_new_tokens"));
    }
    params.max_new_tokens = static_cast<std::int32_t>(config.max_length - length);
  }
  if (params.max_new_tokens == 0) params.max_new_tokens = otherwise;
  if (params.min_new_tokens == 0 && config.min_length > length) {
    params.min_new_tokens = static_cast<std::int32_t>(
        std::min<std::int64_t>(config.min_length - length, params.max_new_tokens));
  }
  return params;
}

}  // namespace troupe::engine::generate
