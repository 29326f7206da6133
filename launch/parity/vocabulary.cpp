#include "launch/parity/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace troupe::launch::parity {
namespace {

constexpr std::size_t compared_texts = 4;
constexpr std::size_t targets_at_a_time = 256;  // each has a row of hidden states

/// Evenly spaced.
std::vector<std::int32_t> tokens_of(std::int64_t vocabulary, std::int64_t wanted) {
  const std::int64_t count = wanted < 0 ? vocabulary : std::min(wanted, vocabulary);
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::int32_t>(i * vocabulary / count));
  return out;
}

void compare_values(const VocabularyValues& values, std::span<const std::int32_t> ids,
                    Difference at, PairResult& out) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const float a = values.scored[i], b = values.generated[i];
    ++out.tokens;
    at.first = static_cast<double>(a);
    at.second = static_cast<double>(b);
    at.token = ids[i];
    out.largest = std::max(out.largest, std::abs(at.first - at.second));
    if (!out.broken && std::bit_cast<std::uint32_t>(a) != std::bit_cast<std::uint32_t>(b))
      out.broken = at;
  }
}

}  // namespace

PairResult compare_vocabulary(const Settings& settings, PathRunner& runner,
                              std::span<const Text> texts, std::size_t number) {
  PairResult out{"score", "vocabulary", Promise::equal};
  const PathInputs in = runner.inputs(texts);
  const std::vector<std::int32_t> ids =
      tokens_of(runner.spec().vocabulary, settings.options.targets);
  for (std::size_t i = 0; i < std::min(texts.size(), compared_texts); ++i) {
    const auto length = static_cast<std::int32_t>(texts[i].tokens.size());
    for (const std::int32_t position :
         std::set{texts[i].prompt, (texts[i].prompt + length) / 2, length - 1}) {
      if (position < 1 || position >= length || is_excepted(runner.spec(), position, position + 1))
        continue;
      for (std::size_t at = 0; at < ids.size(); at += targets_at_a_time) {
        const auto end = std::min(ids.size(), at + targets_at_a_time);
        const std::vector<std::int32_t> some(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                             ids.begin() + static_cast<std::ptrdiff_t>(end));
        compare_values(vocabulary_values(in, texts[i], position, some), some,
                       {"log-probability", number + i, position}, out);
      }
    }
  }
  return out;
}

}  // namespace troupe::launch::parity
