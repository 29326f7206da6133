#include "engine/tokenizer/formats/config_tokens.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

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

  // As transformers adds the tokens of added_tokens_decoder: a text that is known keeps its id, and
  // an id that is taken keeps its text; a new text then gets the next free id.
  void add(AddedToken token) {
    if (token.content.empty()) return;
    if (const auto found = by_text_.find(token.content); found != by_text_.end())
      return note_difference(token, tokens_[found->second].id);
    const TokenId known = vocabulary_.find(token.content);
    const bool taken = ids_.contains(token.id) || vocabulary_.has(token.id);
    const TokenId id = known >= 0 ? known : taken ? next_free_id() : token.id;
    note_difference(token, id);
    token.id = id;
    ids_.insert(token.id);
    by_text_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  }

  /// Warns about the texts that have another id than `where` says.
  void warn(std::string_view where) const {
    if (differences_ == 0) return;
    log_warning(cat(where, ": ", differences_, differences_ == 1 ? " token has" : " tokens have",
                    " another id in the tokenizer's vocabulary, which is used, as in transformers; "
                    "the first: ",
                    first_difference_));
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
  TokenId next_free_id() const {
    const auto limit = static_cast<TokenId>(vocabulary_.limit());
    return ids_.empty() ? limit : std::max(limit, *ids_.rbegin() + 1);
  }

  std::string text_of(TokenId id) const {
    for (const AddedToken& token : tokens_)
      if (token.id == id) return token.content;
    return std::string(vocabulary_.piece(id));
  }

  void note_difference(const AddedToken& token, TokenId used) {
    if (token.id == used || ++differences_ > 1) return;
    const std::string there = text_of(token.id);
    first_difference_ =
        cat(quote(token.content), " has the id ", token.id, " there and ", used, " here",
            there.empty() ? "" : cat("; ", token.id, " is ", quote(there)));
  }

  std::vector<AddedToken>& tokens_;
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, std::size_t> by_text_;
  std::set<TokenId> ids_;
  std::size_t differences_ = 0;
  std::string first_difference_;
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
  std::map<TokenId, AddedToken> by_id;
  for (const auto& [key, value] : decoder.object()) {
    const auto number = parse_number<std::int64_t>(key);
    if (!number) return fail(Errc::bad_input, cat(where, ": ", quote(key), " is no id"));
    auto id = read_id(*number, where);
    RETURN_IF_ERROR(id);
    auto content = get_string(value, "content", where);
    RETURN_IF_ERROR(content);
    AddedToken token = read_token_flags(value);
    token.id = *id;
    token.content = std::move(*content);
    by_id.insert_or_assign(*id, std::move(token));
  }
  for (auto& each : by_id) out.add(std::move(each.second));
  out.warn(where);
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
    out.add(std::move(token));
  }
  out.warn(where);
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
