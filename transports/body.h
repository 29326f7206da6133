// Body: what a frame carries. In one process it is the message itself, moved and type-erased; nothing is serialised.
// Between processes it will be a Body of wire parts, made from the message's fields() (the table below gains an encoder).
#pragma once

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "engine/base/check.h"

namespace troupe::transports {

/// A value of any type, or nothing. Copying a Body shares the value: only a transport that duplicates frames does that.
class Body {
 public:
  Body() = default;

  template <class T>
  static Body of(T value) {
    Body body;
    body.value_ = std::make_shared<T>(std::move(value));
    body.type_ = &type_of<T>;
    return body;
  }

  bool empty() const { return !value_; }
  template <class T>
  bool holds() const {
    return type_ && *type_->id == typeid(T);
  }
  /// False for a value that can only be moved: a frame with it cannot be duplicated.
  bool copyable() const { return !type_ || type_->copyable; }

  /// The value, leaving this body empty. Moved when nobody shares it, copied when a duplicate of the frame does.
  template <class T>
  T take() {
    check(holds<T>(), "a body was opened as another type than it was made from");
    auto value = std::static_pointer_cast<T>(std::move(value_));
    type_ = nullptr;
    if constexpr (std::is_copy_constructible_v<T>) {
      if (value.use_count() > 1) return *value;
    }
    return std::move(*value);
  }

  /// The value, for looking only.
  template <class T>
  const T& peek() const {
    check(holds<T>(), "a body was looked at as another type than it was made from");
    return *static_cast<const T*>(value_.get());
  }

 private:
  struct Type {
    const std::type_info* id;
    bool copyable;
  };
  template <class T>
  static constexpr Type type_of{&typeid(T), std::is_copy_constructible_v<T>};

  std::shared_ptr<void> value_;
  const Type* type_ = nullptr;
};

}  // namespace troupe::transports
