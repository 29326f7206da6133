// PatternCache: the texts that expressions of a schema match, each compiled once.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "engine/constraints/regex.h"
#include "engine/constraints/text_set.h"

namespace troupe::engine::constraints {

class PatternCache {
 public:
  explicit PatternCache(CompileWork* work) : work_(work) {}

  /// Texts that an expression describes as a whole.
  const TextSet& whole(const std::string& pattern) { return find(pattern, 0); }
  /// Texts in which every engine finds a match, and those in which one of them may.
  const TextSet& surely(const std::string& pattern) { return find(pattern, 1); }
  const TextSet& perhaps(const std::string& pattern) { return find(pattern, 2); }
  const TextSet& all() {
    if (!all_) all_ = TextSet::all(work_);
    return *all_;
  }

 private:
  const TextSet& find(const std::string& pattern, int kind) {
    const auto [at, is_new] = sets_.try_emplace({pattern, kind}, std::nullopt);
    if (!at->second)
      at->second = TextSet::of(work_, [&](Grammar& grammar, Grammar::Node from) {
        return add_regex(grammar, from, pattern, TextForm::plain,
                         {.anywhere = kind > 0, .widest = kind == 2, .ecma = true});
      });
    return *at->second;
  }

  CompileWork* work_;
  std::map<std::pair<std::string, int>, std::optional<TextSet>> sets_;
  std::optional<TextSet> all_;
};

}  // namespace troupe::engine::constraints
