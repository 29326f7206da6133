// TokenType: the data types of an indexed dataset, with the codes of Megatron core's .idx files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::engine::data::megatron {

enum class TokenType : std::uint8_t {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f64 = 6,
  f32 = 7,
  u16 = 8,
};

/// nullopt if there is no type of this code.
std::optional<TokenType> token_type_of(std::uint8_t code);
/// Bytes of one element.
std::size_t bytes_of(TokenType type);
/// "uint16", as numpy names it.
const char* to_string(TokenType type);

/// What pretraining data is stored in: uint16 below 65,500 entries, else int32
/// (DType.optimal_dtype of Megatron core).
TokenType token_type_for(std::size_t vocabulary);

}  // namespace troupe::engine::data::megatron
