#include "transports/wire/reader.h"

#define MSGPACK_NO_BOOST
#include <bit>
#include <msgpack.hpp>
#include <set>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "transports/wire/writer.h"

namespace troupe::transports::wire {

/// One item of msgpack; of a list or map its head only.
struct Reader::Token {
  enum class Type {
    nil,
    boolean,
    natural,
    negative,
    real32,
    real64,
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
    static constexpr const char* names[] = {
        "nil",
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
        "bytes that are no msgpack, or that end too early, at byte "};
    std::string name = names[static_cast<std::size_t>(type)];
    if (type == Type::natural || type == Type::list || type == Type::map || type == Type::broken)
      return cat(name, bits);
    if (type == Type::negative) return cat(name, static_cast<std::int64_t>(bits));
    if (type == Type::text) return cat(name, " ", quote(bytes, 40));
    return name;
  }
};

/// Takes one item from msgpack's parser: a list's or map's head stops the parser, so that nothing
/// is stacked or allocated for it.
struct Reader::Visitor : msgpack::null_visitor {
  using Type = Token::Type;
  Token token;
  bool headed = false;
  bool is(Type type, std::uint64_t bits) { return token.type = type, token.bits = bits, true; }
  bool holds(Type type, const char* data, std::uint32_t size) {
    return token.type = type, token.bytes = {data, size}, true;
  }
  bool begins(Type type, std::uint32_t count) { return is(type, count), headed = true, false; }

  bool visit_nil() { return is(Type::nil, 0); }
  bool visit_boolean(bool value) { return is(Type::boolean, value); }
  bool visit_positive_integer(std::uint64_t value) { return is(Type::natural, value); }
  bool visit_negative_integer(std::int64_t value) {
    return is(Type::negative, static_cast<std::uint64_t>(value));
  }
  bool visit_float32(float value) { return is(Type::real32, std::bit_cast<std::uint32_t>(value)); }
  bool visit_float64(double value) { return is(Type::real64, std::bit_cast<std::uint64_t>(value)); }
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
  // Most items take one byte, or are a short text: the library's parser, which allocates, is for
  // the others.
  const auto head = static_cast<std::uint8_t>(header_[at_]);
  if (head < 0x80) return ++at_, Token{Token::Type::natural, head, {}};
  if ((head & 0xf0) == 0x90) return ++at_, Token{Token::Type::list, head & 0x0fu, {}};
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

void Reader::check_room(std::size_t count, std::size_t least) const {
  if (count > (header_.size() - at_) / least)
    fail(cat("at most ", (header_.size() - at_) / least, " elements in the ", header_.size() - at_,
             " bytes that are left"),
         cat(count));
}

std::size_t Reader::list(std::size_t least) {
  const Token token = next();
  if (token.type != Token::Type::list) fail("a list", token.describe());
  check_room(token.bits, least);
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

std::int64_t Reader::integer(std::int64_t least, std::int64_t most) {
  const Token token = next();
  const bool natural =
      token.type == Token::Type::natural && token.bits <= static_cast<std::uint64_t>(INT64_MAX);
  const auto value = static_cast<std::int64_t>(token.bits);
  if (!(natural || token.type == Token::Type::negative) || value < least || value > most)
    fail(cat("an integer from ", least, " to ", most), token.describe());
  return value;
}

std::uint64_t Reader::natural(std::uint64_t most) {
  const Token token = next();
  if (token.type != Token::Type::natural || token.bits > most)
    fail(cat("an integer from 0 to ", most), token.describe());
  return token.bits;
}

float Reader::real32() {
  const Token token = next();
  if (token.type != Token::Type::real32) fail("a float", token.describe());
  return std::bit_cast<float>(static_cast<std::uint32_t>(token.bits));
}

double Reader::real64() {
  const Token token = next();
  if (token.type != Token::Type::real64) fail("a double", token.describe());
  return std::bit_cast<double>(token.bits);
}

std::string Reader::text() {
  const Token token = next();
  if (token.type != Token::Type::text) fail("a text", token.describe());
  std::size_t bad = 0;
  if (!valid_utf8(token.bytes, &bad))
    fail("a text in UTF-8", cat("byte ", bad, " of it ill-formed"));
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
      fail("each key once", cat(quote(object.back().first, 40), " again"));
  }
  return object;
}

Json Reader::json(std::size_t depth) {
  if (depth >= json_depth)
    fail(cat("a value nested at most ", json_depth, " deep"), "a deeper one");
  const std::size_t before = at_;
  const Token token = next();
  switch (token.type) {
    case Token::Type::nil:
      return {};
    case Token::Type::boolean:
      return Json(token.bits != 0);
    case Token::Type::natural:
    case Token::Type::negative:
      at_ = before;
      return Json(integer(INT64_MIN, INT64_MAX));
    case Token::Type::real64:
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
    fail(cat("an array of ", to_string(dtype)), cat("an array of kind ", found));
  if (bytes % size_of(dtype) != 0)
    fail(cat("an array of ", to_string(dtype)),
         cat(bytes, " bytes, which are no whole number of elements"));
  return {{nullptr, reinterpret_cast<const std::byte*>(token.bytes.data() + 1), bytes},
          bytes / size_of(dtype)};
}

Reader::Numbers Reader::part(Dtype dtype) {
  const auto index = natural(UINT64_MAX);
  if (index >= parts_.size()) fail(cat("one of ", parts_.size(), " parts"), cat("part ", index));
  if (used_[index]) fail("each part once", cat("part ", index, " again"));
  used_[index] = true;
  if (const auto found = natural(UINT8_MAX); found != static_cast<std::uint8_t>(dtype))
    fail(cat("an array of ", to_string(dtype)), found >= 1 && found <= last_dtype
                                                    ? to_string(static_cast<Dtype>(found))
                                                    : "an unknown kind");
  const std::uint64_t count = natural(UINT64_MAX);
  const Part& bytes = parts_[index];
  if (bytes.size % size_of(dtype) != 0 || bytes.size / size_of(dtype) != count)
    fail(cat(count, " elements of ", size_of(dtype), " bytes"),
         cat("a part of ", bytes.size, " bytes"));
  return {bytes, count};
}

void Reader::finish() {
  if (at_ != header_.size()) fail("the end", cat(header_.size() - at_, " bytes more"));
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i])
      fail("every part to be used", cat("part ", i, " of ", used_.size(), " left over"));
  }
}

}  // namespace troupe::transports::wire
