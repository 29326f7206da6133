// Phases: what the operators of a device are for, told to whoever profiles it.
#pragma once

#include <string_view>

#include "engine/base/spans.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops {

/// What a profiled device is besides a device. Others need not know of it.
class TellsSpans {
 public:
  virtual ~TellsSpans() = default;
  virtual Spans& spans() = 0;
};

/// call(), as a phase called `name` (a literal). Costs a look at the device's type where nobody
/// profiles.
template <class Call>
decltype(auto) in_phase(Device& device, std::string_view name, const Call& call) {
  auto* const telling = dynamic_cast<TellsSpans*>(&device);
  const ScopedSpan phase(telling ? &telling->spans() : nullptr, [&] {
    return SpanStart{SpanKind::phase, name};
  });
  return call();
}

}  // namespace troupe::engine::ops
