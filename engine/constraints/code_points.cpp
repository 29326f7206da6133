#include "engine/constraints/code_points.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"

namespace troupe::engine::constraints {

using Node = Grammar::Node;

namespace {

constexpr char32_t last_code_point = 0x10FFFF;
constexpr std::string_view hex_digits = "0123456789abcdef";

/// Adds ranges in order, from `from` to `to`.
class CodePoints {
 public:
  CodePoints(Grammar& grammar, Node from, Node to) : grammar_(grammar), from_(from) {
    rest_[0] = to;
  }

  void add(char32_t low, char32_t high) {
    if (low < 0xD800 && high > 0xDFFF) {
      add_utf8(low, 0xD7FF);
      low = 0xE000;
    }
    if (low >= 0xD800 && low <= 0xDFFF) low = 0xE000;
    if (high >= 0xD800 && high <= 0xDFFF) high = 0xD7FF;
    if (low <= high) add_utf8(low, high);
  }

 private:
  struct Piece {
    unsigned char low = 0, high = 0;
    Node behind = 0;
  };
  static constexpr unsigned char first_rest = 0x80, last_rest = 0xBF;  // continuation bytes

  /// Splits the range where the encodings of its ends differ in more than the last bytes.
  void add_utf8(char32_t low, char32_t high) {
    for (const char32_t last : {U'\x7F', U'\u07FF', U'\uFFFF'}) {
      if (low > last || high <= last) continue;
      add_utf8(low, last);
      return add_utf8(last + 1, high);
    }
    for (int shift = 6; shift <= 18 && low > 0x7F; shift += 6) {
      const char32_t mask = (char32_t{1} << shift) - 1;
      if ((low & ~mask) == (high & ~mask)) break;
      if ((low & mask) != 0) {
        add_utf8(low, low | mask);
        return add_utf8((low | mask) + 1, high);
      }
      if ((high & mask) != mask) {
        add_utf8(low, (high & ~mask) - 1);
        return add_utf8(high & ~mask, high);
      }
    }
    std::string first, last;
    append_utf8(first, low);
    append_utf8(last, high);
    add_sequence(first, last);
  }

  void add_sequence(const std::string& first, const std::string& last) {
    const std::size_t size = first.size();
    const auto byte = [](char c) { return static_cast<unsigned char>(c); };
    std::size_t whole = size;  // from here on, all continuation bytes
    while (whole > 1 && byte(first[whole - 1]) == first_rest && byte(last[whole - 1]) == last_rest)
      --whole;
    std::size_t common = 0;
    while (common < path_size_ && common + 1 < whole && path_[common].low == byte(first[common]) &&
           path_[common].high == byte(last[common]))
      ++common;
    Node at = common == 0 ? from_ : path_[common - 1].behind;
    path_size_ = common;
    for (std::size_t i = common; i < whole; ++i) {
      const Node next = i + 1 == whole ? rest(size - whole) : grammar_.add_node();
      grammar_.add_bytes(at, byte(first[i]), byte(last[i]), next);
      if (i + 1 < whole) path_[path_size_++] = {byte(first[i]), byte(last[i]), next};
      at = next;
    }
  }

  /// The node from which `count` continuation bytes lead to the end.
  Node rest(std::size_t count) {
    for (std::size_t n = 1; n <= count; ++n) {
      if (rest_[n] >= 0) continue;
      rest_[n] = grammar_.add_node();
      grammar_.add_bytes(rest_[n], first_rest, last_rest, rest_[n - 1]);
    }
    return rest_[count];
  }

  Grammar& grammar_;
  Node from_;
  std::array<Piece, 4> path_{};  // of the sequence before, except for its last own byte
  std::size_t path_size_ = 0;
  std::array<Node, 4> rest_ = {-1, -1, -1, -1};
};

}  // namespace

std::string json_escape(char32_t value) {
  constexpr std::array<std::pair<char32_t, std::string_view>, 7> short_forms = {{{'"', "\\\""},
                                                                                 {'\\', "\\\\"},
                                                                                 {'\b', "\\b"},
                                                                                 {'\f', "\\f"},
                                                                                 {'\n', "\\n"},
                                                                                 {'\r', "\\r"},
                                                                                 {'\t', "\\t"}}};
  const auto found =
      std::ranges::find(short_forms, value, &std::pair<char32_t, std::string_view>::first);
  if (found != short_forms.end()) return std::string(found->second);
  return cat("\\u00", hex_digits[value / 16 % 16], hex_digits[value % 16]);
}

bool is_escaped(char32_t c) {
  return c < 0x20 || c == '"' || c == '\\';
}

Node add_code_points(Grammar& grammar, Node from, std::span<const CodePointRange> ranges,
                     TextForm form) {
  const Node to = grammar.add_node();
  CodePoints points(grammar, from, to);
  std::vector<std::string> escapes;
  for (auto [low, high] : ranges) {
    high = std::min(high, last_code_point);
    for (char32_t at = low; form == TextForm::json && at <= std::min<char32_t>(high, '\\'); ++at) {
      if (!is_escaped(at)) continue;
      if (low < at) points.add(low, at - 1);
      escapes.push_back(json_escape(at));
      low = at + 1;
    }
    if (low <= high) points.add(low, high);
  }
  if (!escapes.empty()) grammar.add_empty(grammar.texts(from, std::move(escapes)), to);
  return to;
}

}  // namespace troupe::engine::constraints
