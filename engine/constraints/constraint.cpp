#include "engine/constraints/constraint.h"

#include "engine/base/text.h"

namespace troupe::engine::constraints {

namespace {

/// Of the masks of one constraint; beyond it they are dropped and computed again.
constexpr std::size_t max_mask_bytes = std::size_t{32} << 20;

}  // namespace

Constraint::Constraint(Grammar grammar, std::shared_ptr<const TokenTable> tokens,
                       AutomatonLimits limits)
    : automaton_(std::move(grammar), limits), tokens_(std::move(tokens)) {
}

Constraint::State Constraint::after(State state, std::int32_t token) {
  const std::string& bytes = tokens_->bytes_of(token);
  if (bytes.empty()) return Automaton::dead;
  for (const char byte : bytes) {
    state = automaton_.step(state, static_cast<unsigned char>(byte));
    if (state == Automaton::dead) break;
  }
  return state;
}

TokenMask Constraint::make_mask(State state) {
  TokenMask mask(tokens_->size());
  const auto nodes = tokens_->nodes();
  const auto ids = tokens_->ids();
  std::vector<State> path(tokens_->longest() + 1, state);  // by depth
  for (std::size_t at = 0; at < nodes.size();) {
    const TokenTable::Node& node = nodes[at];
    const auto depth = static_cast<std::size_t>(node.depth);
    const State next = automaton_.step(path[depth], node.byte);
    if (next == Automaton::dead) {
      at = static_cast<std::size_t>(node.skip);
      continue;
    }
    path[depth + 1] = next;
    for (std::int32_t i = node.first; i < node.last; ++i)
      mask.set(ids[static_cast<std::size_t>(i)]);
    ++at;
  }
  return mask;
}

std::shared_ptr<const TokenMask> Constraint::allowed(State state) {
  if (const auto found = masks_.find(state); found != masks_.end()) return found->second;
  auto mask = std::make_shared<const TokenMask>(make_mask(state));
  if (mask_bytes_ + mask->bytes() > max_mask_bytes) {
    masks_.clear();
    mask_bytes_ = 0;
  }
  mask_bytes_ += mask->bytes();
  masks_.emplace(state, mask);
  bytes_ = mask_bytes_ + automaton_.bytes();
  return mask;
}

}  // namespace troupe::engine::constraints
