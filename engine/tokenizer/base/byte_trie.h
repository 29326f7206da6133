// A trie of byte strings in one flat hash table: finds the keys that begin at a position in time
// proportional to the longest match.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::engine::tokenizer {

class ByteTrie {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0, none = -1;
  /// More nodes than any published vocabulary needs; about 16 bytes each.
  static constexpr std::size_t max_nodes = std::size_t{1} << 22;

  ByteTrie() { first_.fill(none); }
  /// `value` is not negative; a repeated key keeps the later value. Returns false beyond max_nodes.
  bool add(std::string_view key, std::int32_t value);
  /// The node that `byte` leads to, or none.
  Node step(Node node, unsigned char byte) const;
  /// The value of the key that ends here; -1: none does.
  std::int32_t value(Node node) const { return values_[static_cast<std::size_t>(node)]; }
  /// The node that `text` leads to, or none.
  Node walk(std::string_view text) const;

 private:
  struct Slot {
    std::uint32_t key = 0;  // node and byte
    Node child = none;
  };
  static std::uint32_t key_of(Node node, unsigned char byte) {
    return (static_cast<std::uint32_t>(node) << 8) | byte;
  }
  std::size_t slot_of(std::uint32_t key) const;
  void grow();

  std::array<Node, 256> first_;           // children of the root
  std::vector<std::int32_t> values_{-1};  // by node
  std::vector<Slot> slots_;               // open addressing, a power of two
};

inline std::size_t ByteTrie::slot_of(std::uint32_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = (key * std::uint64_t{0x9E3779B97F4A7C15} >> 24) & mask;
  while (slots_[slot].child != none && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

inline ByteTrie::Node ByteTrie::step(Node node, unsigned char byte) const {
  if (node == root) return first_[byte];
  return slots_.empty() ? none : slots_[slot_of(key_of(node, byte))].child;
}

}  // namespace troupe::engine::tokenizer
