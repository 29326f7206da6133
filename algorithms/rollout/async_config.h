// The section `async` of a run file: whether sampling and training overlap.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/fields.h"

namespace troupe::algorithms {

/// off: a batch is sampled, then trained. pinned: the samples of batch b, counted from 0, are those
/// of version max(0, b - eta) of the weights, whatever the timing.
enum class AsyncMode { off, pinned };
constexpr std::array<std::string_view, 2> names_of(AsyncMode) {
  return {"off", "pinned"};
}

struct AsyncConfig {
  AsyncMode mode = AsyncMode::off;
  std::int64_t eta = 1;
  std::int64_t in_flight = 0;

  bool on() const { return mode != AsyncMode::off; }
  /// True where samples come from older weights than those that are trained.
  bool stale() const { return on() && eta > 0; }

  static void each_field(auto& self, auto&& field) {
    field("mode", self.mode,
          "off: sample a batch, then train on it; pinned: sample further batches meanwhile, each "
          "with a fixed version of the weights, so that timing changes no result");
    field("eta", self.eta, Range{0, 1024},
          "pinned: maximum staleness; batch b is sampled with the weights after b - eta batches");
    field("in_flight", self.in_flight, Range{0, 1e12},
          "pinned: samples that are generated or rewarded at a time, at least one batch; 0: two "
          "batches");
  }
};

}  // namespace troupe::algorithms
