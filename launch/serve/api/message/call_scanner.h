// Scanners of JSON that arrives character by character: where a value ends, and the members of a
// tool call. They do not check what is inside values: arguments are passed on as they are.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::launch::serve::api {

/// Whether JSON has the character between its tokens.
constexpr bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

enum class Scan : std::uint8_t {
  inside,   ///< the character belongs to the value, and more follows
  last,     ///< the character is the value's last one
  after,    ///< the value, a number or a word, ended before the character
  invalid,  ///< no value begins with the character
};

/// Finds the end of one value, without space before it.
class ValueScanner {
 public:
  Scan push(char c);

 private:
  Scan push_first(char c);

  enum class Kind : std::uint8_t { unknown, string, container, word } kind_ = Kind::unknown;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

/// Reads {"name": NAME, "arguments": VALUE} ("parameters" in calls of Llama 3), members in any
/// order; others are skipped.
class CallScanner {
 public:
  /// inside, last or invalid. An object that ends without both members is invalid.
  Scan push(char c);
  /// Whether the name and the beginning of the arguments have been read.
  bool known() const { return !name_.empty() && !arguments_.empty(); }
  const std::string& name() const { return name_; }
  /// The arguments since the last call.
  std::string take_arguments();

 private:
  enum class Step : std::uint8_t { open, key_or_end, key, colon, value_begin, value, next, done };

  Scan push_key(char c);
  Scan push_value(char c);
  bool end_value();
  Scan end();

  Step step_ = Step::open;
  ValueScanner value_;
  std::string key_, text_, name_, arguments_;
  std::size_t taken_ = 0;
};

}  // namespace troupe::launch::serve::api
