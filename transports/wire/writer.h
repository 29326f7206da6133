// Writer: writes a value, item by item, as a msgpack header and raw parts. The codec (codec.h)
// calls it; only writer.cpp and reader.cpp use the msgpack library.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

/// Largest array that is stored in the header: sending it as a part would cost more than the copy.
inline constexpr std::size_t max_inline_bytes = 1024;
/// Maximum number of parts of a body; further arrays are stored in the header.
inline constexpr std::size_t max_parts = 16384;
/// Maximum nesting of a Json value.
inline constexpr std::size_t max_json_depth = 64;

class Writer {
 public:
  /// `owner` keeps the value alive whose arrays become parts.
  explicit Writer(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {
    body_.header.reserve(200);
  }

  void list(std::size_t count);  ///< the next `count` items are its elements
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void real(float value);
  void real(double value);
  /// Throws Failure(bad_input) unless the string is UTF-8, because the receiver would reject it.
  void text(std::string_view value);
  void json(const Json& value, std::size_t depth = 0);
  /// `owner` keeps these numbers alive; by default the owner of the whole value does.
  void numbers(Dtype dtype, const void* data, std::size_t count,
               std::shared_ptr<const void> owner = nullptr);

  WireBody finish() && { return std::move(body_); }

 private:
  std::shared_ptr<const void> owner_;
  WireBody body_;
};

}  // namespace troupe::transports::wire
