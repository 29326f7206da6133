// CharacterSet: a set of code points, for classes of regular expressions and grammars.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/constraints/code_points.h"

namespace troupe::engine::constraints {

class CharacterSet {
 public:
  /// The ranges may overlap, in any order.
  static CharacterSet of(std::vector<CodePointRange> ranges);
  /// The set of \d, \w, \s, \D, \W or \S, all of ASCII.
  static std::optional<CharacterSet> shorthand(char32_t letter);

  CharacterSet complement() const;
  CharacterSet ascii_complement() const;

  bool is_shorthand() const { return shorthand_; }
  bool is_single() const {
    return !shorthand_ && ranges_.size() == 1 && ranges_[0].first == ranges_[0].second;
  }
  char32_t single() const { return ranges_.front().first; }
  std::span<const CodePointRange> ranges() const { return ranges_; }

 private:
  CharacterSet complement_below(char32_t limit) const;
  void normalize();

  std::vector<CodePointRange> ranges_;  // in order, with gaps between
  bool shorthand_ = false;
};

}  // namespace troupe::engine::constraints
