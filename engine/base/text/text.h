// Small text helpers: cat() joins pieces into a string, without the compile-time cost of a
// formatting library.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The shortest decimal text that reads back as the same double ("0.1", "1e-05", "nan", "inf").
std::string to_text(double value);
/// Fixed decimals: to_text(0.12345, 2) == "0.12".
std::string to_text(double value, int decimals);

/// One argument of cat(): a string, a character, a boolean or a number.
class CatPiece {
 public:
  CatPiece(const char* text) : view_(text) {}
  CatPiece(std::string_view text) : view_(text) {}
  CatPiece(const std::string& text) : view_(text) {}
  CatPiece(char c) : owned_(1, c), view_(owned_) {}
  CatPiece(bool value) : view_(value ? "true" : "false") {}
  template <std::integral I>
  requires(!std::same_as<I, bool> && !std::same_as<I, char>) CatPiece(I value)
      : owned_(std::to_string(value)), view_(owned_) {}
  CatPiece(double value) : owned_(to_text(value)), view_(owned_) {}
  CatPiece(const CatPiece&) = delete;
  CatPiece& operator=(const CatPiece&) = delete;
  std::string_view view() const { return view_; }

 private:
  std::string owned_;
  std::string_view view_;
};

std::string join(std::initializer_list<std::string_view> pieces);
/// {"a", "b"} with ", " gives "a, b".
std::string join(const std::vector<std::string>& items, std::string_view separator);

/// Concatenates its arguments: cat("layer ", 3, " of ", 12).
template <class... Parts>
std::string cat(const Parts&... parts) {
  return join({CatPiece(parts).view()...});
}

/// The member of `known` with the smallest edit distance to `word`, or "" if none is close: for
/// "did you mean".
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// Quotes `text` for error messages and logs: escaped as by for_terminal(), newlines and tabs, too;
/// truncated to `limit` bytes at a character boundary.
std::string quote(std::string_view text, std::size_t limit = 80);

/// A byte as \xNN, for text on a terminal.
std::string hex_escape(unsigned char byte);

/// True when `text` is well-formed UTF-8; otherwise `bad`, when given, receives the offset of the
/// first wrong byte.
bool valid_utf8(std::string_view text, std::size_t* bad = nullptr);

}  // namespace troupe
