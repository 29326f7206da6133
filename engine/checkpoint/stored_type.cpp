#include "engine/checkpoint/stored_type.h"

#include <array>
#include <cstddef>

namespace troupe::engine::checkpoint {
namespace {

struct Row {
  std::string_view name;
  unsigned bits;
};

// Indexed by the enum.
constexpr std::array<Row, 22> rows = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

}  // namespace

std::string_view to_string(StoredType type) {
  return rows[static_cast<std::size_t>(type)].name;
}

std::optional<StoredType> stored_type(std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name) return static_cast<StoredType>(i);
  return std::nullopt;
}

unsigned bits_of(StoredType type) {
  return rows[static_cast<std::size_t>(type)].bits;
}

}  // namespace troupe::engine::checkpoint
