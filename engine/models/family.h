// What a family file offers, and small readers of config.json that all families share.
#pragma once

#include <optional>

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// One row of the table in spec.cpp. A new family is one file with a function of this form, and one row.
struct Family {
  const char* architecture;  ///< as in config.json's "architectures"
  const char* model_type;    ///< as in "model_type", for files without "architectures"
  Result<DecoderSpec> (*read)(const Json& config, const std::string& where);
};

Result<DecoderSpec> read_llama(const Json& config, const std::string& where);
Result<DecoderSpec> read_qwen2(const Json& config, const std::string& where);
Result<DecoderSpec> read_qwen3(const Json& config, const std::string& where);

/// A member with checks: absent gives `fallback`, or an error when there is none; outside [low, high] is an error.
Result<std::int64_t> size_of(const Json& config, std::string_view key, const std::string& where, std::int64_t low, std::int64_t high,
                             std::optional<std::int64_t> fallback = {});
Result<double> number_of(const Json& config, std::string_view key, const std::string& where, std::optional<double> fallback = {});
Result<bool> flag_of(const Json& config, std::string_view key, const std::string& where, bool fallback);

/// Refuses, by name, members whose presence would change the numbers and which `config`'s family does not have.
Result<> refuse_foreign_fields(const Json& config, const std::string& where);

/// The sizes that all decoder families share: vocabulary, width, layers, heads, head size, inner width, token ids.
Result<DecoderSpec> read_sizes(const Json& config, const std::string& where);

}  // namespace troupe::engine::models
