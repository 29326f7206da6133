#include "engine/generate/generation_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/text.h"

namespace troupe::engine::generate {

namespace {

/// Settings that say nothing about which tokens come out here, or repeat what is neutral; anything else unknown is reported as ignored.
constexpr std::array<std::string_view, 13> harmless = {
    "_from_model_config",   "transformers_version",    "bos_token_id",  "pad_token_id",      "decoder_start_token_id", "use_cache",
    "cache_implementation", "return_dict_in_generate", "output_scores", "output_attentions", "output_hidden_states",   "do_sample",
    "eos_token_id"};

Result<std::int64_t> read_bounded(const Json& value, std::string_view key, const std::string& where, std::int64_t low, std::int64_t high) {
  if (!value.is_integer()) return fail(Errc::bad_input, cat(where, ": ", key, ": expected an integer, found ", value.type_name()));
  if (value.integer() < low || value.integer() > high) {
    return fail(Errc::bad_input, cat(where, ": ", key, " is ", value.integer(), "; allowed: ", low, " to ", high));
  }
  return value.integer();
}

Result<> read_eos(const Json& value, const std::string& where, std::vector<std::int32_t>& into) {
  const Json::Array one = {value};
  for (const Json& id : value.is_array() ? value.array() : one) {
    auto read = read_bounded(id, "eos_token_id", where, 0, std::numeric_limits<std::int32_t>::max());
    if (!read) return fail(read.error());
    into.push_back(static_cast<std::int32_t>(*read));
  }
  return {};
}

/// True when `key` is a setting that SamplingParams has; then `value` is stored, or `error` says why not.
bool read_setting(std::string_view key, const Json& value, const std::string& where, SamplingParams& params, Result<>& error) {
  struct Real {
    std::string_view key;
    double* to;
  };
  for (const Real& real : {Real{"temperature", &params.temperature}, Real{"top_p", &params.top_p}, Real{"min_p", &params.min_p},
                           Real{"typical_p", &params.typical_p}, Real{"epsilon_cutoff", &params.epsilon_cutoff},
                           Real{"repetition_penalty", &params.repetition_penalty}}) {
    if (real.key != key) continue;
    if (value.is_number()) {
      *real.to = value.number();
    } else {
      error = fail(Errc::bad_input, cat(where, ": ", key, ": expected a number, found ", value.type_name()));
    }
    return true;
  }
  const auto store = [&]<class To>(To& to) {
    auto read = read_bounded(value, key, where, 0, std::numeric_limits<std::int32_t>::max());
    if (read) {
      to = static_cast<To>(*read);
    } else {
      error = fail(read.error());
    }
    return true;
  };
  if (key == "top_k") return store(params.top_k);
  if (key == "max_new_tokens") return store(params.max_new_tokens);
  if (key == "min_new_tokens") return store(params.min_new_tokens);
  if (key == "no_repeat_ngram_size") return store(params.no_repeat_ngram);
  return false;
}

/// Values that switch a setting off.
bool is_neutral(const Json& value) {
  return (value.is_bool() && !value.boolean()) || (value.is_number() && (value.number() == 0 || value.number() == 1)) ||
         (value.is_array() && value.array().empty()) || (value.is_string() && value.string().empty());
}

}  // namespace

Result<GenerationConfig> read_generation_config(const Json& file, const std::string& where) {
  if (!file.is_object()) return fail(Errc::bad_input, cat(where, ": expected an object, found ", file.type_name()));
  GenerationConfig config;
  config.params.greedy = true;
  for (const auto& [key, value] : file.object()) {
    if (value.is_null()) continue;
    Result<> error;
    if (key == "do_sample") {
      if (!value.is_bool()) return fail(Errc::bad_input, cat(where, ": do_sample: expected true or false, found ", value.type_name()));
      config.params.greedy = !value.boolean();
    } else if (key == "eos_token_id") {
      error = read_eos(value, where, config.eos_ids);
    } else if (!read_setting(key, value, where, config.params, error) && !is_neutral(value) &&
               std::find(harmless.begin(), harmless.end(), key) == harmless.end()) {
      config.ignored.push_back(key);
    }
    if (!error) return fail(error.error());
  }
  return config;
}

}  // namespace troupe::engine::generate
