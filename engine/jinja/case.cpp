#include "engine/jinja/case.h"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>

#include <algorithm>

#include "engine/base/text/character_classes.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/jinja/string_search.h"

namespace troupe::engine::jinja {
namespace {

using Mapping = int32_t (*)(const UCaseMap*, char*, int32_t, const char*, int32_t, UErrorCode*);

struct RootCaseMap {
  UErrorCode status = U_ZERO_ERROR;
  UCaseMap* map = ucasemap_open("", U_TITLECASE_NO_BREAK_ADJUSTMENT, &status);
  ~RootCaseMap() { ucasemap_close(map); }
};

// The full mappings of Unicode: one character may become several.
std::string mapped(Mapping mapping, std::string_view text) {
  static const RootCaseMap root;
  std::string out(text.size() * 3 + 8, '\0');
  UErrorCode status = U_ZERO_ERROR;
  const int32_t size = mapping(root.map, out.data(), static_cast<int32_t>(out.size()), text.data(),
                               static_cast<int32_t>(text.size()), &status);
  if (U_FAILURE(status)) raise("a text whose case cannot be changed");
  out.resize(static_cast<std::size_t>(size));
  return out;
}

char ascii_changed(char c, bool up) {
  const bool letter = up ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
  return letter ? static_cast<char>(c ^ 0x20) : c;
}

std::string title_form(std::string_view character) {
  if (character.size() == 1) return std::string(1, ascii_changed(character[0], true));
  static const auto to_title = [](const UCaseMap*, char* out, int32_t room, const char* text,
                                  int32_t size, UErrorCode* status) {
    thread_local RootCaseMap own;  // it keeps the place of its search for words
    return ucasemap_utf8ToTitle(own.map, out, room, text, size, status);
  };
  return mapped(to_title, character);
}

bool cased(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED);
}

// A capital sigma has another lower-case form at the end of a word: after a letter, and not before
// one.
bool final_sigma(const std::string& text, std::size_t at) {
  const auto ignorable = [](char32_t c) {
    return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASE_IGNORABLE);
  };
  bool behind_letter = false;
  for (std::size_t i = at; i > 0;) {
    do --i;
    while ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
    const char32_t c = code_point_at(text, i).value;
    if (ignorable(c)) continue;
    behind_letter = cased(c);
    break;
  }
  for (std::size_t i = at + utf8_length(text[at]); behind_letter && i < text.size();
       i += utf8_length(text[i])) {
    const char32_t c = code_point_at(text, i).value;
    if (!ignorable(c)) return !cased(c);
  }
  return behind_letter;
}

std::string lower_at(const std::string& text, std::size_t at, std::size_t size) {
  constexpr char32_t sigma = 0x3A3;
  if (size == 1) return std::string(1, ascii_changed(text[at], false));
  if (code_point_at(text, at).value == sigma) return final_sigma(text, at) ? "ς" : "σ";
  return mapped(ucasemap_utf8ToLower, std::string_view(text).substr(at, size));
}

// Replaces each character by map(character, its offset).
template <class Map>
std::string each_character(const std::string& text, Map map) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
    out += map(code_point_at(text, at), at);
  return out;
}

}  // namespace

std::string upper(const std::string& text) {
  return mapped(ucasemap_utf8ToUpper, text);
}
std::string lower(const std::string& text) {
  return mapped(ucasemap_utf8ToLower, text);
}
std::string case_fold(const std::string& text) {
  return mapped(ucasemap_utf8FoldCase, text);
}

std::string title(const std::string& text) {
  bool inside = false;
  return each_character(text, [&](CodePoint point, std::size_t at) {
    const bool rest = std::exchange(inside, cased(point.value));
    return rest ? lower_at(text, at, point.size)
                : title_form(std::string_view(text).substr(at, point.size));
  });
}
std::string capitalize(const std::string& text) {
  return each_character(text, [&](CodePoint point, std::size_t at) {
    return at ? lower_at(text, at, point.size)
              : title_form(std::string_view(text).substr(0, point.size));
  });
}
std::string swap_case(const std::string& text) {
  return each_character(text, [&](CodePoint point, std::size_t at) {
    const auto c = static_cast<UChar32>(point.value);
    const std::string_view character = std::string_view(text).substr(at, point.size);
    return u_isUUppercase(c)   ? lower_at(text, at, point.size)
           : u_isULowercase(c) ? mapped(ucasemap_utf8ToUpper, character)
                               : std::string(character);
  });
}

namespace {

enum class Letter { none, upper, lower, title };
Letter letter_at(const std::string& text, std::size_t at) {
  const auto c = static_cast<UChar32>(code_point_at(text, at).value);
  return u_isUUppercase(c)                     ? Letter::upper
         : u_isULowercase(c)                   ? Letter::lower
         : u_charType(c) == U_TITLECASE_LETTER ? Letter::title
                                               : Letter::none;
}
bool only(const std::string& text, Letter wanted) {
  bool found = false;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const Letter letter = letter_at(text, at);
    if (letter != wanted && letter != Letter::none) return false;
    found |= letter == wanted;
  }
  return found;
}

}  // namespace

bool is_upper(const std::string& text) {
  return only(text, Letter::upper);
}
bool is_lower(const std::string& text) {
  return only(text, Letter::lower);
}
bool is_title(const std::string& text) {
  bool found = false, inside = false;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const Letter letter = letter_at(text, at);
    const bool begins = letter == Letter::upper || letter == Letter::title;
    if ((begins && inside) || (letter == Letter::lower && !inside)) return false;
    inside = letter != Letter::none;
    found |= inside;
  }
  return found;
}

bool is_python_space(char32_t value) {
  return is_whitespace(value) || (value >= 0x1C && value <= 0x1F);
}
bool is_printable(char32_t value) {
  const int type = u_charType(static_cast<UChar32>(value));
  const bool hidden = type == U_UNASSIGNED || type == U_CONTROL_CHAR || type == U_FORMAT_CHAR ||
                      type == U_SURROGATE || type == U_PRIVATE_USE_CHAR ||
                      type == U_LINE_SEPARATOR || type == U_PARAGRAPH_SEPARATOR ||
                      type == U_SPACE_SEPARATOR;
  return value == ' ' || !hidden;
}

std::string strip_text(const std::string& text, const std::string* which, bool left, bool right) {
  std::vector<char32_t> known;
  if (which) {
    work(16 * which->size());
    for (std::size_t at = 0; at < which->size(); at += utf8_length((*which)[at]))
      known.push_back(code_point_at(*which, at).value);
    std::sort(known.begin(), known.end());
  }
  const auto strips = [&](std::size_t at) {
    const char32_t c = code_point_at(text, at).value;
    return which ? std::binary_search(known.begin(), known.end(), c) : is_python_space(c);
  };
  std::size_t begin = 0, end = text.size();
  while (left && begin < end && strips(begin)) begin += utf8_length(text[begin]);
  while (right && begin < end) {
    std::size_t last = end - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!strips(last)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

Value replace_text(Runtime& runtime, const std::string& text, const std::string& old,
                   const std::string& with, std::int64_t maximum) {
  std::string out;
  const auto room = [&](std::size_t more) { runtime.grow(out.size(), more); };
  std::size_t from = 0;
  if (old.empty()) {
    for (; from <= text.size() && maximum-- != 0;) {
      const std::size_t size = from < text.size() ? utf8_length(text[from]) : 0;
      room(with.size() + size);
      out.append(with).append(text, from, size);
      from += std::max<std::size_t>(size, 1);
    }
    return out + (from < text.size() ? text.substr(from) : "");
  }
  for (std::size_t at; maximum-- != 0 && (at = find_text(text, old, from)) != std::string::npos;
       from = at + old.size()) {
    room(with.size() + at - from);
    out.append(text, from, at - from).append(with);
  }
  return out.append(text, from);
}

void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& line) {
  constexpr std::u32string_view ends = U"\n\r\v\f\x1C\x1D\x1E\x85\u2028\u2029";
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    std::size_t next = at + point.size;
    if (ends.find(point.value) != std::u32string_view::npos) {
      if (point.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      line(text.substr(begin, (keep_ends ? next : at) - begin));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) line(text.substr(begin));
}

bool every(const std::string& text, CharacterClass wanted) {
  using Class = CharacterClass;
  if (text.empty()) return wanted == Class::printable || wanted == Class::ascii;
  const auto holds = [&](char32_t value) {
    const auto c = static_cast<UChar32>(value);
    const int number = u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE);
    return wanted == Class::decimal     ? number == U_NT_DECIMAL
           : wanted == Class::digit     ? number == U_NT_DECIMAL || number == U_NT_DIGIT
           : wanted == Class::numeric   ? number != U_NT_NONE
           : wanted == Class::letter    ? u_isalpha(c) != 0
           : wanted == Class::space     ? is_python_space(value)
           : wanted == Class::printable ? is_printable(value)
           : wanted == Class::ascii     ? value < 0x80
                                        : u_isalpha(c) || number != U_NT_NONE;
  };
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at]))
    if (!holds(code_point_at(text, at).value)) return false;
  return true;
}

bool is_identifier(const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    const auto c = static_cast<UChar32>(code_point_at(text, at).value);
    if (c != '_' && !u_hasBinaryProperty(c, at ? UCHAR_XID_CONTINUE : UCHAR_XID_START))
      return false;
  }
  return !text.empty();
}

int digit_value(char32_t value) {
  const auto c = static_cast<UChar32>(value);
  return u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) == U_NT_DECIMAL ? u_charDigitValue(c) : -1;
}

std::string escape_html(const std::string& text) {
  const auto entity = [](char c) -> std::string_view {
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '\'' ? "&#39;"
           : c == '"'  ? "&#34;"
                       : "";
  };
  std::size_t size = 0;
  for (const char c : text) size += std::max<std::size_t>(entity(c).size(), 1);
  require_text(size);
  work(text.size() + 2 * size);
  std::string out;
  out.reserve(size);
  for (const char c : text) {
    const std::string_view name = entity(c);
    if (name.empty())
      out += c;
    else
      out += name;
  }
  return out;
}

}  // namespace troupe::engine::jinja
