// PathStacks: the stacks of the paths of an automaton. Equal stacks have one number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace troupe::engine::constraints {

class PathStacks {
 public:
  using Stack = std::int32_t;  // 0: empty

  /// The top of a stack: a return to a node, or a repetition.
  struct Frame {
    std::int32_t at = 0;     ///< the node, or the edge of the repetition
    std::int32_t count = 0;  ///< 0: a return; else the repetition that is read now, from 1
    Stack below = 0;
    bool at_most = false;  ///< lower counts allow more
    /// Nothing was read since this repetition began, and it may not end so.
    bool fresh = false;
    bool operator==(const Frame&) const = default;
  };

  PathStacks() : entries_(1) { entries_[0].mapped = 0; }

  Stack push(const Frame& frame);
  const Frame& top(Stack stack) const { return entries_[static_cast<std::size_t>(stack)].frame; }
  /// The stack after a byte was read: none of its repetitions is fresh.
  Stack after_byte(Stack stack);
  /// Equal for stacks that differ only in the counts of at_most frames.
  std::int32_t shape(Stack stack) const { return entries_[static_cast<std::size_t>(stack)].shape; }
  /// The sum of the counts of at_most frames; 0 when there are none.
  std::int64_t counts(Stack stack) const {
    return entries_[static_cast<std::size_t>(stack)].counts;
  }
  /// For stacks of one shape: whether no at_most count of `a` is higher. `work` is increased by the
  /// frames that were read.
  bool allows_all_of(Stack a, Stack b, std::uint64_t& work) const;
  /// The stack with every frame changed by `change`, always the same function.
  template <class Change>
  Stack mapped(Stack stack, Change change) {
    std::vector<Stack> above;
    Stack at = stack;
    for (; entries_[static_cast<std::size_t>(at)].mapped < 0; at = top(at).below)
      above.push_back(at);
    Stack out = entries_[static_cast<std::size_t>(at)].mapped;
    for (; !above.empty(); above.pop_back()) {
      Frame frame = top(above.back());
      frame.below = out;
      change(frame);
      out = push(frame);
      entries_[static_cast<std::size_t>(above.back())].mapped = out;
    }
    return out;
  }
  /// An entry is in two tables, which are taken as twice their entries.
  std::size_t bytes() const { return entries_.size() * (sizeof(Entry) + 4 * sizeof(Frame)); }

 private:
  struct Entry {
    Frame frame;
    std::int32_t shape = 0;
    Stack mapped = -1;
    std::int64_t counts = 0;
    bool has_fresh = false;
  };
  struct Hash {
    std::size_t operator()(const Frame& frame) const;
  };
  std::vector<Entry> entries_;  // [0] is unused
  std::unordered_map<Frame, Stack, Hash> numbers_;
  std::unordered_map<Frame, std::int32_t, Hash> shapes_;  // below: a shape
};

}  // namespace troupe::engine::constraints
