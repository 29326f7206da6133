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
/// Fixed decimals, for people: to_text(0.12345, 2) == "0.12".
std::string to_text(double value, int decimals);

/// One argument of cat(): anything that has an obvious text.
class Piece {
 public:
  Piece(const char* text) : view_(text) {}
  Piece(std::string_view text) : view_(text) {}
  Piece(const std::string& text) : view_(text) {}
  Piece(char c) : owned_(1, c), view_(owned_) {}
  Piece(bool value) : view_(value ? "true" : "false") {}
  template <std::integral I>
  requires(!std::same_as<I, bool> && !std::same_as<I, char>) Piece(I value)
      : owned_(std::to_string(value)), view_(owned_) {}
  Piece(double value) : owned_(to_text(value)), view_(owned_) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  std::string_view view() const { return view_; }

 private:
  std::string owned_;
  std::string_view view_;
};

std::string join(std::initializer_list<std::string_view> pieces);
/// {"a", "b"} with ", " gives "a, b".
std::string join(const std::vector<std::string>& items, std::string_view separator);

/// cat("layer ", 3, " of ", 12): the pieces one after the other.
template <class... Parts>
std::string cat(const Parts&... parts) {
  return join({Piece(parts).view()...});
}

/// The member of `known` with the smallest edit distance to `word`, or "" when none is near: for
/// "did you mean".
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// `text` with control characters escaped and cut after `limit` bytes (on a character boundary),
/// for error messages and logs.
std::string quote(std::string_view text, std::size_t limit = 80);

/// True when `text` is well-formed UTF-8; otherwise `bad`, when given, receives the offset of the
/// first wrong byte.
bool valid_utf8(std::string_view text, std::size_t* bad = nullptr);

}  // namespace troupe
