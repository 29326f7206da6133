#include "engine/tokenizer/formats/known_members.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/base/text.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::array<std::string_view, 9> of_file{"version",        "truncation", "padding",
                                                  "added_tokens",   "normalizer", "pre_tokenizer",
                                                  "post_processor", "decoder",    "model"};

// Of models, normalizers, pre-tokenizers, post-processors and decoders together: a member that one
// of them has is known in all.
constexpr std::array<std::string_view, 53> of_components{
    "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges", "vocab", "merges", "unk_id", "max_input_chars_per_word",
    // normalizers
    "clean_text", "handle_chinese_chars", "strip_accents", "lowercase", "strip_left", "strip_right",
    "normalizers", "pattern", "content", "prepend", "precompiled_charsmap",
    // pre-tokenizers
    "add_prefix_space", "trim_offsets", "use_regex", "delimiter", "replacement", "prepend_scheme",
    "split", "str_rep", "pretokenizers", "behavior", "invert", "individual_digits", "length",
    // post-processors
    "sep", "cls", "single", "pair", "special_tokens", "processors",
    // decoders
    "suffix", "prefix", "cleanup", "pad_token", "word_delimiter_token", "decoders", "start", "stop",
    // added tokens
    "id", "single_word", "lstrip"};

// Lists of components.
bool is_list(std::string_view name) {
  return name == "normalizers" || name == "pretokenizers" || name == "processors" ||
         name == "decoders";
}

template <std::size_t n>
Result<> check_against(const Json& value, const std::array<std::string_view, n>& known,
                       const std::string& where) {
  if (!value.is_object()) return {};  // its reader reports that
  for (const auto& [name, member] : value.object())
    if (!member.is_null() && std::ranges::find(known, name) == known.end())
      return fail(Errc::unsupported,
                  cat(where, ": the member ", quote(name, 60),
                      " is not known and may change the ids; remove it if it has no effect"));
  return {};
}

Result<> check_component(const Json& component, const std::string& where) {
  RETURN_IF_ERROR(check_against(component, of_components, where));
  if (!component.is_object()) return {};
  for (const auto& [name, member] : component.object()) {
    if (!is_list(name) || !member.is_array()) continue;
    for (const Json& each : member.array()) RETURN_IF_ERROR(check_component(each, where));
  }
  return {};
}

}  // namespace

Result<> check_known_members(const Json& file, const std::string& where) {
  RETURN_IF_ERROR(check_against(file, of_file, where));
  for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder", "model"})
    if (const Json* component = file.find(name))
      RETURN_IF_ERROR(check_component(*component, cat(where, ": \"", name, "\"")));
  return {};
}

Result<> check_config_settings(const Json& config, const std::string& where) {
  const Json* split = config.find("split_special_tokens");
  if (split && *split == Json(true))
    return fail(Errc::unsupported,
                cat(where,
                    ": \"split_special_tokens\": true is not supported: special tokens in a "
                    "text are matched"));
  const Json* sampling = config.find("sp_model_kwargs");
  if (sampling && sampling->find("enable_sampling") &&
      *sampling->find("enable_sampling") == Json(true))
    return fail(Errc::unsupported,
                cat(where,
                    ": \"sp_model_kwargs\": enable_sampling is not supported: a text always "
                    "has the same ids"));
  return {};
}

}  // namespace troupe::engine::tokenizer
