#include "engine/tokenizer/formats/config_tokens.h"

#include <charconv>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "engine/base/text.h"

namespace troupe::engine::tokenizer {
namespace {

class ConfigTokens {
 public:
  ConfigTokens(std::vector<AddedToken>& tokens, const Vocabulary& vocabulary)
      : tokens_(tokens), vocabulary_(vocabulary) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      by_text_.emplace(tokens_[i].content, i);
      ids_.insert(tokens_[i].id);
    }
  }

  Result<> add(AddedToken token, std::string_view where) {
    if (token.content.empty() || by_text_.contains(token.content)) return {};
    const TokenId known = vocabulary_.find(token.content);
    if ((known >= 0 && known != token.id) || (known < 0 && vocabulary_.has(token.id)) ||
        ids_.contains(token.id))
      return fail(Errc::bad_input, cat(where, ": gives ", quote(token.content), " the id ",
                                       token.id, ", which the tokenizer gives to ",
                                       known >= 0 ? cat("no token but has ", known, " for it")
                                                  : std::string("another token")));
    ids_.insert(token.id);
    by_text_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
    return {};
  }

  // Adds a token with a role: known tokens become special, pieces of the model are matched from now
  // on, others are ignored.
  void add_role(const Json& value) {
    const bool plain = value.is_string();
    const Json* content = plain ? &value : value.find("content");
    if (!content || !content->is_string()) return;
    if (const auto found = by_text_.find(content->string()); found != by_text_.end()) {
      tokens_[found->second].special = true;
      return;
    }
    const TokenId id = vocabulary_.find(content->string());
    if (id < 0 || ids_.contains(id) || content->string().empty()) return;
    AddedToken token = read_token_flags(value);
    token.content = content->string();
    token.id = id;
    token.special = true;
    if (plain) token.normalized = false;
    ids_.insert(id);
    by_text_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  }

 private:
  std::vector<AddedToken>& tokens_;
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::size_t> by_text_;
  std::set<TokenId> ids_;
};

Result<TokenId> read_id(std::int64_t id, std::string_view where) {
  if (id < 0 || id >= max_tokens)
    return fail(Errc::bad_input, cat(where, ": the id of an added token must be from 0 to ",
                                     max_tokens - 1, ", found ", id));
  return static_cast<TokenId>(id);
}

// {"151643": {"content": "<|endoftext|>", "special": true, ...}, ...}
Result<> add_decoder(ConfigTokens& out, const Json& decoder, const std::string& where) {
  if (!decoder.is_object())
    return fail(Errc::bad_input, cat(where, ": must be an object, found ", decoder.type_name()));
  for (const auto& [key, value] : decoder.object()) {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (error != std::errc() || end != key.data() + key.size())
      return fail(Errc::bad_input, cat(where, ": ", quote(key), " is no id"));
    auto id = read_id(number, where);
    RETURN_IF_ERROR(id);
    auto content = get_string(value, "content", where);
    RETURN_IF_ERROR(content);
    AddedToken token = read_token_flags(value);
    token.id = *id;
    token.content = std::move(*content);
    RETURN_IF_ERROR(out.add(std::move(token), where));
  }
  return {};
}

// added_tokens.json: {"<|im_end|>": 151645, ...}
Result<> add_list(ConfigTokens& out, const Json& list, const std::string& where) {
  if (!list.is_object())
    return fail(Errc::bad_input, cat(where, ": must be an object, found ", list.type_name()));
  for (const auto& [content, value] : list.object()) {
    auto id = read_id(value.is_integer() ? value.integer() : -1, where);
    RETURN_IF_ERROR(id);
    AddedToken token;
    token.id = *id;
    token.content = content;
    RETURN_IF_ERROR(out.add(std::move(token), where));
  }
  return {};
}

void add_roles(ConfigTokens& out, const Json& config, const Json& map, const Json& defaults) {
  for (const char* role : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    for (const Json* from : {&config, &map, &defaults}) {
      const Json* value = from->find(role);
      if (!value) continue;
      out.add_role(*value);
      break;
    }
  }
  for (const Json* from : {&config, &map}) {
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
      if (const Json* list = from->find(key); list && list->is_array())
        for (const Json& value : list->array()) out.add_role(value);
  }
}

}  // namespace

Result<> add_config_tokens(std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                           const std::string& folder, const Json& config, const Json& map,
                           const Json& defaults) {
  ConfigTokens out(tokens, vocabulary);
  if (const Json* decoder = config.find("added_tokens_decoder"))
    RETURN_IF_ERROR(
        add_decoder(out, *decoder, folder + "/tokenizer_config.json: \"added_tokens_decoder\""));
  const std::string list = folder + "/added_tokens.json";
  std::error_code ignored;
  if (std::filesystem::exists(list, ignored)) {
    auto read = read_json(list);
    RETURN_IF_ERROR(read);
    RETURN_IF_ERROR(add_list(out, *read, list));
  }
  add_roles(out, config, map, defaults);
  return {};
}

}  // namespace troupe::engine::tokenizer
