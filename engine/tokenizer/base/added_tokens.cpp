#include "engine/tokenizer/base/added_tokens.h"

#include <set>

#include "engine/base/errors/check.h"
#include "engine/base/json/json.h"
#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::engine::tokenizer {
namespace {

Result<AddedToken> read_token(const Json& item, std::string_view where) {
  AddedToken out = read_token_flags(item);
  auto content = get_string(item, "content", where);
  RETURN_IF_ERROR(content);
  auto id = get_integer(item, "id", where);
  RETURN_IF_ERROR(id);
  if (*id < 0 || *id >= max_tokens)
    return fail(Errc::bad_input, cat(where, ": the id of the added token ", quote(*content),
                                     " must be from 0 to ", max_tokens - 1, ", found ", *id));
  out.content = std::move(*content);
  out.id = static_cast<TokenId>(*id);
  return out;
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

// Returns the end of the white space that begins at `at`.
std::size_t spaces_from(std::string_view text, std::size_t at) {
  while (at < text.size() && is_whitespace(code_point_at(text, at).value))
    at += utf8_length(text[at]);
  return at;
}

}  // namespace

AddedToken read_token_flags(const Json& object) {
  AddedToken out;
  const auto flag = [&](std::string_view key, bool otherwise) {
    const Json* value = object.find(key);
    return value && value->is_bool() ? value->boolean() : otherwise;
  };
  out.single_word = flag("single_word", false);
  out.lstrip = flag("lstrip", false);
  out.rstrip = flag("rstrip", false);
  out.special = flag("special", false);
  out.normalized = flag("normalized", !out.special);
  return out;
}

Result<std::vector<AddedToken>> read_added_tokens(const Json* list, const Vocabulary& vocabulary,
                                                  std::string_view where) {
  std::vector<AddedToken> out;
  if (!list || list->is_null()) return out;
  if (!list->is_array())
    return fail(Errc::bad_input, cat(where, ": must be an array, found ", list->type_name()));
  if (static_cast<std::int64_t>(list->array().size()) > max_tokens)
    return fail(Errc::bad_input, cat(where, ": too many tokens (", list->array().size(), ")"));
  std::set<TokenId> seen;
  for (const Json& item : list->array()) {
    auto token = read_token(item, where);
    RETURN_IF_ERROR(token);
    if (token->content.empty()) continue;
    const TokenId known = vocabulary.find(token->content);
    if (known >= 0 && known != token->id)
      return fail(Errc::bad_input, cat(where, ": ", quote(token->content), " has the id ",
                                       token->id, " here and ", known, " in the vocabulary"));
    if (known < 0 && vocabulary.has(token->id))
      return fail(Errc::bad_input,
                  cat(where, ": the id ", token->id, " of ", quote(token->content),
                      " is that of the piece ", quote(vocabulary.piece(token->id))));
    if (!seen.insert(token->id).second)
      return fail(Errc::bad_input,
                  cat(where, ": the id ", token->id, " is given to two tokens, one of them ",
                      quote(token->content)));
    out.push_back(std::move(*token));
  }
  return out;
}

TokenMatcher::TokenMatcher(std::vector<Entry> entries) : entries_(std::move(entries)) {
  for (std::size_t i = entries_.size(); i-- > 0;) {  // of equal texts the first has it
    if (entries_[i].text.empty()) continue;
    check(trie_.add(entries_[i].text, static_cast<std::int32_t>(i)),
          "added tokens: their length was not checked");
    starts_[static_cast<unsigned char>(entries_[i].text[0])] = true;
  }
}

std::int32_t TokenMatcher::longest_match_at(std::string_view text, std::size_t at) const {
  std::int32_t best = -1;
  for (ByteTrie::Node node = ByteTrie::root; at < text.size(); ++at) {
    node = trie_.step(node, static_cast<unsigned char>(text[at]));
    if (node == ByteTrie::none) break;
    if (trie_.value(node) >= 0) best = trie_.value(node);
  }
  return best;
}

bool TokenMatcher::accept(const AddedToken& token, std::string_view text, std::size_t begin,
                          std::size_t end) const {
  if (!token.single_word) return true;
  const bool before =
      begin == 0 || !is_word(code_point_at(text, previous_character(text, begin)).value);
  const bool after = end == text.size() || !is_word(code_point_at(text, end).value);
  return before && after;
}

void TokenMatcher::split(std::string_view text, bool keep_special_text,
                         std::vector<Segment>& out) const {
  std::size_t spaces_end = 0;
  std::size_t from = 0;  // what comes before has its segment
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t found =
        starts_[static_cast<unsigned char>(text[at])] ? longest_match_at(text, at) : -1;
    if (found < 0) {
      ++at;
      continue;
    }
    const Entry& entry = entries_[static_cast<std::size_t>(found)];
    std::size_t begin = at, end = at + entry.text.size();
    at = end;
    if ((keep_special_text && entry.token.special) || !accept(entry.token, text, begin, end))
      continue;
    while (entry.token.lstrip && begin > from &&
           is_whitespace(code_point_at(text, previous_character(text, begin)).value))
      begin = previous_character(text, begin);
    if (entry.token.rstrip) {
      if (end >= spaces_end) spaces_end = spaces_from(text, end);  // a run is walked once
      end = spaces_end;
    }
    if (from < begin)
      out.push_back(
          {-1, from, begin});  // a token may begin in the white space that the one before it took
    out.push_back({entry.token.id, begin, end});
    from = end;
  }
  if (from < text.size()) out.push_back({-1, from, text.size()});
}

}  // namespace troupe::engine::tokenizer
