#include "engine/constraints/grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text.h"
#include "engine/base/utf8.h"

namespace troupe::engine::constraints {

namespace {

constexpr char32_t last_code_point = 0x10FFFF;
constexpr std::string_view hex_digits = "0123456789abcdef";

}  // namespace

Grammar::Node Grammar::add_node() {
  if (edges_.size() >= max_nodes) {
    throw Failure(Error{Errc::full, cat("the constraint needs more than ", max_nodes,
                                        " states; lower its counts and lengths")});
  }
  edges_.emplace_back();
  ends_.push_back(false);
  return static_cast<Node>(edges_.size()) - 1;
}

Grammar::Rule Grammar::add_rule() {
  if (rules_.size() >= max_rules)
    throw Failure(Error{Errc::full, cat("the constraint needs more than ", max_rules, " rules")});
  const Node begin = add_node(), end = add_node();
  ends_[static_cast<std::size_t>(end)] = true;
  rules_.emplace_back(begin, end);
  return static_cast<Rule>(rules_.size()) - 1;
}

void Grammar::add_empty(Node from, Node to) {
  edges_[static_cast<std::size_t>(from)].push_back({.kind = Kind::nothing, .target = to});
}

void Grammar::add_bytes(Node from, unsigned char low, unsigned char high, Node to) {
  edges_[static_cast<std::size_t>(from)].push_back(
      {.kind = Kind::bytes, .low = low, .high = high, .target = to});
}

Grammar::Node Grammar::call(Node from, Rule rule) {
  const Node to = add_node();
  edges_[static_cast<std::size_t>(from)].push_back(
      {.kind = Kind::call, .rule = rule, .target = to});
  return to;
}

Grammar::Node Grammar::text(Node from, std::string_view bytes) {
  for (const char each : bytes) {
    const Node to = add_node();
    const auto byte = static_cast<unsigned char>(each);
    add_bytes(from, byte, byte, to);
    from = to;
  }
  return from;
}

/// Splits the range where the encodings of its ends differ in more than the last bytes.
void Grammar::add_utf8(Node from, char32_t low, char32_t high, Node to) {
  for (const char32_t last : {U'\x7F', U'\u07FF', U'\uFFFF'}) {
    if (low > last || high <= last) continue;
    add_utf8(from, low, last, to);
    return add_utf8(from, last + 1, high, to);
  }
  for (int shift = 6; shift <= 18 && low > 0x7F; shift += 6) {
    const char32_t mask = (char32_t{1} << shift) - 1;
    if ((low & ~mask) == (high & ~mask)) break;
    if ((low & mask) != 0) {
      add_utf8(from, low, low | mask, to);
      return add_utf8(from, (low | mask) + 1, high, to);
    }
    if ((high & mask) != mask) {
      add_utf8(from, low, (high & ~mask) - 1, to);
      return add_utf8(from, high & ~mask, high, to);
    }
  }
  std::string first, last;
  append_utf8(first, low);
  append_utf8(last, high);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Node next = i + 1 == first.size() ? to : add_node();
    add_bytes(from, static_cast<unsigned char>(first[i]), static_cast<unsigned char>(last[i]),
              next);
    from = next;
  }
}

void Grammar::add_json_escape(Node from, char32_t value, Node to) {
  constexpr std::array<std::pair<char32_t, std::string_view>, 7> short_forms = {{{'"', "\\\""},
                                                                                 {'\\', "\\\\"},
                                                                                 {'\b', "\\b"},
                                                                                 {'\f', "\\f"},
                                                                                 {'\n', "\\n"},
                                                                                 {'\r', "\\r"},
                                                                                 {'\t', "\\t"}}};
  const auto found =
      std::ranges::find(short_forms, value, &std::pair<char32_t, std::string_view>::first);
  std::string escape = cat("\\u00", hex_digits[value / 16 % 16], hex_digits[value % 16]);
  if (found != short_forms.end()) escape = found->second;
  add_empty(text(from, escape), to);
}

Grammar::Node Grammar::code_points(Node from, std::span<const CodePointRange> ranges,
                                   TextForm form) {
  const Node to = add_node();
  const auto is_escaped = [form](char32_t c) {
    return form == TextForm::json && (c < 0x20 || c == '"' || c == '\\');
  };
  const auto add = [&](char32_t low, char32_t high) {
    if (low < 0xD800 && high > 0xDFFF) {
      add_utf8(from, low, 0xD7FF, to);
      low = 0xE000;
    }
    if (low >= 0xD800 && low <= 0xDFFF) low = 0xE000;
    if (high >= 0xD800 && high <= 0xDFFF) high = 0xD7FF;
    if (low <= high) add_utf8(from, low, high, to);
  };
  for (auto [low, high] : ranges) {
    high = std::min(high, last_code_point);
    char32_t at = low;
    for (; at <= std::min<char32_t>(high, '\\'); ++at) {
      if (!is_escaped(at)) continue;
      if (low < at) add(low, at - 1);
      add_json_escape(from, at, to);
      low = at + 1;
    }
    if (low <= high) add(low, high);
  }
  return to;
}

/// Nodes from which the end of their rule can be reached.
std::vector<bool> Grammar::productive_nodes() const {
  struct Use {
    Node from;
    Edge edge;
  };
  std::vector<std::vector<Use>> uses(edges_.size());  // edges by the nodes that they need
  std::vector<Node> found;
  for (std::size_t n = 0; n < edges_.size(); ++n) {
    const auto node = static_cast<Node>(n);
    if (ends_[n]) found.push_back(node);
    for (const Edge& edge : edges_[n]) {
      uses[static_cast<std::size_t>(edge.target)].push_back({node, edge});
      if (edge.kind == Kind::call)
        uses[static_cast<std::size_t>(begin(edge.rule))].push_back({node, edge});
    }
  }
  std::vector<bool> good = ends_;
  while (!found.empty()) {
    const Node node = found.back();
    found.pop_back();
    for (const Use& use : uses[static_cast<std::size_t>(node)]) {
      const bool works =
          good[static_cast<std::size_t>(use.edge.target)] &&
          (use.edge.kind != Kind::call || good[static_cast<std::size_t>(begin(use.edge.rule))]);
      if (!works || good[static_cast<std::size_t>(use.from)]) continue;
      good[static_cast<std::size_t>(use.from)] = true;
      found.push_back(use.from);
    }
  }
  return good;
}

/// Rules that match the empty text.
std::vector<bool> Grammar::nullable_rules() const {
  Grammar silent = *this;  // without the edges that read bytes
  for (auto& edges : silent.edges_)
    std::erase_if(edges, [](const Edge& edge) { return edge.kind == Kind::bytes; });
  const std::vector<bool> good = silent.productive_nodes();
  std::vector<bool> out;
  for (const auto& rule : rules_) out.push_back(good[static_cast<std::size_t>(rule.first)]);
  return out;
}

/// Whether a rule can call itself before it reads a byte: a cycle of nodes that passes a call.
bool Grammar::is_left_recursive() const {
  const std::vector<bool> nullable = nullable_rules();
  std::vector<std::vector<Rule>> calls(rules_.size());
  std::vector<std::size_t> seen(edges_.size(), rules_.size());  // by node: the rule of the search
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    std::vector<Node> open = {rules_[r].first};
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      for (const Edge& edge : edges(node)) {
        if (edge.kind == Kind::bytes) continue;
        if (edge.kind == Kind::call) calls[r].push_back(edge.rule);
        if (edge.kind == Kind::call && !nullable[static_cast<std::size_t>(edge.rule)]) continue;
        if (std::exchange(seen[static_cast<std::size_t>(edge.target)], r) != r)
          open.push_back(edge.target);
      }
    }
  }
  // Removes the rules that call no remaining rule first; what is left is on or before a cycle.
  std::vector<std::vector<Rule>> callers(rules_.size());
  std::vector<std::size_t> left(rules_.size());
  std::vector<Rule> done;
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    left[r] = calls[r].size();
    if (left[r] == 0) done.push_back(static_cast<Rule>(r));
    for (const Rule called : calls[r])
      callers[static_cast<std::size_t>(called)].push_back(static_cast<Rule>(r));
  }
  std::size_t removed = 0;
  for (; !done.empty(); ++removed) {
    const Rule rule = done.back();
    done.pop_back();
    for (const Rule caller : callers[static_cast<std::size_t>(rule)])
      if (--left[static_cast<std::size_t>(caller)] == 0) done.push_back(caller);
  }
  return removed < rules_.size();
}

Result<> Grammar::finish() {
  const std::vector<bool> good = productive_nodes();
  if (!good[static_cast<std::size_t>(begin(root_))])
    return fail(Errc::bad_input, "no text satisfies the constraint");
  for (auto& edges : edges_) {
    std::erase_if(edges, [&](const Edge& edge) {
      return !good[static_cast<std::size_t>(edge.target)] ||
             (edge.kind == Kind::call && !good[static_cast<std::size_t>(begin(edge.rule))]);
    });
  }
  if (is_left_recursive()) {
    return fail(Errc::bad_input,
                "a rule can call itself before it reads a character (left recursion); rewrite it "
                "as a repetition");
  }
  return {};
}

}  // namespace troupe::engine::constraints
