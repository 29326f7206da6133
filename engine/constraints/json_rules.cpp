#include "engine/constraints/json_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/base/text/text.h"
#include "engine/constraints/regex.h"
#include "engine/constraints/repetition.h"
#include "engine/constraints/text_set.h"

namespace troupe::engine::constraints {

using Node = Grammar::Node;
using Rule = Grammar::Rule;

namespace {

/// Integers up to here are exact in double precision.
constexpr std::int64_t max_short = 999'999'999'999'999;
constexpr std::int64_t max_integer = std::numeric_limits<std::int64_t>::max();

// Escapes of RFC 8259, sec. 7; \u without surrogates.
constexpr std::string_view escapes =
    R"(\\(["\\/bfnrt]|u([0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2})))";
constexpr std::string_view numbers =
    R"(-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?)";

std::int64_t clamp(long double value) {
  constexpr auto limit = static_cast<long double>(max_integer);
  return static_cast<std::int64_t>(std::clamp(value, -limit, limit));
}

/// The integers within the bounds; where there are none, the first is above the second.
std::pair<std::int64_t, std::int64_t> integers_within(const NumberBounds& bounds) {
  constexpr std::pair<std::int64_t, std::int64_t> none = {1, 0};
  std::int64_t low = -max_integer, high = max_integer;
  if (bounds.low) {
    if (*bounds.low > static_cast<long double>(max_integer)) return none;
    low = clamp(std::ceil(*bounds.low));
    const bool excluded = bounds.low_open && static_cast<long double>(low) == *bounds.low;
    if (excluded && low == max_integer) return none;
    if (excluded) ++low;
  }
  if (bounds.high) {
    if (*bounds.high < -static_cast<long double>(max_integer)) return none;
    high = clamp(std::floor(*bounds.high));
    const bool excluded = bounds.high_open && static_cast<long double>(high) == *bounds.high;
    if (excluded && high == -max_integer) return none;
    if (excluded) --high;
  }
  return {low, high};
}

}  // namespace

template <class Fill>
Rule JsonRules::once(const std::string& name, Fill fill) {
  if (const auto found = made_.find(name); found != made_.end()) return found->second;
  const Rule rule = grammar_.add_rule();
  made_.emplace(name, rule);
  fill(rule);
  return rule;
}

Rule JsonRules::character() {
  return once("character", [this](Rule rule) {
    const std::array<CodePointRange, 3> unescaped = {
        {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}};
    const Node begin = grammar_.begin(rule), end = grammar_.end(rule);
    grammar_.add_empty(add_code_points(grammar_, begin, unescaped, TextForm::plain), end);
    grammar_.add_empty(add_regex(grammar_, begin, escapes, TextForm::plain), end);
  });
}

Rule JsonRules::string() {
  return once("string", [this](Rule rule) {
    Node at = grammar_.text(grammar_.begin(rule), "\"");
    at = add_repeated(grammar_, at, character(), {0, std::nullopt});
    grammar_.add_empty(grammar_.text(at, "\""), grammar_.end(rule));
  });
}

Rule JsonRules::comma() {
  return once("comma", [this](Rule rule) {
    grammar_.add_empty(add_regex(grammar_, grammar_.begin(rule), ", ?", TextForm::plain),
                       grammar_.end(rule));
  });
}

Rule JsonRules::colon() {
  return once("colon", [this](Rule rule) {
    grammar_.add_empty(add_regex(grammar_, grammar_.begin(rule), ": ?", TextForm::plain),
                       grammar_.end(rule));
  });
}

Rule JsonRules::number() {
  return once("number", [this](Rule rule) {
    grammar_.add_empty(add_regex(grammar_, grammar_.begin(rule), numbers, TextForm::plain),
                       grammar_.end(rule));
  });
}

Rule JsonRules::literal(const std::string& text) {
  return once("literal " + text, [&](Rule rule) {
    grammar_.add_empty(grammar_.text(grammar_.begin(rule), text), grammar_.end(rule));
  });
}

Rule JsonRules::value() {
  return once("value", [this](Rule rule) {
    for (const Rule each : {string(), number(), literal("true"), literal("false"), literal("null"),
                            object(), array()})
      grammar_.add_empty(grammar_.call(grammar_.begin(rule), each), grammar_.end(rule));
  });
}

Rule JsonRules::object() {
  return once("object", [this](Rule rule) { add_list(rule, '{', pair(value()), '}'); });
}

Rule JsonRules::array() {
  return once("array", [this](Rule rule) { add_list(rule, '[', value(), ']'); });
}

Rule JsonRules::pair(Rule value) {
  const Rule rule = grammar_.add_rule();
  const Node key = grammar_.call(grammar_.begin(rule), string());
  grammar_.add_empty(grammar_.call(grammar_.call(key, colon()), value), grammar_.end(rule));
  return rule;
}

void JsonRules::add_list(Rule into, char open, Rule item, char close) {
  const Node first = grammar_.text(grammar_.begin(into), std::string(1, open));
  const Node last = grammar_.add_node(), more = grammar_.call(first, item);
  grammar_.add_empty(first, last);
  grammar_.add_empty(more, last);
  grammar_.add_empty(grammar_.call(grammar_.call(more, comma()), item), more);
  grammar_.add_empty(grammar_.text(last, std::string(1, close)), grammar_.end(into));
}

void NumberBounds::at_least(long double value, bool open) {
  if (low && (value < *low || (value == *low && !open))) return;
  low = value;
  low_open = open;
}

void NumberBounds::at_most(long double value, bool open) {
  if (high && (value > *high || (value == *high && !open))) return;
  high = value;
  high_open = open;
}

Rule JsonRules::integer(const NumberBounds& bounds) {
  const Rule rule = grammar_.add_rule();
  const auto [low, high] = integers_within(bounds);
  add_integers(rule, low, high, bounds, false);
  return rule;
}

Rule JsonRules::bounded_number(const NumberBounds& bounds) {
  const Rule rule = grammar_.add_rule();
  const auto [low, high] = integers_within(bounds);
  if (!bounds.no_integer) add_integers(rule, low, high, bounds, false);
  if (bounds.divisor != 1 || bounds.places == 0) return rule;
  NumberBounds within = bounds;  // of the integers before a fraction
  within.low_open = within.high_open = false;
  const auto [least, most] = integers_within(within);
  add_integers(rule, std::max(least, -max_short), std::min(most, max_short), bounds, true);
  return rule;
}

/// The integers of [low, high], or, with `fractions`, the numbers between two neighbours of them.
void JsonRules::add_integers(Rule into, Integer low, Integer high, const NumberBounds& bounds,
                             bool fractions) {
  const Integer shorter = fractions ? 1 : 0;
  const auto add = [&](Node from, Integer least, Integer most) {
    if (least > most) return;
    const Node to = grammar_.add_node();
    if (bounds.divisor == 1)
      add_natural(from, least, most, to);
    else
      add_multiples(from, least, most, bounds.divisor, to);
    grammar_.add_empty(fractions ? fraction(to, bounds) : to, grammar_.end(into));
  };
  add(grammar_.begin(into), std::max<Integer>(low, 0), high - shorter);
  if (low >= 0) return;
  const Node minus = grammar_.text(grammar_.begin(into), "-");
  add(minus, std::max<Integer>(fractions ? 0 : 1, -high), -low - shorter);
}

void JsonRules::add_multiples(Node from, Integer low, Integer high, std::int32_t divisor, Node to) {
  const TextSet range = TextSet::of(grammar_.work(), [&](Grammar& grammar, Node begin) {
    const Node end = grammar.add_node();
    JsonRules(grammar).add_natural(begin, low, high, end);
    return end;
  });
  const TextSet found = range.intersected(TextSet::multiples(grammar_.work(), divisor));
  grammar_.add_empty(found.add_to(grammar_, from, true), to);
}

/// A fraction that is not zero. Numbers have at most 15 digits near a bound, so that none rounds to
/// a number beyond it.
Node JsonRules::fraction(Node from, const NumberBounds& bounds) {
  int places = 15;
  for (const auto& bound : {bounds.low, bounds.high}) {
    if (!bound || std::abs(*bound) < 1) continue;
    const auto digits = static_cast<int>(std::floor(std::log10(std::abs(*bound)))) + 1;
    places = std::min(places, std::max(15 - digits, 1));
  }
  places = std::min(places, bounds.places.value_or(places));
  return add_regex(grammar_, from, cat("\\.[0-9]{0,", places - 1, "}[1-9]"), TextForm::plain);
}

/// The integers of [low, high], low at least 0.
void JsonRules::add_natural(Node from, Integer low, Integer high, Node to) {
  if (low > high) return;
  const std::string first = std::to_string(low), last = std::to_string(high);
  for (std::size_t digits = first.size(); digits <= last.size(); ++digits) {
    const std::string begin = digits == first.size() ? first : "1" + std::string(digits - 1, '0');
    const std::string end = digits == last.size() ? last : std::string(digits, '9');
    add_digits(from, begin, end, to);
  }
}

/// Texts of digits of one length from `low` to `high`.
void JsonRules::add_digits(Node from, const std::string& low, const std::string& high, Node to) {
  if (low.empty()) return grammar_.add_empty(from, to);
  const std::string nines(low.size() - 1, '9'), zeros(low.size() - 1, '0');
  const auto add = [&](char first, char last, const std::string& least, const std::string& most) {
    if (first > last) return;
    const Node next = grammar_.add_node();
    grammar_.add_bytes(from, static_cast<unsigned char>(first), static_cast<unsigned char>(last),
                       next);
    add_digits(next, least, most, to);
  };
  const std::string least = low.substr(1), most = high.substr(1);
  if (low[0] == high[0]) return add(low[0], low[0], least, most);
  const char begin = least == zeros ? low[0] : static_cast<char>(low[0] + 1);
  const char end = most == nines ? high[0] : static_cast<char>(high[0] - 1);
  if (begin != low[0]) add(low[0], low[0], least, nines);
  add(begin, end, zeros, nines);
  if (end != high[0]) add(high[0], high[0], zeros, most);
}

}  // namespace troupe::engine::constraints
