#include "engine/constraints/constraint.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::engine::constraints {

namespace {

/// Of the masks of one constraint; beyond it they are dropped and computed again.
constexpr std::size_t max_mask_bytes = std::size_t{16} << 20;

}  // namespace

Constraint::Constraint(Grammar grammar, std::shared_ptr<const TokenTable> tokens,
                       AutomatonLimits limits)
    : automaton_(std::move(grammar), limits), tokens_(std::move(tokens)), work_limit_(limits.work) {
  publish();
}

void Constraint::publish() {
  bytes_ = mask_bytes_ + automaton_.bytes();
  used_work_ = static_cast<double>(automaton_.work()) / static_cast<double>(work_limit_);
}

Constraint::State Constraint::after(State state, std::int32_t token) {
  const std::string& bytes = tokens_->bytes_of(token);
  if (bytes.empty()) return Automaton::dead;
  for (const char byte : bytes) {
    state = automaton_.step_once(state, static_cast<unsigned char>(byte));
    if (state == Automaton::dead) break;
  }
  return state;
}

/// Whether the walk is at its end.
bool Constraint::advance(MaskWalk& walk, std::uint64_t& budget) {
  const auto nodes = tokens_->nodes();
  const auto ids = tokens_->ids();
  while (walk.at < nodes.size()) {
    if (budget == 0) return false;
    const TokenTable::Node& node = nodes[walk.at];
    const auto depth = static_cast<std::size_t>(node.depth);
    const std::uint64_t before = automaton_.work();
    const State next = automaton_.step(walk.path[depth], node.byte);
    budget -= std::min(budget, 1 + automaton_.work() - before);
    if (next == Automaton::dead) {
      walk.at = static_cast<std::size_t>(node.skip);
      continue;
    }
    walk.path[depth + 1] = next;
    for (std::int32_t i = node.first; i < node.last; ++i)
      walk.mask.set(ids[static_cast<std::size_t>(i)]);
    ++walk.at;
  }
  return true;
}

std::shared_ptr<const TokenMask> Constraint::allowed(State state, MaskWalk& walk,
                                                     std::uint64_t& budget) {
  const State same = automaton_.within(state, tokens_->longest());
  if (const auto found = masks_.find(same); found != masks_.end()) return found->second;
  if (walk.state != same) {
    walk.state = same;
    walk.at = 0;
    walk.path.assign(tokens_->longest() + 1, same);
    walk.mask = TokenMask(tokens_->size());
  }
  const bool whole = advance(walk, budget);
  publish();
  if (!whole) return nullptr;
  auto mask = std::make_shared<const TokenMask>(std::exchange(walk, {}).mask);
  keep(same, mask);
  return mask;
}

void Constraint::keep(State state, std::shared_ptr<const TokenMask> mask) {
  if (mask_bytes_ + mask->bytes() > max_mask_bytes) {
    masks_.clear();
    mask_bytes_ = 0;
  }
  mask_bytes_ += mask->bytes();
  masks_.emplace(state, std::move(mask));
  publish();
}

std::shared_ptr<const TokenMask> Constraint::allowed(State state) {
  MaskWalk walk;
  std::uint64_t budget = std::numeric_limits<std::uint64_t>::max();
  return allowed(state, walk, budget);
}

}  // namespace troupe::engine::constraints
