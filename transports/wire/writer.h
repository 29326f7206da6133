// Writer: a value, item by item, into a msgpack header and raw parts. The codec (codec.h) calls it;
// the msgpack library is in writer.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/json.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

/// An array of up to this many bytes stands in the header: a message of its own would cost more
/// than the copy.
inline constexpr std::size_t inline_bytes = 1024;
/// Parts of one body; further arrays stand in the header.
inline constexpr std::size_t most_parts = 16384;
/// Nesting of a Json value.
inline constexpr std::size_t json_depth = 64;

class Writer {
 public:
  /// `owner` keeps the value alive whose arrays become parts.
  explicit Writer(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {
    body_.header.reserve(200);
  }

  void list(std::size_t count);  ///< the next `count` items are its elements
  void boolean(bool value);
  void integer(std::int64_t value);
  void natural(std::uint64_t value);
  void real(float value);
  void real(double value);
  /// Failure(bad_input) when it is not UTF-8: the other side would refuse it.
  void text(std::string_view value);
  void json(const Json& value, std::size_t depth = 0);
  /// `owner`: what keeps these numbers alive; the whole value, when empty.
  void numbers(Dtype dtype, const void* data, std::size_t count,
               std::shared_ptr<const void> owner = nullptr);

  WireBody finish() && { return std::move(body_); }

 private:
  std::shared_ptr<const void> owner_;
  WireBody body_;
};

}  // namespace troupe::transports::wire
