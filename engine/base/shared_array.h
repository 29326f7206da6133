// SharedArray: numbers that several hold and nobody changes, with whatever keeps their memory
// alive: a vector, or a message as it came in. This is how weights travel, without a copy. It is
// used as a pointer to a span: `*weights`, `weights->size()`.
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
  /// `values` stay valid and unchanged as long as `owner` is held.
  SharedArray(std::shared_ptr<const void> owner, std::span<const T> values)
      : owner_(std::move(owner)), values_(values) {}

  const std::span<const T>& operator*() const { return values_; }
  const std::span<const T>* operator->() const { return &values_; }
  /// False for one that holds no array, not even an empty one.
  explicit operator bool() const { return owner_ != nullptr; }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const T> values_;
};

}  // namespace troupe
