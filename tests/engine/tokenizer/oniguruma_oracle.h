// Oniguruma's matches. Its header cannot be included beside gtest's and ICU's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/tokenizer/base/regex.h"

namespace troupe::engine::tokenizer {

/// All matches of a pattern, as the library finds them (Ruby's syntax, no options).
class Oniguruma {
 public:
  explicit Oniguruma(const std::string& pattern);
  bool compiled() const { return regex_ != nullptr; }
  std::vector<Range> find_all(const std::string& text) const;

 private:
  std::shared_ptr<void> regex_;
};

}  // namespace troupe::engine::tokenizer
