// Body: what a frame carries. In one process it is the message itself, moved and type-erased;
// nothing is serialised. Between processes it is made of wire parts, by the fields() of its type
// (transports/wire/codec.h).
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "transports/wire/codec.h"

namespace troupe::transports {

using wire::WireBody;

/// A value of any type, or nothing. Copying a Body shares the value: only a transport that
/// duplicates frames does that.
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

  /// What came from another process; it is decoded, and checked, when it is taken. `what` begins
  /// the sentence of an error
  /// ("the reply to generate").
  static Body of_wire(WireBody parts, std::string what) {
    Body body;
    body.wire_ = std::make_shared<const Wire>(Wire{std::move(parts), std::move(what)});
    return body;
  }

  /// The wire form; its parts share this body's value. A type without fields() is a Bug; a text
  /// that is not UTF-8 is a Failure(bad_input).
  WireBody to_wire() const {
    if (wire_) return wire_->parts;
    if (!type_) return {};
    if (!type_->encode)
      throw Bug(cat("a value of type ", type_->id->name(),
                    " has no fields(): it cannot leave its process"));
    return type_->encode(value_);
  }

  bool empty() const { return !value_ && (!wire_ || wire_->parts.header.empty()); }
  /// True for a body made from a T in this process.
  template <class T>
  bool holds() const {
    return type_ && *type_->id == typeid(T);
  }
  /// False for a value that can only be moved: a frame with it cannot be duplicated.
  bool copyable() const { return !type_ || type_->copyable; }

  /// The value, leaving this body empty. Moved when nobody shares it, copied when a duplicate of
  /// the frame does. Errc::bad_input for a body from another process that is not exactly a T.
  template <class T>
  Result<T> try_take() {
    if (wire_) return decoded<T>();
    check(holds<T>(), "a body was opened as another type than it was made from");
    auto value = std::static_pointer_cast<T>(std::move(value_));
    type_ = nullptr;
    if constexpr (std::is_copy_constructible_v<T>) {
      if (value.use_count() > 1) return *value;
    }
    return std::move(*value);
  }
  /// The same, or Failure.
  template <class T>
  T take() {
    return value_or_throw(try_take<T>());
  }

  /// The value of a body made in this process, for looking only.
  template <class T>
  const T& peek() const {
    check(holds<T>(), "a body was looked at as another type than it was made from");
    return *static_cast<const T*>(value_.get());
  }

 private:
  struct Wire {
    WireBody parts;
    std::string what;
  };
  struct Type {
    const std::type_info* id;
    bool copyable;
    WireBody (*encode)(const std::shared_ptr<const void>& value);  // nullptr: no fields()
  };
  template <class T>
  static WireBody encode(const std::shared_ptr<const void>& value) {
    return wire::encode(*static_cast<const T*>(value.get()), value);
  }
  template <class T>
  static constexpr auto encoder() -> WireBody (*)(const std::shared_ptr<const void>&) {
    if constexpr (wire::encodable<T>)
      return &encode<T>;
    else
      return nullptr;
  }
  template <class T>
  static constexpr Type type_of{&typeid(T), std::is_copy_constructible_v<T>, encoder<T>()};

  template <class T>
  Result<T> decoded() {
    const auto from = std::move(wire_);
    if constexpr (wire::encodable<T>) {
      try {
        return wire::decode<T>(from->parts, from->what);
      } catch (const Failure& failure) {
        return fail(failure);
      }
    } else {
      throw Bug(cat(from->what, ": a value of type ", typeid(T).name(),
                    " has no fields(): it cannot come from another process"));
    }
  }

  std::shared_ptr<void> value_;
  const Type* type_ = nullptr;
  std::shared_ptr<const Wire> wire_;
};

}  // namespace troupe::transports
