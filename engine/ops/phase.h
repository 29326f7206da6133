// Phases of a profile: groups of operators of a device.
#pragma once

#include <string_view>

#include "engine/base/text/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// Interface of a profiled device that gives access to its spans.
class SpanSource {
 public:
  virtual ~SpanSource() = default;
  virtual Spans& spans() = 0;
};

/// Runs call() as a phase named `name` (a literal). Without profiling it costs one dynamic_cast.
template <class Call>
decltype(auto) in_phase(Device& device, std::string_view name, const Call& call) {
  auto* const source = dynamic_cast<SpanSource*>(&device);
  const ScopedSpan phase(source ? &source->spans() : nullptr, [&] {
    return SpanStart{SpanKind::phase, name};
  });
  return call();
}

}  // namespace troupe::engine::ops
