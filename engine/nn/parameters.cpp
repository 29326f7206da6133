#include "engine/nn/parameters.h"

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::nn {

Shape Parameter::logical_shape() const {
  const Shape& part = value.shape();
  if (shard.whole()) return part;
  check(part.rank() <= 2, "Parameter: only vectors and matrices are shared out");
  if (part.rank() == 1) return Shape{shard.full};
  return shard.axis == 0 ? Shape{shard.full, part[1]} : Shape{part[0], shard.full};
}

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
    check(w.shard.whole() || w.shape[w.shard.axis] == w.shard.end - w.shard.begin, "Parameters: a shape is not that of its part");
    all_.push_back({w.name, values_.flat(at, end).view(w.shape), with_gradients ? grads_.flat(at, end).view(w.shape) : Tensor(), w.shard});
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
