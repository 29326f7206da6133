// TokenTable: the bytes of a vocabulary's tokens as a trie in depth-first order, for masks of
// allowed tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::engine::constraints {

/// A bit per token of the vocabulary.
class TokenMask {
 public:
  explicit TokenMask(std::size_t tokens) : words_((tokens + 63) / 64) {}
  explicit TokenMask(std::vector<std::uint64_t> words) : words_(std::move(words)) {}
  void set(std::int32_t token) { assign(token, true); }
  /// Does nothing beyond the vocabulary.
  void assign(std::int32_t token, bool value) {
    const auto at = static_cast<std::size_t>(token);
    if (at / 64 >= words_.size()) return;
    const std::uint64_t bit = std::uint64_t{1} << at % 64;
    words_[at / 64] = value ? words_[at / 64] | bit : words_[at / 64] & ~bit;
  }
  /// False beyond the vocabulary.
  bool has(std::int32_t token) const {
    const auto at = static_cast<std::size_t>(token);
    return at / 64 < words_.size() && (words_[at / 64] >> at % 64 & 1) != 0;
  }
  /// Keeps only the tokens that `other` has, too.
  void intersect(const TokenMask& other) {
    for (std::size_t at = 0; at < words_.size(); ++at)
      words_[at] &= at < other.words_.size() ? other.words_[at] : 0;
  }
  /// Bit t % 64 of word t / 64 is that of token t.
  const std::vector<std::uint64_t>& words() const { return words_; }
  bool empty() const {
    for (const std::uint64_t word : words_)
      if (word != 0) return false;
    return true;
  }
  std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;
};

class TokenTable {
 public:
  /// The bytes of each token by id; a token without bytes (a special one) is never allowed.
  explicit TokenTable(std::vector<std::string> tokens);

  struct Node {
    unsigned char byte = 0;
    std::int32_t depth = 0;            ///< of the byte in the token, from 0
    std::int32_t skip = 0;             ///< the first node that is not below this one
    std::int32_t first = 0, last = 0;  ///< tokens that end here: ids()[first .. last)
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::int32_t> ids() const { return ids_; }
  /// "" for an id beyond the vocabulary.
  const std::string& bytes_of(std::int32_t token) const;
  std::size_t size() const { return tokens_.size(); }
  std::size_t longest() const { return longest_; }

 private:
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> ids_;  // with bytes, sorted by them
  std::vector<Node> nodes_;
  std::size_t longest_ = 0;
};

}  // namespace troupe::engine::constraints
