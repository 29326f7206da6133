// The measured FLOP/s of a processor, kept in the user's cache, so that estimates of the same
// machine are the same whatever else it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"

namespace troupe::launch::commands {

/// What a rate was measured with.
struct RateKey {
  std::string processor;        ///< model name
  std::string instruction_set;  ///< of the kernels: "avx2"
  std::int64_t threads = 0;
  std::string dtype;  ///< of the matrix product: "f32", "bf16"
};

struct StoredRate {
  double flops = 0;  ///< FLOP/s, above 0
  std::string date;  ///< of the measurement (UTC): "2026-11-27"
};

/// The rate of `key` in the text of a cache file; nullopt: none yet. Errc::corrupt: this is no file
/// of rates, or one of another version.
Result<std::optional<StoredRate>> find_rate(std::string_view text, const RateKey& key);

/// The text with the rate of `key`, in place of the former one. A text that is no file of rates is
/// replaced. The file has at most 256 rates: the oldest lines are dropped.
std::string with_rate(std::string_view text, const RateKey& key, const StoredRate& rate);

/// $XDG_CACHE_HOME/troupe/rates.json, or ~/.cache/troupe/rates.json (XDG Base Directory
/// Specification: a relative XDG_CACHE_HOME is ignored); "": neither variable is set.
std::string rate_cache_path();

/// The model name of the processor (/proc/cpuinfo), or the architecture (uname).
std::string processor_name();

}  // namespace troupe::launch::commands
