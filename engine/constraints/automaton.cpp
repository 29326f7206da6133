#include "engine/constraints/automaton.h"

#include <algorithm>
#include <tuple>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

namespace {

/// Paths of one state that one path is compared with.
constexpr std::size_t max_compared = 32;

}  // namespace

Automaton::Automaton(Grammar grammar, AutomatonLimits limits)
    : grammar_(std::move(grammar)),
      limits_(limits),
      classes_(1 + *std::ranges::max_element(grammar_.byte_classes())) {
  open_.push_back({grammar_.begin(grammar_.root()), 0});
  closure();
  start_ = number_of_state(accepts_);
}

void Automaton::charge(std::uint64_t work) {
  work_ += work;
  if (work_ <= limits_.work) return;
  throw Failure(Error{Errc::full,
                      "the constraint takes more work than is allowed for its states; "
                      "simplify it"});
}

/// Before something is added. Hash tables are taken as twice their entries.
void Automaton::account() {
  constexpr std::size_t state_bytes = sizeof(StateData) + 64;
  const std::size_t bytes = stacks_.bytes() + paths_.size() * sizeof(Path) +
                            states_.size() * state_bytes + rows_.size() * sizeof(State);
  bytes_ = bytes + grammar_.bytes();
  if (bytes <= limits_.bytes) return;
  throw Failure(Error{Errc::full, cat("the constraint needs more than ", limits_.bytes >> 20,
                                      " MiB for its states; simplify it")});
}

void Automaton::too_ambiguous() const {
  throw Failure(Error{Errc::full, cat("the constraint is too ambiguous: more than ", limits_.paths,
                                      " of its parts match the same text; simplify it")});
}

std::span<const Automaton::Path> Automaton::paths(State state) const {
  const StateData& data = states_[static_cast<std::size_t>(state)];
  return std::span(paths_).subspan(data.first, data.size);
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
  return stacks_.push({.at = node, .below = below});
}

/// Begins the `count`-th repetition.
void Automaton::repeat(std::int32_t edge, std::int32_t count, Stack below) {
  const Grammar::Repetition& repeated = grammar_.repetition(grammar_.edge(edge));
  open_.push_back({grammar_.begin(repeated.rule), stacks_.push({.at = edge,
                                                                .count = count,
                                                                .below = below,
                                                                .at_most = !repeated.exact,
                                                                .fresh = repeated.nullable})});
}

void Automaton::follow_end(Path path) {
  if (path.stack == 0) {
    accepts_ = true;
    return;
  }
  const PathStacks::Frame frame = stacks_.top(path.stack);
  if (frame.count == 0) {
    open_.push_back({frame.at, frame.below});
    return;
  }
  if (frame.fresh) return;  // the same as one repetition less
  const Grammar::Edge& edge = grammar_.edge(frame.at);
  const Grammar::Repetition& repeated = grammar_.repetition(edge);
  if (!repeated.exact || frame.count == repeated.count) open_.push_back({edge.target, frame.below});
  if (frame.count < repeated.count) repeat(frame.at, frame.count + 1, frame.below);
}

void Automaton::follow_edge(const Grammar::Edge& edge, Stack stack) {
  if (edge.kind == Grammar::Kind::call) {
    open_.push_back({grammar_.begin(edge.rule), push(edge.target, stack)});
    return;
  }
  const bool repeats = edge.kind == Grammar::Kind::repeat;
  if (!repeats || !grammar_.repetition(edge).exact) open_.push_back({edge.target, stack});
  if (repeats) repeat(grammar_.index_of(edge), 1, stack);
}

/// Sets found_ and accepts_ to those of the paths in open_ and of what they lead to without reading
/// a byte.
void Automaton::closure() {
  found_.clear();
  visited_.clear();
  accepts_ = false;
  while (!open_.empty()) {
    const Path path = open_.back();
    open_.pop_back();
    if (!visited_.insert(path.node, path.stack)) continue;
    if (visited_.size() > 8 * limits_.paths) too_ambiguous();
    const auto edges = grammar_.edges(path.node);
    charge(1 + edges.size());
    if (grammar_.is_end(path.node)) follow_end(path);
    bool reads = false;
    for (const Grammar::Edge& edge : edges) {
      if (edge.kind == Grammar::Kind::bytes)
        reads = true;
      else
        follow_edge(edge, path.stack);
    }
    if (reads) found_.push_back({path.node, stacks_.after_byte(path.stack)});
  }
  prune();
  if (found_.size() > limits_.paths) too_ambiguous();
}

/// Removes the paths of found_ whose continuations another one has.
void Automaton::prune() {
  const bool counted =
      std::ranges::any_of(found_, [&](const Path& path) { return stacks_.counts(path.stack) > 0; });
  if (counted) {
    const auto key = [&](const Path& path) {
      return std::tuple(path.node, stacks_.shape(path.stack), stacks_.counts(path.stack),
                        path.stack);
    };
    std::ranges::sort(found_, {}, key);
    std::size_t kept = 0;
    for (std::size_t first = 0, last = 0; first < found_.size(); first = last) {
      const auto alike = [&](const Path& path) {
        return path.node == found_[first].node &&
               stacks_.shape(path.stack) == stacks_.shape(found_[first].stack);
      };
      for (last = first; last < found_.size() && alike(found_[last]);) ++last;
      kept = prune_alike(first, last, kept);
    }
    found_.resize(kept);
  }
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
}

/// Moves the paths of [first, last) that remain to `kept`; returns the place behind them. They
/// differ in their counts only, and are sorted by the sum.
std::size_t Automaton::prune_alike(std::size_t first, std::size_t last, std::size_t kept) {
  const std::size_t begin = kept;
  for (std::size_t i = first; i < last; ++i) {
    const Path path = found_[i];
    std::uint64_t work = 1;
    bool needed = true;
    for (std::size_t k = begin; needed && k < std::min(kept, begin + max_compared); ++k)
      needed = !stacks_.allows_all_of(found_[k].stack, path.stack, work);
    charge(work);
    if (needed) found_[kept++] = path;
  }
  return kept;
}

/// The number of the state of found_.
Automaton::State Automaton::number_of_state(bool accepts) {
  std::uint64_t hash = accepts ? 1 : 0;
  for (const Path& path : found_) {
    const std::uint64_t packed = std::uint64_t{static_cast<std::uint32_t>(path.node)} << 32 |
                                 static_cast<std::uint32_t>(path.stack);
    hash = (hash ^ packed) * 0x9E3779B97F4A7C15U + (hash >> 29);
  }
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto each = begin; each != end; ++each) {
    const bool known = states_[static_cast<std::size_t>(each->second)].accepts == accepts &&
                       std::ranges::equal(paths(each->second), found_);
    if (known) return each->second;
  }
  account();
  const auto number = static_cast<State>(states_.size());
  states_.push_back({.first = static_cast<std::uint32_t>(paths_.size()),
                     .size = static_cast<std::uint32_t>(found_.size()),
                     .accepts = accepts});
  paths_.insert(paths_.end(), found_.begin(), found_.end());
  by_hash_.emplace(hash, number);
  return number;
}

Automaton::State Automaton::compute(State state, unsigned char byte) {
  open_.clear();
  for (const Path& path : paths(state)) {
    const auto edges = grammar_.edges(path.node);
    charge(edges.size());
    for (const Grammar::Edge& edge : edges) {
      if (edge.kind == Grammar::Kind::bytes && edge.low <= byte && byte <= edge.high)
        open_.push_back({edge.target, path.stack});
    }
  }
  if (open_.empty()) return dead;
  closure();
  return found_.empty() && !accepts_ ? dead : number_of_state(accepts_);
}

Automaton::State Automaton::step(State state, unsigned char byte) {
  const auto at = static_cast<std::size_t>(state);
  const auto column = grammar_.byte_classes()[byte];
  if (states_[at].row < 0) {
    account();
    states_[at].row = static_cast<std::int32_t>(rows_.size() / static_cast<std::size_t>(classes_));
    rows_.resize(rows_.size() + static_cast<std::size_t>(classes_), unknown);
  }
  const std::size_t place =
      static_cast<std::size_t>(states_[at].row) * static_cast<std::size_t>(classes_) + column;
  if (rows_[place] == unknown) {
    const State next = compute(state, byte);  // rows_ may grow
    rows_[place] = next;
  }
  return rows_[place];
}

Automaton::State Automaton::step_once(State state, unsigned char byte) {
  return states_[static_cast<std::size_t>(state)].row < 0 ? compute(state, byte)
                                                          : step(state, byte);
}

Automaton::State Automaton::within(State state, std::size_t length) {
  check(within_length_ == 0 || within_length_ == length, "Automaton: within() of two lengths");
  within_length_ = length;
  const auto at = static_cast<std::size_t>(state);
  if (states_[at].within != unknown) return states_[at].within;
  const auto spare = static_cast<std::int64_t>(length) + 1;
  found_.assign(paths(state).begin(), paths(state).end());
  charge(found_.size());
  for (Path& path : found_) {
    path.stack = stacks_.mapped(path.stack, [&](PathStacks::Frame& frame) {
      if (frame.count == 0) return;
      const std::int64_t most = grammar_.repetition(grammar_.edge(frame.at)).count;
      frame.count = static_cast<std::int32_t>(std::max<std::int64_t>(frame.count, most - spare));
    });
  }
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  const State out = number_of_state(states_[at].accepts);
  states_[at].within = out;
  states_[static_cast<std::size_t>(out)].within = out;
  return out;
}

}  // namespace troupe::engine::constraints
