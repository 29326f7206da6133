// The choice of kernels on processors for which there is one set only.
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/ops/cpu/kernels.h"

namespace troupe::engine::ops {

const Kernels& kernels_for(const char* isa) {
  const std::string_view name = isa;
  if (!name.empty() && name != "baseline") {
    throw Failure({Errc::unsupported, cat("this processor does not have \"", quote(name),
                                          "\"; here there is only baseline")});
  }
  return baseline_kernels();
}

}  // namespace troupe::engine::ops
