#include "engine/nn/parameters.h"

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::nn {

Parameters::Parameters(ops::Device& device, const std::vector<Wanted>& wanted, bool with_gradients) : device_(&device) {
  for (const auto& w : wanted) count_ += w.shape.count();
  values_ = device.empty(Shape{count_});
  if (with_gradients) {
    grads_ = device.empty(Shape{count_});
    device.fill(grads_, 0);
  }
  std::int64_t at = 0;
  for (const auto& w : wanted) {
    const std::int64_t end = at + w.shape.count();
    check(index_.emplace(w.name, all_.size()).second, "Parameters: a name stands twice");
    all_.push_back({w.name, values_.flat(at, end).view(w.shape), with_gradients ? grads_.flat(at, end).view(w.shape) : Tensor()});
    at = end;
  }
}

Parameter* Parameters::find(std::string_view name) {
  const auto place = index_.find(std::string(name));
  return place == index_.end() ? nullptr : &all_[place->second];
}
const Parameter* Parameters::find(std::string_view name) const { return const_cast<Parameters*>(this)->find(name); }

Parameter& Parameters::at(std::string_view name) {
  Parameter* found = find(name);
  check(found != nullptr, cat("Parameters: no ", name));
  return *found;
}

}  // namespace troupe::engine::nn
