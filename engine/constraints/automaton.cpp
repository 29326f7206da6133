#include "engine/constraints/automaton.h"

#include <algorithm>
#include <unordered_set>

#include "engine/base/text.h"

namespace troupe::engine::constraints {

namespace {

std::uint64_t packed(std::int32_t high, std::int32_t low) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
         static_cast<std::uint32_t>(low);
}

}  // namespace

Automaton::Automaton(Grammar grammar, AutomatonLimits limits)
    : grammar_(std::move(grammar)), limits_(limits), stacks_(1) {
  start_ = close({{grammar_.begin(grammar_.root()), 0}});
}

void Automaton::account(std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ <= limits_.bytes) return;
  throw Failure(Error{Errc::full, cat("the constraint needs more than ", limits_.bytes >> 20,
                                      " MiB for its states; simplify it")});
}

Automaton::Stack Automaton::push(Grammar::Node node, Stack below) {
  // A call at the end of a rule returns to that rule's caller: right recursion needs no stack.
  constexpr int max_hops = 16;
  for (Grammar::Node at = node, hops = 0; hops < max_hops; ++hops) {
    if (grammar_.is_end(at)) return below;
    const auto edges = grammar_.edges(at);
    if (edges.size() != 1 || edges[0].kind != Grammar::Kind::nothing) break;
    at = edges[0].target;
  }
  const auto [found, is_new] =
      stack_numbers_.try_emplace(packed(node, below), static_cast<Stack>(stacks_.size()));
  if (is_new) {
    account(sizeof(Path) + 48);
    stacks_.push_back({node, below});
  }
  return found->second;
}

/// Adds the paths that `path` leads to without reading a byte.
void Automaton::visit(Path path, std::vector<Path>& open) {
  if (grammar_.is_end(path.node)) {
    if (path.stack != 0) open.push_back(stacks_[static_cast<std::size_t>(path.stack)]);
    return;
  }
  for (const Grammar::Edge& edge : grammar_.edges(path.node)) {
    if (edge.kind == Grammar::Kind::nothing)
      open.push_back({edge.target, path.stack});
    else if (edge.kind == Grammar::Kind::call)
      open.push_back({grammar_.begin(edge.rule), push(edge.target, path.stack)});
  }
}

/// Adds the paths of `open`, and those that they lead to without reading a byte, to a state.
Automaton::StateData Automaton::closure(std::vector<Path> open) {
  StateData state;
  std::unordered_set<std::uint64_t> visited;
  while (!open.empty()) {
    const Path path = open.back();
    open.pop_back();
    if (!visited.insert(packed(path.node, path.stack)).second) continue;
    if (visited.size() > 8 * limits_.paths) too_ambiguous();
    if (grammar_.is_end(path.node) && path.stack == 0) state.accepts = true;
    visit(path, open);
    const auto edges = grammar_.edges(path.node);
    if (std::ranges::any_of(edges,
                            [](const auto& edge) { return edge.kind == Grammar::Kind::bytes; }))
      state.paths.push_back(path);
  }
  if (state.paths.size() > limits_.paths) too_ambiguous();
  std::ranges::sort(state.paths);
  return state;
}

void Automaton::too_ambiguous() const {
  throw Failure(Error{Errc::full, cat("the constraint is too ambiguous: more than ", limits_.paths,
                                      " of its parts match the same text; simplify it")});
}

/// The number of the state of all paths that `open` leads to.
Automaton::State Automaton::close(std::vector<Path> open) {
  StateData state = closure(std::move(open));
  if (state.paths.empty() && !state.accepts) return dead;
  std::uint64_t hash = state.accepts ? 1 : 0;
  for (const Path& path : state.paths)
    hash = (hash ^ packed(path.node, path.stack)) * 0x9E3779B97F4A7C15U + (hash >> 29);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto each = first; each != last; ++each) {
    const StateData& known = states_[static_cast<std::size_t>(each->second)];
    if (known.paths == state.paths && known.accepts == state.accepts) return each->second;
  }
  account(sizeof(StateData) + state.paths.size() * sizeof(Path) + 64);
  states_.push_back(std::move(state));
  by_hash_.emplace(hash, static_cast<State>(states_.size()) - 1);
  return static_cast<State>(states_.size()) - 1;
}

Automaton::State Automaton::step(State state, unsigned char byte) {
  auto& next = states_[static_cast<std::size_t>(state)].next;
  if (next == nullptr) {
    account(sizeof(*next));
    next = std::make_unique<std::array<State, 256>>();
    next->fill(unknown);
  }
  if ((*next)[byte] != unknown) return (*next)[byte];
  std::vector<Path> open;
  for (const Path& path : states_[static_cast<std::size_t>(state)].paths) {
    for (const Grammar::Edge& edge : grammar_.edges(path.node)) {
      if (edge.kind == Grammar::Kind::bytes && edge.low <= byte && byte <= edge.high)
        open.push_back({edge.target, path.stack});
    }
  }
  const State found = open.empty() ? dead : close(std::move(open));
  (*states_[static_cast<std::size_t>(state)].next)[byte] = found;
  return found;
}

}  // namespace troupe::engine::constraints
