#include "engine/tokenizer/base/vocabulary.h"

#include <functional>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {

Result<Vocabulary> Vocabulary::from_json(const Json& pieces, std::string_view where) {
  if (!pieces.is_object())
    return fail(
        Errc::bad_input,
        cat(where, ": \"vocab\" must be an object of pieces and ids, found ", pieces.type_name()));
  const auto& members = pieces.object();
  if (static_cast<std::int64_t>(members.size()) > max_tokens)
    return fail(Errc::bad_input,
                cat(where, ": ", members.size(), " pieces; at most ", max_tokens, " are read"));
  Vocabulary out;
  for (const auto& [piece, id] : members) {
    if (!id.is_integer() || id.integer() < 0 || id.integer() >= max_tokens)
      return fail(Errc::bad_input, cat(where, ": the id of the piece ", quote(piece),
                                       " must be an integer from 0 to ", max_tokens - 1, ", found ",
                                       quote(id.dump(), 40)));
    const auto number = static_cast<TokenId>(id.integer());
    if (!out.add(piece, number))
      return fail(Errc::bad_input, cat(where, ": the id ", number, " is given to two pieces, ",
                                       quote(out.piece(number)), " and ", quote(piece)));
  }
  return out;
}

std::size_t Vocabulary::slot_of(std::string_view piece) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(piece)&mask;
  while (table_[slot] >= 0 && this->piece(table_[slot]) != piece) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow() {
  table_.assign(table_.empty() ? 64 : table_.size() * 2, -1);
  for (std::size_t id = 0; id < spans_.size(); ++id)
    if (spans_[id].taken)
      table_[slot_of(piece(static_cast<TokenId>(id)))] = static_cast<TokenId>(id);
}

bool Vocabulary::add(std::string_view piece, TokenId id) {
  if (has(id) || find(piece) >= 0) return false;
  set(piece, id);
  return true;
}

void Vocabulary::set(std::string_view piece, TokenId id) {
  if (2 * (count_ + 1) > table_.size()) grow();
  const std::size_t slot = slot_of(piece);
  const auto index = static_cast<std::size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  spans_[index] = {static_cast<std::uint32_t>(arena_.size()),
                   static_cast<std::uint32_t>(piece.size()), true};
  arena_.append(piece);
  table_[slot] = id;
  ++count_;
}

TokenId Vocabulary::find(std::string_view piece) const {
  return table_.empty() ? -1 : table_[slot_of(piece)];
}

std::string_view Vocabulary::piece(TokenId id) const {
  if (!has(id)) return {};
  const Span& span = spans_[static_cast<std::size_t>(id)];
  return std::string_view(arena_).substr(span.begin, span.size);
}

}  // namespace troupe::engine::tokenizer
