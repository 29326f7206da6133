#include "transports/wire/writer.h"

#define MSGPACK_NO_BOOST
#include <bit>
#include <msgpack.hpp>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::transports::wire {

static_assert(std::endian::native == std::endian::little, "raw parts are little-endian");

namespace {

/// Output stream of msgpack's packer.
struct Sink {
  std::string* into;
  void write(const char* data, std::size_t size) { into->append(data, size); }
};

msgpack::packer<Sink> pack(Sink& sink) {
  return msgpack::packer<Sink>(sink);
}

std::uint32_t length(std::size_t size) {
  check(size <= UINT32_MAX, "msgpack sizes are at most 4 294 967 295");
  return static_cast<std::uint32_t>(size);
}

}  // namespace

const char* to_string(Dtype dtype) {
  static constexpr const char* names[] = {"none", "u8",  "i8",  "u16", "i16", "u32",
                                          "i32",  "u64", "i64", "f32", "f64"};
  return names[static_cast<std::uint8_t>(dtype)];
}

std::size_t size_of(Dtype dtype) {
  static constexpr std::size_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return sizes[static_cast<std::uint8_t>(dtype)];
}

void Writer::list(std::size_t count) {
  Sink sink{&body_.header};
  pack(sink).pack_array(length(count));
}

void Writer::boolean(bool value) {
  Sink sink{&body_.header};
  value ? pack(sink).pack_true() : pack(sink).pack_false();
}

void Writer::integer(std::int64_t value) {
  Sink sink{&body_.header};
  pack(sink).pack_int64(value);
}

void Writer::unsigned_integer(std::uint64_t value) {
  Sink sink{&body_.header};
  pack(sink).pack_uint64(value);
}

// pack_float and pack_double are not used: they write a whole-valued double as an integer.
void Writer::real(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  body_.header.push_back(static_cast<char>(0xca));
  for (int shift = 24; shift >= 0; shift -= 8)
    body_.header.push_back(static_cast<char>(bits >> shift));
}

void Writer::real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  body_.header.push_back(static_cast<char>(0xcb));
  for (int shift = 56; shift >= 0; shift -= 8)
    body_.header.push_back(static_cast<char>(bits >> shift));
}

void Writer::text(std::string_view value) {
  std::size_t bad = 0;
  if (!valid_utf8(value, &bad))
    throw Failure({Errc::bad_input, cat("cannot send a string that is not UTF-8 (byte ", bad,
                                        "): ", quote(value.substr(bad)))});
  Sink sink{&body_.header};
  pack(sink).pack_str(length(value.size())).pack_str_body(value.data(), length(value.size()));
}

void Writer::json(const Json& value, std::size_t depth) {
  check(depth < max_json_depth, "a Json value to send is nested too deeply");
  Sink sink{&body_.header};
  if (value.is_null()) {
    pack(sink).pack_nil();
  } else if (value.is_bool()) {
    boolean(value.boolean());
  } else if (value.is_integer()) {
    integer(value.integer());
  } else if (value.is_number()) {
    real(value.number());
  } else if (value.is_string()) {
    text(value.string());
  } else if (value.is_array()) {
    list(value.array().size());
    for (const Json& item : value.array()) json(item, depth + 1);
  } else {
    pack(sink).pack_map(length(value.object().size()));
    for (const auto& [key, member] : value.object()) {
      text(key);
      json(member, depth + 1);
    }
  }
}

void Writer::numbers(Dtype dtype, const void* data, std::size_t count,
                     std::shared_ptr<const void> owner) {
  const std::size_t bytes = count * size_of(dtype);
  if (bytes <= max_inline_bytes || body_.parts.size() >= max_parts) {
    Sink sink{&body_.header};
    pack(sink)
        .pack_ext(length(bytes), static_cast<std::int8_t>(dtype))
        .pack_ext_body(static_cast<const char*>(data), length(bytes));
    return;
  }
  list(3);
  unsigned_integer(body_.parts.size());
  unsigned_integer(static_cast<std::uint8_t>(dtype));
  unsigned_integer(count);
  body_.parts.push_back(
      {owner ? std::move(owner) : owner_, static_cast<const std::byte*>(data), bytes});
}

}  // namespace troupe::transports::wire
