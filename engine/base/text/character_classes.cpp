#include "engine/base/text/character_classes.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <optional>

#include "engine/base/text/utf8.h"

// The reference library uses several tables of several ages: Rust's own and the regular
// expressions' are of Unicode 16, those of its normalizers of Unicode 8 to 12. ICU 72, used here,
// is of Unicode 15.

namespace troupe {
namespace {

struct CodePointRange {
  char32_t first, last;
};

// Binary search; `ranges` is sorted.
template <std::size_t Size>
bool in_ranges(const CodePointRange (&ranges)[Size], char32_t value) {
  const auto found =
      std::lower_bound(std::begin(ranges), std::end(ranges), value,
                       [](const CodePointRange& range, char32_t c) { return range.last < c; });
  return found != std::end(ranges) && found->first <= value;
}

// Younger than ICU's tables: digits, and other letters and marks of words.
constexpr CodePointRange younger_digits[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
    {0x11DE0, 0x11DE9}, {0x16130, 0x16139}, {0x16D70, 0x16D79},
    {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr CodePointRange younger_words[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79},
    {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};
constexpr CodePointRange younger_marks[] = {
    {0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
    {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}};
constexpr CodePointRange younger_capitals[] = {
    {0x1C89, 0x1C89}, {0xA7CB, 0xA7CC}, {0xA7DA, 0xA7DA}, {0xA7DC, 0xA7DC}, {0x10D50, 0x10D65}};
constexpr CodePointRange younger_small_letters[] = {
    {0x1C8A, 0x1C8A}, {0xA7CD, 0xA7CD}, {0xA7DB, 0xA7DB}, {0x10D70, 0x10D85}};
constexpr CodePointRange younger_punctuation[] = {
    {0x1B4E, 0x1B4F},   {0x1B7F, 0x1B7F},   {0x10D6E, 0x10D6E}, {0x113D4, 0x113D5},
    {0x113D7, 0x113D8}, {0x11BE1, 0x11BE1}, {0x16D6D, 0x16D6F}, {0x1E5FF, 0x1E5FF}};
// Younger symbols than PCRE2's.
constexpr CodePointRange younger_symbols[] = {
    {0x2427, 0x2429},   {0x2FFC, 0x2FFF},   {0x31E4, 0x31E5},   {0x31EF, 0x31EF},
    {0x10D8E, 0x10D8F}, {0x1CC00, 0x1CCEF}, {0x1CD00, 0x1CEB3}, {0x1F6DC, 0x1F6DC},
    {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F}, {0x1F7D9, 0x1F7D9}, {0x1F8B2, 0x1F8BB},
    {0x1F8C0, 0x1F8C1}, {0x1FA75, 0x1FA77}, {0x1FA87, 0x1FA89}, {0x1FA8F, 0x1FA8F},
    {0x1FAAD, 0x1FAAF}, {0x1FABB, 0x1FABF}, {0x1FAC6, 0x1FAC6}, {0x1FACE, 0x1FACF},
    {0x1FADA, 0x1FADC}, {0x1FADF, 0x1FADF}, {0x1FAE8, 0x1FAE9}, {0x1FAF7, 0x1FAF8},
    {0x1FBCB, 0x1FBEF}};

// Lower case letters of Unicode 16 and 17, which ICU 72 does not know and the library does.
std::optional<char32_t> younger_lower(char32_t c) {
  if (c < 0x1C89) return std::nullopt;
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  switch (c) {
    case 0xA7CB:
      return 0x264;
    case 0xA7DC:
      return 0x19B;
    case 0x1C89:
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA:
      return c + 1;
    default:
      return std::nullopt;
  }
}

bool assigned_in(char32_t value, int version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(value), age);
  return age[0] != 0 && age[0] <= version;
}

bool has_category(char32_t value, std::uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(value)) & mask) != 0;
}

}  // namespace

bool is_whitespace(char32_t value) {
  return u_isUWhiteSpace(static_cast<UChar32>(value)) != 0;
}

bool is_numeric(char32_t value) {
  return has_category(value, U_GC_N_MASK) || (value >= 0x10D40 && in_ranges(younger_digits, value));
}

bool is_mark(char32_t value) {
  return value >= 0x300 &&
         (value == 0x1CF2 || value == 0x1CF3 ||
          (has_category(value, U_GC_M_MASK) && assigned_in(value, 9))) &&
         value != 0x111C9;
}

bool is_nonspacing_mark(char32_t value) {
  if (value < 0x300) return false;
  if (value == 0x1885 || value == 0x1886 || value == 0xA9BD || value == 0x111C9)
    return false;  // became marks later
  return value == 0x1734 || (has_category(value, U_GC_MN_MASK) && assigned_in(value, 8));
}

bool is_control(char32_t value) {
  return has_category(value, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && assigned_in(value, 8);
}

bool is_punctuation(char32_t value) {
  if (value < 0x80)
    return (value > 0x20 && value < 0x30) || (value > 0x39 && value < 0x41) ||
           (value > 0x5A && value < 0x61) || (value > 0x7A && value < 0x7F);
  if (value == 0x166D || value == 0x111C9) return true;  // are something else since
  return has_category(value, U_GC_P_MASK) && assigned_in(value, 8);
}

bool is_word(char32_t value) {
  if (value < 0x80)
    return (value >= '0' && value <= '9') || (value >= 'a' && value <= 'z') ||
           (value >= 'A' && value <= 'Z') || value == '_';
  const auto c = static_cast<UChar32>(value);
  return has_category(value, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) ||
         in_ranges(younger_words, value);
}

int terminal_columns(char32_t value) {
  constexpr char32_t soft_hyphen = 0xAD;  // a format character that terminals show
  if (value == soft_hyphen) return 1;
  if (has_category(value, U_GC_MN_MASK | U_GC_ME_MASK | U_GC_CF_MASK)) return 0;
  const int width = u_getIntPropertyValue(static_cast<UChar32>(value), UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

void append_lower(std::string& out, char32_t value) {
  if (value == 0x130) {
    out.append("i\xCC\x87");
    return;
  }
  append_utf8(out, younger_lower(value).value_or(
                       static_cast<char32_t>(u_tolower(static_cast<UChar32>(value)))));
}

// Characters that Unicode has added since version 14, which PCRE2 10.42 supports, have the class of
// the letter, mark, digit or symbol given for them.
char32_t older_equivalent(char32_t value) {
  if (value < 0x897 || (value > 0xA7DC && value < 0x105C0) || (value >= 0x1F300 && value < 0x1F6DC))
    return value;
  if (value >= 0x3400 && value < 0xA7CB) return value;
  if (value >= 0x20000 && value < 0x2B739) return value;
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(value), age);
  if (age[0] != 0 && age[0] < 15) return value;
  const bool short_form = value < 0x10000, known = age[0] != 0;
  const auto of = [&](std::uint32_t category, const auto& ranges) {
    return known ? has_category(value, category) : in_ranges(ranges, value);
  };
  if (value >= 0x20000 && (known || in_ranges(younger_words, value))) return 0x20000;
  if (in_ranges(younger_symbols, value)) return short_form ? 0xA490 : 0x1F600;
  if (of(U_GC_M_MASK, younger_marks)) return short_form ? 0xA66F : 0x10A01;
  if (of(U_GC_P_MASK, younger_punctuation)) return short_form ? 0xA4FE : 0x10100;
  if (of(U_GC_LU_MASK, younger_capitals)) return short_form ? 0xA640 : 0x10400;
  if (of(U_GC_LL_MASK, younger_small_letters)) return short_form ? 0xAB70 : 0x10428;
  if (known && has_category(value, U_GC_NO_MASK)) return 0x10107;
  if (of(U_GC_ND_MASK, younger_digits) && (known || in_ranges(younger_words, value)))
    return 0x104A0;  // two rows of digits are younger still
  if (known ? has_category(value, U_GC_L_MASK) : in_ranges(younger_words, value))
    return short_form ? 0xA4D0 : 0x10A00;
  return value;
}

}  // namespace troupe
