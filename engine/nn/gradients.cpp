#include "engine/nn/gradients.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/nn/tensor_parallel.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {
namespace {

constexpr std::string_view of_squares = "the norm of the gradients",
                           of_shared = "the gradients of shared heads";

// Visits this rank's place in a buffer of the logical gradients of all that overlaps:
// visit(parameter, offset). Returns its size.
template <class Visit>
std::size_t each_shared(Parameters& parameters, Visit visit) {
  std::size_t size = 0;
  for (auto& parameter : parameters.all()) {
    if (!parameter.shard.overlaps) continue;
    check(parameter.shard.axis == 0, "gradients: only rows are held by several ranks");
    visit(parameter, size + static_cast<std::size_t>(parameter.shard.begin *
                                                     parameter.value.shape().stride()));
    size += static_cast<std::size_t>(parameter.logical_shape().count());
  }
  return size;
}

// What overlaps is laid into a zeroed logical tensor, summed there, and taken back: ranks that hold
// other rows add nothing.
void sum_shared(Parameters& parameters, parallel::Communicator& tp) {
  ops::Device& device = parameters.device();
  std::vector<float> logical(each_shared(parameters, [](Parameter&, std::size_t) {}), 0.0f);
  if (logical.empty()) return;
  const auto place = [&](const Parameter& parameter, std::size_t at) {
    return std::span(logical).subspan(at, static_cast<std::size_t>(parameter.grad.count()));
  };
  each_shared(parameters, [&](Parameter& parameter, std::size_t at) {
    device.download(parameter.grad, place(parameter, at));
  });
  parallel::sum(tp, logical, of_shared);
  each_shared(parameters, [&](Parameter& parameter, std::size_t at) {
    device.upload(parameter.grad, place(parameter, at));
  });
}

}  // namespace

void sum_gradients(Parameters& parameters, parallel::Communicator* tp, parallel::Communicator* dp) {
  parameters.device().synchronize();
  parameters.settle_gradients();
  if (tp != nullptr) sum_shared(parameters.trained(), *tp);
  sum_over(dp, parameters.device(), parameters.grads(), "the gradients of an update");
}

double sum_of_squares(Parameters& parameters, parallel::Communicator* tp) {
  ops::Device& device = parameters.device();
  if (tp == nullptr) return device.sum_of_squares(parameters.grads());
  parameters.settle_gradients();
  double sum = 0;
  for (const auto& parameter : parameters.trained().all())
    if (parameter.shard.first) sum += device.sum_of_squares(parameter.grad);
  parallel::sum(*tp, std::span(&sum, 1), of_squares);
  return sum;
}

std::string first_not_finite(Parameters& parameters, parallel::Communicator* tp) {
  const auto& all = parameters.trained().all();
  const auto bad = std::find_if(all.begin(), all.end(), [&](const Parameter& p) {
    return !parameters.device().all_finite(p.grad);
  });
  float place = -static_cast<float>(
      bad - all.begin());  // a model has far fewer tensors than a float has whole numbers
  if (tp != nullptr) parallel::max(*tp, std::span(&place, 1), of_squares);
  const auto first = static_cast<std::size_t>(-place);
  return first < all.size() ? all[first].name : "";
}

}  // namespace troupe::engine::nn
