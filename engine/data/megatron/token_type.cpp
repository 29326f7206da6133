#include "engine/data/megatron/token_type.h"

#include "engine/base/check.h"

namespace troupe::engine::data::megatron {
namespace {

struct Kind {
  TokenType type;
  std::size_t bytes;
  const char* name;
};
constexpr Kind kinds[] = {
    {TokenType::u8, 1, "uint8"},    {TokenType::i8, 1, "int8"},    {TokenType::i16, 2, "int16"},
    {TokenType::i32, 4, "int32"},   {TokenType::i64, 8, "int64"},  {TokenType::f64, 8, "float64"},
    {TokenType::f32, 4, "float32"}, {TokenType::u16, 2, "uint16"},
};

const Kind& kind_of(TokenType type) {
  const auto code = static_cast<std::size_t>(type);
  check(code >= 1 && code <= std::size(kinds), "a token type without a code");
  return kinds[code - 1];
}

}  // namespace

std::optional<TokenType> token_type_of(std::uint8_t code) {
  if (code < 1 || code > std::size(kinds)) return std::nullopt;
  return static_cast<TokenType>(code);
}

std::size_t bytes_of(TokenType type) {
  return kind_of(type).bytes;
}

const char* to_string(TokenType type) {
  return kind_of(type).name;
}

TokenType token_type_for(std::size_t vocabulary) {
  return vocabulary < 65500 ? TokenType::u16 : TokenType::i32;
}

}  // namespace troupe::engine::data::megatron
