#include "engine/constraints/text_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/constraints/automaton.h"
#include "engine/constraints/code_points.h"

namespace troupe::engine::constraints {

namespace {

constexpr AutomatonLimits limits_of_parts = {
    .paths = 512, .bytes = std::size_t{16} << 20, .work = 3'000'000};

}  // namespace

void TextSet::spend(std::size_t units) const {
  if (work_ != nullptr) work_->spend(units);
}

std::int32_t TextSet::add_state(bool accepts) {
  spend(4);
  if (states_.size() >= max_text_states)
    throw Failure(Error{Errc::full, cat("a string of the schema needs more than ", max_text_states,
                                        " states; simplify its pattern or lower its lengths")});
  states_.push_back({accepts, {}});
  return static_cast<std::int32_t>(states_.size()) - 1;
}

/// Ranges are added in order; equal neighbours become one.
void TextSet::add_range(State& state, unsigned char low, unsigned char high, std::int32_t target) {
  if (!state.ranges.empty() && state.ranges.back().target == target &&
      state.ranges.back().high + 1 == low)
    state.ranges.back().high = high;
  else
    state.ranges.push_back({low, high, target});
}

TextSet TextSet::of(CompileWork* work, const Fill& fill) {
  TextSet out(work);
  Grammar grammar(work);
  const Grammar::Rule rule = grammar.add_rule();
  grammar.add_empty(fill(grammar, grammar.begin(rule)), grammar.end(rule));
  grammar.set_root(rule);
  if (!grammar.finish()) return out;  // it has no text
  const std::array<std::uint8_t, 256> classes = grammar.byte_classes();
  Automaton automaton(std::move(grammar), limits_of_parts);
  std::map<Automaton::State, std::int32_t> numbers;
  std::vector<Automaton::State> found;
  const auto number = [&](Automaton::State state) {
    const auto [at, is_new] = numbers.try_emplace(state, 0);
    if (is_new) {
      at->second = out.add_state(automaton.accepts(state));
      found.push_back(state);
    }
    return at->second;
  };
  number(automaton.start());
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::array<std::int32_t, 256> target{};  // by class
    std::array<bool, 256> known{};
    const std::uint64_t before = automaton.work();
    for (int byte = 0; byte < 256; ++byte) {
      const std::size_t column = classes[static_cast<std::size_t>(byte)];
      if (!known[column]) {
        const auto to = automaton.step(found[i], static_cast<unsigned char>(byte));
        target[column] = to == Automaton::dead ? none : number(to);
        known[column] = true;
      }
      const auto at = static_cast<unsigned char>(byte);
      if (target[column] != none) add_range(out.states_[i], at, at, target[column]);
    }
    out.spend(16 + automaton.work() - before);
  }
  out.trim();
  return out;
}

TextSet TextSet::of_texts(CompileWork* work, const std::vector<std::string>& texts) {
  return of(work, [&](Grammar& grammar, Grammar::Node from) { return grammar.texts(from, texts); });
}

TextSet TextSet::all(CompileWork* work) {
  return of(work, [](Grammar& grammar, Grammar::Node from) {
    const Grammar::Node loop = grammar.add_node();
    grammar.add_empty(from, loop);
    const std::array<CodePointRange, 1> any = {{{0, 0x10FFFF}}};
    grammar.add_empty(add_code_points(grammar, loop, any, TextForm::plain), loop);
    return loop;
  });
}

TextSet TextSet::multiples(CompileWork* work, std::int32_t divisor) {
  TextSet out(work);
  for (std::int32_t rest = 0; rest < divisor; ++rest) {
    State& state = out.states_[static_cast<std::size_t>(out.add_state(rest == 0))];
    for (std::int32_t digit = 0; digit < 10; ++digit) {
      const auto byte = static_cast<unsigned char>('0' + digit);
      add_range(state, byte, byte,
                static_cast<std::int32_t>((std::int64_t{10} * rest + digit) % divisor));
    }
  }
  return out;
}

std::int32_t TextSet::next(std::int32_t state, unsigned char byte) const {
  const auto& ranges = states_[static_cast<std::size_t>(state)].ranges;
  const auto found = std::ranges::upper_bound(ranges, byte, {}, &Range::low);
  if (found == ranges.begin() || byte > std::prev(found)->high) return none;
  return std::prev(found)->target;
}

bool TextSet::contains(std::string_view text) const {
  spend(1 + text.size() / 8);
  if (empty()) return false;
  std::int32_t state = 0;
  for (const char byte : text) {
    state = next(state, static_cast<unsigned char>(byte));
    if (state == none) return false;
  }
  return states_[static_cast<std::size_t>(state)].accepts;
}

/// The bytes from `at` to at most `last` on that a state does not distinguish, and where they lead.
TextSet::Range TextSet::range_at(std::int32_t state, int at, int last) const {
  Range out{static_cast<unsigned char>(at), static_cast<unsigned char>(last), none};
  if (state == none) return out;
  const auto& ranges = states_[static_cast<std::size_t>(state)].ranges;
  const auto behind = std::ranges::upper_bound(ranges, at, {}, &Range::low);
  if (behind != ranges.end()) last = std::min(last, behind->low - 1);
  if (behind != ranges.begin() && at <= std::prev(behind)->high) {
    out.target = std::prev(behind)->target;
    last = std::min<int>(last, std::prev(behind)->high);
  }
  out.high = static_cast<unsigned char>(last);
  return out;
}

/// Pairs of states, breadth first; the second is `none` where `other` has no continuation.
TextSet TextSet::product(const TextSet& other, bool negated) const {
  TextSet out(work_);
  if (empty()) return out;
  using Pair = std::pair<std::int32_t, std::int32_t>;
  std::map<Pair, std::int32_t> numbers;
  std::vector<Pair> found;
  const auto number = [&](Pair pair) {
    const auto [at, is_new] = numbers.try_emplace(pair, 0);
    if (is_new) {
      const bool second =
          pair.second != none && other.states_[static_cast<std::size_t>(pair.second)].accepts;
      at->second =
          out.add_state(states_[static_cast<std::size_t>(pair.first)].accepts && second != negated);
      found.push_back(pair);
    }
    return at->second;
  };
  number({0, other.empty() ? none : 0});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, second] = found[i];
    for (const Range& range : states_[static_cast<std::size_t>(first)].ranges) {
      for (int at = range.low; at <= range.high;) {
        const Range part = other.range_at(second, at, range.high);
        spend(1);
        if (part.target != none || negated) {
          const std::int32_t target = number({range.target, part.target});
          add_range(out.states_[i], part.low, part.high, target);
        }
        at = part.high + 1;
      }
    }
  }
  out.trim();
  return out;
}

TextSet TextSet::intersected(const TextSet& other) const {
  return product(other, false);
}
TextSet TextSet::without(const TextSet& other) const {
  return product(other, true);
}

TextSet TextSet::of_length(Repetitions counts) const {
  TextSet out(work_);
  if (empty()) return out;
  // Beyond `cap` code points nothing changes, or nothing follows.
  const std::int32_t cap = counts.most.value_or(counts.least);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers;
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  const auto number = [&](std::int32_t state, std::int32_t length) {
    const auto [at, is_new] = numbers.try_emplace({state, length}, 0);
    if (is_new) {
      at->second =
          out.add_state(states_[static_cast<std::size_t>(state)].accepts && length >= counts.least);
      found.emplace_back(state, length);
    }
    return at->second;
  };
  number(0, 0);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [state, length] = found[i];
    for (const auto& [low, high, target] : states_[static_cast<std::size_t>(state)].ranges) {
      // Continuation bytes count nothing; no range has them and other bytes, as UTF-8 is valid.
      const bool continues = low >= 0x80 && low < 0xC0;
      if (!continues && length == cap && counts.most) continue;
      const std::int32_t more = continues ? length : std::min(length + 1, cap);
      const std::int32_t to = number(target, more);
      spend(1);
      add_range(out.states_[i], low, high, to);
    }
  }
  out.trim();
  return out;
}

/// Removes the states from which no text ends.
void TextSet::trim() {
  std::vector<std::vector<std::int32_t>> sources(states_.size());
  for (std::size_t i = 0; i < states_.size(); ++i)
    for (const Range& range : states_[i].ranges)
      sources[static_cast<std::size_t>(range.target)].push_back(static_cast<std::int32_t>(i));
  std::vector<bool> good(states_.size());
  std::vector<std::int32_t> open;
  const auto reach = [&](std::int32_t state) {
    if (good[static_cast<std::size_t>(state)]) return;
    good[static_cast<std::size_t>(state)] = true;
    open.push_back(state);
  };
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (states_[i].accepts) reach(static_cast<std::int32_t>(i));
  while (!open.empty()) {
    const auto state = static_cast<std::size_t>(open.back());
    open.pop_back();
    for (const std::int32_t source : sources[state]) reach(source);
  }
  if (states_.empty() || !good[0]) return states_.clear();
  std::vector<std::int32_t> numbers(states_.size(), none);
  std::int32_t kept = 0;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (good[i]) numbers[i] = kept++;
  std::vector<State> rest;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!good[i]) continue;
    std::erase_if(states_[i].ranges, [&](const Range& range) {
      return !good[static_cast<std::size_t>(range.target)];
    });
    for (Range& range : states_[i].ranges)
      range.target = numbers[static_cast<std::size_t>(range.target)];
    rest.push_back(std::move(states_[i]));
  }
  states_ = std::move(rest);
}

/// Adds the bytes of a range that stand for themselves; whether there are others, escaped ones.
bool TextSet::add_unescaped(Grammar& grammar, Grammar::Node from, const Range& range,
                            Grammar::Node to) {
  int first = range.low;
  bool escaped = false;
  for (int byte = range.low; byte <= range.high && byte <= '\\'; ++byte) {
    if (!is_escaped(static_cast<char32_t>(byte))) continue;
    if (first < byte)
      grammar.add_bytes(from, static_cast<unsigned char>(first),
                        static_cast<unsigned char>(byte - 1), to);
    first = byte + 1;
    escaped = true;
  }
  if (first <= range.high)
    grammar.add_bytes(from, static_cast<unsigned char>(first), range.high, to);
  return escaped;
}

Grammar::Node TextSet::add_to(Grammar& grammar, Grammar::Node from, bool plain) const {
  using Node = Grammar::Node;
  const Node end = grammar.add_node();
  std::vector<Node> nodes;
  nodes.reserve(states_.size());
  for (std::size_t i = 0; i < states_.size(); ++i) nodes.push_back(grammar.add_node());
  if (!empty()) grammar.add_empty(from, nodes[0]);
  std::map<std::tuple<std::int32_t, int, int>, Node> shared;  // escapes before a target
  const auto escapes = [&](const Range& range, Node to) {
    const auto [found, is_new] = shared.try_emplace({range.target, range.low, range.high}, 0);
    if (!is_new) return found->second;
    found->second = grammar.add_node();
    std::vector<std::string> texts;
    for (int byte = range.low; byte <= std::min<int>(range.high, '\\'); ++byte)
      if (is_escaped(static_cast<char32_t>(byte)))
        texts.push_back(json_escape(static_cast<char32_t>(byte)));
    grammar.add_empty(grammar.texts(found->second, std::move(texts)), to);
    return found->second;
  };
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].accepts) grammar.add_empty(nodes[i], end);
    for (const Range& range : states_[i].ranges) {
      const Node to = nodes[static_cast<std::size_t>(range.target)];
      if (plain)
        grammar.add_bytes(nodes[i], range.low, range.high, to);
      else if (add_unescaped(grammar, nodes[i], range, to))
        grammar.add_empty(nodes[i], escapes(range, to));
    }
  }
  return end;
}

}  // namespace troupe::engine::constraints
