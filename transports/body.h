// Body: the payload of a frame. Within a process it is the message itself, moved and type-erased,
// without serialization. Between processes it is encoded by the fields() of its type
// (transports/wire/codec.h).
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"
#include "transports/wire/codec.h"

namespace troupe::transports {

using wire::WireBody;

/// A value of any type, or nothing. A copy shares the value; only a transport that duplicates
/// frames copies bodies.
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

  /// A body received from another process; take() decodes and checks it. `what` starts the message
  /// of an error ("the reply to generate").
  static Body of_wire(WireBody parts, std::string what) {
    Body body;
    body.wire_ = std::make_shared<const Wire>(Wire{std::move(parts), std::move(what)});
    return body;
  }

  /// The wire form; its parts share this body's value. Throws Bug for a type without fields() and
  /// Failure(bad_input) for a string that is not UTF-8.
  WireBody to_wire() const {
    if (wire_) return wire_->parts;
    if (!type_) return {};
    if (!type_->encode)
      throw Bug(cat("a value of type ", type_->id->name(),
                    " has no fields(): it cannot be sent to another process"));
    return type_->encode(value_);
  }

  bool empty() const { return !value_ && (!wire_ || wire_->parts.header.empty()); }
  /// True for a body that was created from a T in this process.
  template <class T>
  bool holds() const {
    return type_ && *type_->id == typeid(T);
  }
  /// False for a value that can only be moved: a frame with it cannot be duplicated.
  bool copyable() const { return !type_ || type_->copyable; }

  /// Takes the value, leaving this body empty. Moves it, or copies it when a duplicate of the frame
  /// shares it. Errc::bad_input for a body from another process that is not exactly a T.
  template <class T>
  Result<T> try_take() {
    if (wire_) return decoded<T>();
    check(holds<T>(), "a body was taken as a different type than it was created from");
    auto value = std::static_pointer_cast<T>(std::move(value_));
    type_ = nullptr;
    if constexpr (std::is_copy_constructible_v<T>) {
      if (value.use_count() > 1) return *value;
    }
    return std::move(*value);
  }
  /// try_take() that throws Failure.
  template <class T>
  T take() {
    return value_or_throw(try_take<T>());
  }

  /// The value of a body created in this process, which keeps it.
  template <class T>
  const T& peek() const {
    check(holds<T>(), "a body was read as a different type than it was created from");
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
                    " has no fields(): it cannot be received from another process"));
    }
  }

  std::shared_ptr<void> value_;
  const Type* type_ = nullptr;
  std::shared_ptr<const Wire> wire_;
};

}  // namespace troupe::transports
