// The fields that a word expands to, while it is expanded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/migration/shell/limits.h"
#include "launch/tools/migration/shell/state.h"

namespace troupe::launch::tools::migration::shell {

/// A word after its expansion.
struct Field {
  Value value;
  bool open = false;  ///< that part may be several words, or none
  std::size_t line = 0;
};

class Fields {
 public:
  enum class Mode {
    split,   ///< unquoted values are split at blanks
    single,  ///< one field: an assignment's value
    pattern  ///< one field, in which a backslash is before quoted characters
  };
  Fields(Mode mode, std::string_view separators, std::size_t line, Budget& budget)
      : mode_(mode), separators_(separators), line_(line), budget_(budget) {}

  void literal(char c, bool quoted);
  void value(const Value& value, bool quoted);
  /// "$@", or $@ if not quoted. `unknown`: why there may be others.
  void list(const std::vector<Value>& values, const std::string& unknown, bool quoted,
            std::string_view raw);
  /// Quotation marks make a field, even an empty one.
  void mark() { started_ = true; }

  std::vector<Field> take();
  Value take_value();

 private:
  void text(std::string_view text, bool quoted);
  void note(const Value& value, bool open);
  void split(const Value& value);
  void end_field();

  Mode mode_;
  std::string separators_;
  std::size_t line_;
  Budget& budget_;
  std::vector<Field> fields_;
  Field field_;
  bool started_ = false;
};

}  // namespace troupe::launch::tools::migration::shell
