// Checks of the values of a sample that was made elsewhere: those that a program sends to
// /v1/experience, and those that a run reads back from its checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::engine::data {

/// Columns of one sample, as wide as JSON has them, so that a value out of range is still seen.
struct SampleColumns {
  std::span<const std::int64_t> tokens;    ///< [T]
  std::span<const std::int64_t> mask;      ///< [T] 1: the policy sampled it, 0: another wrote it
  std::span<const double> logp;            ///< [T] read where the mask is 1
  std::span<const std::int64_t> versions;  ///< [T] read where the mask is 1
  std::optional<double> reward;
};

/// What the columns may hold.
struct SampleBounds {
  std::int64_t vocabulary = 0;  ///< token ids are below it
  std::int64_t longest = 0;     ///< tokens
  std::int64_t newest = 0;      ///< version of the newest weights that there are
};

struct BadValue {
  std::string field;  ///< by its name in /v1/experience: "logprobs[3]"
  std::string what;   ///< a sentence that begins with `field`: what was expected and found
};

/// A log-probability is at most 0; its rounding to float32 may leave this much above.
inline constexpr double largest_logp = 1e-4;

/// Whether `value` can be the log-probability of a sampled token: finite as a float32 and not
/// above largest_logp.
bool is_logp(double value);
/// Whether `value` is finite as a float32.
bool is_reward(double value);

/// The first value that no sample can have: a column of another length than `tokens`, more tokens
/// than `longest`, a token id outside of the vocabulary, a mask other than 0 and 1, and where the
/// mask is 1 what is no log-probability and a version that does not exist; a reward that is not
/// finite. nullopt: none.
std::optional<BadValue> find_bad_value(const SampleColumns& sample, const SampleBounds& bounds);

}  // namespace troupe::engine::data
