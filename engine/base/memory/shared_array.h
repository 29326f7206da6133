// SharedArray: an immutable array with shared ownership. The owner is a vector or a received
// message, so weights are passed on without a copy. It is used like a pointer to a span:
// `*weights`, `weights->size()`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::shared_ptr<const std::vector<T>> values) : owner_(values) {
    if (values) values_ = *values;
  }
  /// `values` stay valid and unchanged while `owner` is alive.
  SharedArray(std::shared_ptr<const void> owner, std::span<const T> values)
      : owner_(std::move(owner)), values_(values) {}

  const std::span<const T>& operator*() const { return values_; }
  const std::span<const T>* operator->() const { return &values_; }
  /// False if it holds no array, not even an empty one.
  explicit operator bool() const { return owner_ != nullptr; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const T> values_;
};

}  // namespace troupe
