// Rules for the parts of JSON text (RFC 8259) that schemas share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/constraints/grammar.h"

namespace troupe::engine::constraints {

/// What a number must satisfy. `long double` has 64-bit integers and doubles exactly.
struct NumberBounds {
  std::optional<long double> low, high;
  bool low_open = false, high_open = false;  ///< without the bound itself
  std::int32_t divisor = 1;                  ///< of an integer
  /// Digits after the point at most, of a number.
  std::optional<int> places;
  bool no_integer = false;  ///< a number with a fraction
  bool any() const { return low || high || divisor != 1 || places || no_integer; }
  /// Adds a bound: the tighter one remains.
  void at_least(long double value, bool open);
  void at_most(long double value, bool open);
};

/// Each rule is made when it is first needed. A comma and a colon may be followed by a space; other
/// white space is not written, so that bounded values have bounded texts.
class JsonRules {
 public:
  explicit JsonRules(Grammar& grammar) : grammar_(grammar) {}

  Grammar::Rule character();  ///< of a string, or an escape: one code point, no surrogate
  Grammar::Rule string();
  Grammar::Rule comma();
  Grammar::Rule colon();
  Grammar::Rule number();  ///< at most 15 digits before and after the point, exponents of 2
  Grammar::Rule value();   ///< of any type
  Grammar::Rule object();
  Grammar::Rule array();
  Grammar::Rule literal(const std::string& text);
  /// Integers of 64 bits.
  Grammar::Rule integer(const NumberBounds& bounds);
  /// Numbers within bounds, without exponents; a fraction between two integers only if all
  /// fractions between them are within the bounds.
  Grammar::Rule bounded_number(const NumberBounds& bounds);

  /// Adds ITEM, or ITEM, ITEM ... of members of objects or of elements, in brackets.
  void add_list(Grammar::Rule into, char open, Grammar::Rule item, char close);
  /// A string: value pair.
  Grammar::Rule pair(Grammar::Rule value);

 private:
  using Integer = std::int64_t;
  template <class Fill>
  Grammar::Rule once(const std::string& name, Fill fill);
  void add_integers(Grammar::Rule into, Integer low, Integer high, const NumberBounds& bounds,
                    bool fractions);
  void add_multiples(Grammar::Node from, Integer low, Integer high, std::int32_t divisor,
                     Grammar::Node to);
  void add_natural(Grammar::Node from, Integer low, Integer high, Grammar::Node to);
  void add_digits(Grammar::Node from, const std::string& low, const std::string& high,
                  Grammar::Node to);
  Grammar::Node fraction(Grammar::Node from, const NumberBounds& bounds);

  Grammar& grammar_;
  std::map<std::string, Grammar::Rule> made_;
};

}  // namespace troupe::engine::constraints
