#include "transports/wire/reader.h"

#define MSGPACK_NO_BOOST
#include <bit>
#include <msgpack.hpp>
#include <set>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"
#include "transports/wire/writer.h"

namespace troupe::transports::wire {

/// One msgpack item; for a list or map, only its head.
struct Reader::Token {
  enum class Type {
    nil,
    boolean,
    unsigned_integer,
    negative,
    float32,
    float64,
    text,
    binary,
    extension,
    list,
    map,
    end,
    broken
  };
  Type type = Type::nil;
  std::uint64_t bits = 0;  ///< the value, or the count of a list or map
  std::string_view bytes;  ///< text, binary, extension (its type's byte first)

  std::string describe() const {
    static constexpr const char* names[] = {"nil",
                                            "a boolean",
                                            "the number ",
                                            "the number ",
                                            "a float",
                                            "a double",
                                            "the text",
                                            "binary",
                                            "an array",
                                            "a list of ",
                                            "a map of ",
                                            "the end",
                                            "invalid or truncated msgpack at byte "};
    std::string name = names[static_cast<std::size_t>(type)];
    if (type == Type::unsigned_integer || type == Type::list || type == Type::map ||
        type == Type::broken)
      return cat(name, bits);
    if (type == Type::negative) return cat(name, static_cast<std::int64_t>(bits));
    if (type == Type::text) return cat(name, " ", quote(bytes, 40));
    return name;
  }
};

/// Receives one item from msgpack's parser. The head of a list or map stops the parser, which
/// therefore allocates nothing for it.
struct Reader::Visitor : msgpack::null_visitor {
  using Type = Token::Type;
  Token token;
  bool headed = false;
  bool is(Type type, std::uint64_t bits) {
    token.type = type;
    token.bits = bits;
    return true;
  }
  bool holds(Type type, const char* data, std::uint32_t size) {
    token.type = type;
    token.bytes = {data, size};
    return true;
  }
  bool begins(Type type, std::uint32_t count) {
    is(type, count);
    headed = true;
    return false;
  }

  bool visit_nil() { return is(Type::nil, 0); }
  bool visit_boolean(bool value) { return is(Type::boolean, value); }
  bool visit_positive_integer(std::uint64_t value) { return is(Type::unsigned_integer, value); }
  bool visit_negative_integer(std::int64_t value) {
    return is(Type::negative, static_cast<std::uint64_t>(value));
  }
  bool visit_float32(float value) { return is(Type::float32, std::bit_cast<std::uint32_t>(value)); }
  bool visit_float64(double value) {
    return is(Type::float64, std::bit_cast<std::uint64_t>(value));
  }
  bool visit_str(const char* data, std::uint32_t size) { return holds(Type::text, data, size); }
  bool visit_bin(const char* data, std::uint32_t size) { return holds(Type::binary, data, size); }
  bool visit_ext(const char* data, std::uint32_t size) {
    return holds(Type::extension, data, size);
  }
  bool start_array(std::uint32_t count) { return begins(Type::list, count); }
  bool start_map(std::uint32_t count) { return begins(Type::map, count); }
};

void Reader::fail(std::string_view expected, std::string_view found) const {
  std::string where;
  for (std::size_t i = 0; i < path_.size(); ++i) where += cat(i == 0 ? ", field " : ".", path_[i]);
  throw Failure({Errc::bad_input, cat(what_, where, ": expected ", expected, ", found ", found)});
}

Reader::Token Reader::next() {
  if (at_ >= header_.size()) return {Token::Type::end, 0, {}};
  // Most items are one byte or a short string; the library's parser, which allocates, handles the
  // others.
  const auto head = static_cast<std::uint8_t>(header_[at_]);
  if (head < 0x80) {
    ++at_;
    return {Token::Type::unsigned_integer, head, {}};
  }
  if ((head & 0xf0) == 0x90) {
    ++at_;
    return {Token::Type::list, head & 0x0fu, {}};
  }
  if (const std::size_t size = head & 0x1f; (head & 0xe0) == 0xa0 && size < header_.size() - at_) {
    at_ += 1 + size;
    return {Token::Type::text, 0, header_.substr(at_ - size, size)};
  }
  Visitor visitor;
  std::size_t end = at_;
  const bool whole = msgpack::parse(header_.data(), header_.size(), end, visitor);
  if (visitor.headed) {
    at_ = end + 1;  // the parser stops at the last byte of the head
    return visitor.token;
  }
  if (!whole) return {Token::Type::broken, at_, {}};
  at_ = end;
  return visitor.token;
}

void Reader::check_room(std::size_t count, std::size_t min_bytes) const {
  if (count > (header_.size() - at_) / min_bytes)
    fail(cat("at most ", (header_.size() - at_) / min_bytes, " elements in the ",
             header_.size() - at_, " remaining bytes"),
         cat(count));
}

std::size_t Reader::list(std::size_t min_bytes) {
  const Token token = next();
  if (token.type != Token::Type::list) fail("a list", token.describe());
  check_room(token.bits, min_bytes);
  return token.bits;
}

void Reader::list_of(std::size_t count, std::string_view what) {
  const Token token = next();
  if (token.type != Token::Type::list || token.bits != count)
    fail(cat("a list of ", count, " ", what), token.describe());
}

bool Reader::boolean() {
  const Token token = next();
  if (token.type != Token::Type::boolean) fail("a boolean", token.describe());
  return token.bits != 0;
}

std::int64_t Reader::integer(std::int64_t min, std::int64_t max) {
  const Token token = next();
  const bool not_negative = token.type == Token::Type::unsigned_integer &&
                            token.bits <= static_cast<std::uint64_t>(INT64_MAX);
  const auto value = static_cast<std::int64_t>(token.bits);
  if (!(not_negative || token.type == Token::Type::negative) || value < min || value > max)
    fail(cat("an integer from ", min, " to ", max), token.describe());
  return value;
}

std::uint64_t Reader::unsigned_integer(std::uint64_t max) {
  const Token token = next();
  if (token.type != Token::Type::unsigned_integer || token.bits > max)
    fail(cat("an integer from 0 to ", max), token.describe());
  return token.bits;
}

float Reader::float32() {
  const Token token = next();
  if (token.type != Token::Type::float32) fail("a float", token.describe());
  return std::bit_cast<float>(static_cast<std::uint32_t>(token.bits));
}

double Reader::float64() {
  const Token token = next();
  if (token.type != Token::Type::float64) fail("a double", token.describe());
  return std::bit_cast<double>(token.bits);
}

std::string Reader::text() {
  const Token token = next();
  if (token.type != Token::Type::text) fail("a text", token.describe());
  std::size_t bad = 0;
  if (!valid_utf8(token.bytes, &bad))
    fail("a UTF-8 string", cat("an invalid byte at offset ", bad));
  return std::string(token.bytes);
}

Json::Object Reader::members(std::size_t count, std::size_t depth) {
  check_room(count, 2);
  Json::Object object;
  object.reserve(count);
  std::set<std::string_view> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const Inside inside(*this, i);
    std::string key = text();
    object.emplace_back(std::move(key), json(depth + 1));
    if (!keys.insert(object.back().first).second)
      fail("unique keys", cat("a second ", quote(object.back().first, 40)));
  }
  return object;
}

Json Reader::json(std::size_t depth) {
  if (depth >= max_json_depth)
    fail(cat("a value nested at most ", max_json_depth, " levels deep"), "a deeper one");
  const std::size_t before = at_;
  const Token token = next();
  switch (token.type) {
    case Token::Type::nil:
      return {};
    case Token::Type::boolean:
      return Json(token.bits != 0);
    case Token::Type::unsigned_integer:
    case Token::Type::negative:
      at_ = before;
      return Json(integer(INT64_MIN, INT64_MAX));
    case Token::Type::float64:
      return Json(std::bit_cast<double>(token.bits));
    case Token::Type::text:
      at_ = before;
      return Json(text());
    case Token::Type::map:
      return Json(members(token.bits, depth));
    case Token::Type::list: {
      check_room(token.bits, 1);
      Json::Array items;
      items.reserve(token.bits);
      for (std::size_t i = 0; i < token.bits; ++i) {
        const Inside inside(*this, i);
        items.push_back(json(depth + 1));
      }
      return Json(std::move(items));
    }
    default:
      fail("a JSON value", token.describe());
  }
}

Reader::Numbers Reader::numbers(Dtype dtype) {
  const Token token = next();
  if (token.type == Token::Type::list && token.bits == 3) return part(dtype);
  if (token.type != Token::Type::extension)
    fail(cat("an array of ", to_string(dtype)), token.describe());
  const auto found = static_cast<std::uint8_t>(token.bytes[0]);
  const std::size_t bytes = token.bytes.size() - 1;
  if (found != static_cast<std::uint8_t>(dtype))
    fail(cat("an array of ", to_string(dtype)), cat("an array of dtype ", found));
  if (bytes % size_of(dtype) != 0)
    fail(cat("an array of ", to_string(dtype)),
         cat(bytes, " bytes, which is not a multiple of the element size"));
  return {{nullptr, reinterpret_cast<const std::byte*>(token.bytes.data() + 1), bytes},
          bytes / size_of(dtype)};
}

Reader::Numbers Reader::part(Dtype dtype) {
  const auto index = unsigned_integer(UINT64_MAX);
  if (index >= parts_.size()) fail(cat("one of ", parts_.size(), " parts"), cat("part ", index));
  if (used_[index]) fail("each part at most once", cat("part ", index, " again"));
  used_[index] = true;
  if (const auto found = unsigned_integer(UINT8_MAX); found != static_cast<std::uint8_t>(dtype))
    fail(cat("an array of ", to_string(dtype)), found >= 1 && found <= last_dtype
                                                    ? to_string(static_cast<Dtype>(found))
                                                    : "an unknown dtype");
  const std::uint64_t count = unsigned_integer(UINT64_MAX);
  const BodyPart& bytes = parts_[index];
  if (bytes.size % size_of(dtype) != 0 || bytes.size / size_of(dtype) != count)
    fail(cat(count, " elements of ", size_of(dtype), " bytes"),
         cat("a part of ", bytes.size, " bytes"));
  return {bytes, count};
}

void Reader::finish() {
  if (at_ != header_.size()) fail("the end", cat(header_.size() - at_, " more bytes"));
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) fail("every part to be used", cat("part ", i, " of ", used_.size(), " unused"));
  }
}

}  // namespace troupe::transports::wire
