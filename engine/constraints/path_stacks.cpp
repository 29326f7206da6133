#include "engine/constraints/path_stacks.h"

namespace troupe::engine::constraints {

std::size_t PathStacks::Hash::operator()(const Frame& frame) const {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = static_cast<std::uint32_t>(frame.at);
  hash = (hash * factor) ^ static_cast<std::uint32_t>(frame.count);
  hash = (hash * factor) ^ static_cast<std::uint32_t>(frame.below);
  hash = hash * 2 + (frame.fresh ? 1 : 0);
  return (hash * factor) >> 16;
}

PathStacks::Stack PathStacks::push(const Frame& frame) {
  const auto [found, is_new] = numbers_.try_emplace(frame, static_cast<Stack>(entries_.size()));
  if (!is_new) return found->second;
  const Entry& below = entries_[static_cast<std::size_t>(frame.below)];
  Frame uncounted = frame;
  uncounted.below = below.shape;
  if (frame.at_most) uncounted.count = 1;
  const auto shape =
      shapes_.try_emplace(uncounted, static_cast<std::int32_t>(shapes_.size()) + 1).first->second;
  entries_.push_back({.frame = frame,
                      .shape = shape,
                      .counts = below.counts + (frame.at_most ? frame.count : 0),
                      .has_fresh = frame.fresh || below.has_fresh});
  return found->second;
}

PathStacks::Stack PathStacks::after_byte(Stack stack) {
  std::vector<Stack> above;
  Stack at = stack;
  for (; entries_[static_cast<std::size_t>(at)].has_fresh; at = top(at).below) above.push_back(at);
  for (; !above.empty(); above.pop_back()) {
    Frame frame = top(above.back());
    frame.fresh = false;
    frame.below = at;
    at = push(frame);
  }
  return at;
}

bool PathStacks::allows_all_of(Stack a, Stack b, std::uint64_t& work) const {
  for (; a != b; a = top(a).below, b = top(b).below) {
    ++work;
    if (top(a).at_most && top(a).count > top(b).count) return false;
  }
  return true;
}

}  // namespace troupe::engine::constraints
