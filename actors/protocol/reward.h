// What is asked of reward models: how good samples are.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "actors/protocol/generate.h"

namespace troupe::actors::protocol {

/// A sample as reward models see it. The ids are the policy's, whose tokenizer they share; `text`
/// is the completion's.
struct Rated {
  std::vector<std::int32_t> prompt, completion;
  std::string text;
};
inline auto fields(Rated& r) {
  return std::tie(r.prompt, r.completion, r.text);
}

/// Replies come in the order of `samples`: each model is a part, by its label; the reward is their
/// weighted sum.
struct Rate {
  using Reply = std::vector<Verdict>;
  static constexpr std::string_view name = "rate";
  std::vector<Rated> samples;
};
inline auto fields(Rate& m) {
  return std::tie(m.samples);
}

}  // namespace troupe::actors::protocol
