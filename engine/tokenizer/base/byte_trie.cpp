#include "engine/tokenizer/base/byte_trie.h"

#include <utility>

namespace troupe::engine::tokenizer {

bool ByteTrie::add(std::string_view key, std::int32_t value) {
  Node node = root;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    Node next = step(node, byte);
    if (next == none) {
      if (values_.size() == max_nodes) return false;
      next = static_cast<Node>(values_.size());
      values_.push_back(-1);
      if (node == root) {
        first_[byte] = next;
      } else {
        if (2 * values_.size() > slots_.size()) grow();
        slots_[slot_of(key_of(node, byte))] = {key_of(node, byte), next};
      }
    }
    node = next;
  }
  values_[static_cast<std::size_t>(node)] = value;
  return true;
}

void ByteTrie::grow() {
  const auto old =
      std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : slots_.size() * 2));
  for (const Slot& slot : old)
    if (slot.child != none) slots_[slot_of(slot.key)] = slot;
}

ByteTrie::Node ByteTrie::walk(std::string_view text) const {
  Node node = root;
  for (const char c : text) {
    node = step(node, static_cast<unsigned char>(c));
    if (node == none) break;
  }
  return node;
}

}  // namespace troupe::engine::tokenizer
