// Comparison of two paths, token by token.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/models/spec.h"
#include "launch/parity/locate.h"
#include "launch/parity/paths.h"

namespace troupe::launch::parity {

/// The first value that breaks a promise.
struct Difference {
  std::string quantity;  ///< "token", "hidden state", "log-sum-exp", "log-probability", "entropy"
  std::size_t text = 0;  ///< its number
  std::int32_t position = 0;  ///< of the token in the text
  std::int32_t token = 0;
  double first = 0, second = 0;            ///< the values; of hidden states the log-probabilities
  std::array<TokenValues, 2> values = {};  ///< all that both paths have of the token
};

struct PairResult {
  std::string first, second;  ///< the paths
  Promise promise = Promise::equal;
  std::int64_t tokens = 0;  ///< compared
  /// Tokens whose rotary factors are not those of the whole text, so that nothing is promised
  /// (docs/adding-a-model.md, "Positions that depend on the length").
  std::int64_t excepted = 0;
  double largest = 0;  ///< difference of log-probabilities or entropies
  std::optional<Difference> broken = {};
  std::optional<Location> location = {};  ///< of `broken`, where it was looked for and found

  void add(const PairResult& more);
};

/// Largest difference of Promise::bound, relative to values above 1.
inline constexpr double bound = 1e-5;

/// Compares what `score` and another path computed for the same texts: tokens and quantities that
/// both have.
struct ComparedTexts {
  const engine::models::DecoderSpec& spec;
  std::span<const Text> texts;
  std::size_t number = 0;  ///< of the first of them
};
PairResult compare(const PathValues& a, const PathValues& b, const Path& path, Promise promise,
                   const ComparedTexts& of);
/// Whether the token at `position` was generated with other rotary factors than those of a text of
/// `length` tokens.
bool is_excepted(const engine::models::DecoderSpec& spec, std::int64_t position,
                 std::int64_t length);

/// Adds log-sum-exps, entropies and hidden states of `rows` to the tokens, which have their order.
void attach_rows(PathValues& values);
/// The same for rows in any order: a token gets the row with its log-probability that has the
/// values of `reference`, if there is one, otherwise another row with its log-probability.
void attach_rows(PathValues& values, const PathValues& reference);

}  // namespace troupe::launch::parity
