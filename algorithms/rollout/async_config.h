// The section `async` of a run file: whether sampling and training overlap.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/generate/weight_change.h"

namespace troupe::algorithms {

/// off: a batch is sampled, then trained. pinned: the samples of batch b, counted from 0, are those
/// of version max(0, b - eta) of the weights, whatever the timing. free: the rollouts take over new
/// weights as they arrive, also between two tokens of a sample.
enum class AsyncMode { off, pinned, free };
constexpr std::array<std::string_view, 3> names_of(AsyncMode) {
  return {"off", "pinned", "free"};
}

struct AsyncConfig {
  AsyncMode mode = AsyncMode::off;
  std::int64_t eta = 1;
  std::int64_t in_flight = 0;
  engine::generate::WeightChange change;  ///< free: of samples that are being generated

  bool on() const { return mode != AsyncMode::off; }
  bool free() const { return mode == AsyncMode::free; }
  /// True where samples come from older weights than those that are trained.
  bool stale() const { return on() && eta > 0; }

  static void each_field(auto& self, auto&& field) {
    field("mode", self.mode,
          "off: sample a batch, then train on it; pinned: sample further batches meanwhile, each "
          "with a fixed version of the weights, so that timing changes no result; free: the "
          "rollouts take over new weights as they arrive");
    field("eta", self.eta, Range{0, 1024},
          "pinned, free: maximum staleness; batch b is sampled with the weights after b - eta "
          "batches (free: or later ones)");
    field("in_flight", self.in_flight, Range{0, 1e12},
          "pinned, free: samples that are generated or rewarded at a time, at least one batch; 0: "
          "two batches");
    field("partial", self.change.partial,
          "free: samples that are being generated when new weights arrive continue with them, or "
          "restart from the prompt, once");
    field("cache", self.change.cache,
          "free: cached keys and values of these samples are kept, or recomputed with the new "
          "weights; log-probabilities are those of one version only if recomputed");
  }
};

}  // namespace troupe::algorithms
