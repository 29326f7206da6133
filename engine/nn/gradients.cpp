#include "engine/nn/gradients.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/nn/gradient_sums.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {
namespace {

constexpr std::string_view norm_label = "the norm of the gradients",
                           shared_label = "the gradients of shared heads";

// Calls visit(parameter, offset) for each parameter that several ranks hold; offset is that of this
// rank's part in a buffer of their logical gradients. Returns the size of the buffer.
template <class Visit>
std::size_t each_shared(Parameters& parameters, Visit visit) {
  std::size_t size = 0;
  for (auto& parameter : parameters.all()) {
    if (!parameter.shard.overlaps) continue;
    check(parameter.shard.axis == 0, "gradients: only rows can be held by several ranks");
    visit(parameter, size + static_cast<std::size_t>(parameter.shard.begin *
                                                     parameter.value.shape().stride()));
    size += static_cast<std::size_t>(parameter.logical_shape().count());
  }
  return size;
}

// Copies overlapping parts into a zeroed logical tensor, sums it, and copies the sums back: ranks
// that hold other rows contribute zeros.
void sum_shared(Parameters& parameters, parallel::Communicator& tp) {
  ops::Device& device = parameters.device();
  std::vector<float> logical(each_shared(parameters, [](Parameter&, std::size_t) {}), 0.0f);
  if (logical.empty()) return;
  const auto part = [&](const Parameter& parameter, std::size_t at) {
    return std::span(logical).subspan(at, static_cast<std::size_t>(parameter.grad.count()));
  };
  each_shared(parameters, [&](Parameter& parameter, std::size_t at) {
    device.download(parameter.grad, part(parameter, at));
  });
  parallel::all_reduce_sum(tp, logical, shared_label);
  each_shared(parameters, [&](Parameter& parameter, std::size_t at) {
    device.upload(parameter.grad, part(parameter, at));
  });
}

}  // namespace

void all_reduce_gradients(Parameters& parameters, parallel::Communicator* tp,
                          parallel::Communicator* dp) {
  parameters.device().synchronize();
  parameters.complete_gradients();
  if (tp != nullptr) sum_shared(parameters.trained(), *tp);
  if (dp != nullptr) GradientSums(parameters.trained(), *dp, nullptr).finish();
}

void sum_tied_gradient(ops::Device& device, const Parameter& table, collectives::TensorGroup& pp) {
  constexpr std::int64_t at_once = std::int64_t{1} << 20;  // values; bounds the memory of copies
  const int other = pp.rank() == 0 ? pp.size() - 1 : 0;
  table.complete_gradient(device);
  for (std::int64_t begin = 0; begin < table.grad.count(); begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, table.grad.count());
    Tensor part = table.grad.flat(begin, end), mine = part;
    if (part.dtype() != DType::f32) {
      mine = device.empty(part.shape());
      device.copy(part, mine);
    }
    Tensor theirs = device.empty(part.shape());
    const std::string what = cat("the gradient of the tied table from value ", begin);
    auto sending = pp.start_send(mine, other, what);
    auto receiving = pp.start_receive(theirs, other, what);
    sending.wait();
    receiving.wait();
    // The sum of two values does not depend on their order.
    device.add(mine, theirs, mine);
    if (part.dtype() != DType::f32) device.copy(mine, part);
  }
}

double sum_of_squares(Parameters& parameters, parallel::Communicator* tp, bool by_tensor) {
  ops::Device& device = parameters.device();
  if (tp == nullptr && !by_tensor) return device.sum_of_squares(parameters.grads());
  parameters.complete_gradients();
  double sum = 0;
  for (const auto& parameter : parameters.trained().all())
    if (parameter.shard.first) sum += device.sum_of_squares(parameter.grad);
  if (tp != nullptr) parallel::all_reduce_sum(*tp, std::span(&sum, 1), norm_label);
  return sum;
}

std::string first_nonfinite_parameter(Parameters& parameters, parallel::Communicator* tp) {
  const auto& all = parameters.trained().all();
  const auto bad = std::find_if(all.begin(), all.end(), [&](const Parameter& p) {
    return !parameters.device().all_finite(p.grad);
  });
  // A model has far fewer tensors than a float has exact integers.
  float negated = -static_cast<float>(bad - all.begin());
  if (tp != nullptr) parallel::all_reduce_max(*tp, std::span(&negated, 1), norm_label);
  const auto first = static_cast<std::size_t>(-negated);
  return first < all.size() ? all[first].name : "";
}

}  // namespace troupe::engine::nn
