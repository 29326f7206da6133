#include "engine/nn/tp.h"

#include "engine/parallel/reduce.h"

namespace troupe::engine::nn {

void sum_over(parallel::Communicator* group, ops::Device& device, Tensor& x, std::string_view what) {
  if (group == nullptr) return;
  auto values = ops::to_host(device, x);
  parallel::sum(*group, values, what);
  device.upload(x, values);
}

}  // namespace troupe::engine::nn
