// Bounds of the evaluation of a script: its text may ask for any amount of work and memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::launch::tools::migration::shell {

/// Bytes of one word, of the values of all variables, and of all words that a script expands.
inline constexpr std::size_t max_bytes = std::size_t{1} << 20, max_expanded = 4 * max_bytes;
/// Expansions within expansions, and commands within commands.
inline constexpr int max_depth = 64;

/// Throws Failure (Errc::usage): more than `limit` bytes of `what`.
[[noreturn]] void too_large(std::string_view what, std::size_t limit);
/// Throws Failure (Errc::usage): `where` nests too deeply.
[[noreturn]] void too_deep(std::string_view where);

/// Counts levels of nesting. The constructor throws Failure beyond max_depth.
class Level {
 public:
  Level(int& depth, std::string_view where) : depth_(depth) {
    if (++depth_ > max_depth) {
      --depth_;
      too_deep(where);
    }
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

/// What an evaluation may still spend.
class Budget {
 public:
  /// A command, an iteration or a comparison of characters. Throws Failure (Errc::usage).
  void step(std::size_t line);
  /// Characters that are compared or copied. Throws Failure (Errc::usage).
  void work(std::size_t characters);
  /// Bytes of expanded words. Throws Failure (Errc::usage).
  void expand(std::size_t bytes);

 private:
  std::size_t steps_ = 0, work_ = 0, expanded_ = 0;
};

}  // namespace troupe::launch::tools::migration::shell
