#include "engine/nn/mix.h"

#include "engine/base/check.h"
#include "engine/ops/device.h"

namespace troupe::engine::nn {

void mix(const Parameters& from, double share, Parameters& into) {
  check(from.count() == into.count(), "mix: two models of different shapes");
  check(share >= 0 && share <= 1, "mix: a share is from 0 to 1");
  const auto news = ops::to_host(from.device(), from.values());
  auto values = ops::to_host(into.device(), into.values());
  const auto fresh = static_cast<float>(share), kept = static_cast<float>(1 - share);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = kept * values[i] + fresh * news[i];
  into.device().upload(into.values(), values);
}

}  // namespace troupe::engine::nn
