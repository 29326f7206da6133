// The codec converts messages, replies and settings structs to and from their wire form. A struct
// lists its members in `fields(m)` (std::tie, found by ADL) and is encoded as a list of them.
// Encodable types: numbers, bools, strings, enumerations with names (engine/base/json/fields.h),
// optionals, pairs, vectors, Json, and numeric arrays, which become raw parts.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/json/fields.h"
#include "engine/base/json/json.h"
#include "engine/base/memory/shared_array.h"
#include "transports/wire/reader.h"
#include "transports/wire/writer.h"

namespace troupe::transports::wire {

template <class T>
concept Struct = std::is_class_v<T> && requires(T& value) {
  { std::tuple_size<decltype(fields(value))>::value } -> std::convertible_to<std::size_t>;
};

/// Writes and reads a T; `min_bytes` is the smallest size of one in the header. A type without a
/// specialization is not encodable.
template <class T>
struct Codec;

template <class T>
inline constexpr bool encodable = requires(const T& value, Writer& writer) {
  Codec<T>::write(value, writer);
};

template <>
struct Codec<bool> {
  static constexpr std::size_t min_bytes = 1;
  static void write(bool value, Writer& writer) { writer.boolean(value); }
  static void read(bool& into, Reader& reader) { into = reader.boolean(); }
};

template <class T>
requires std::is_arithmetic_v<T> && Number<T>
struct Codec<T> {
  static constexpr std::size_t min_bytes = std::is_floating_point_v<T> ? 1 + sizeof(T) : 1;
  static void write(T value, Writer& writer) {
    if constexpr (std::is_floating_point_v<T>)
      writer.real(value);
    else if constexpr (std::is_signed_v<T>)
      writer.integer(value);
    else
      writer.unsigned_integer(value);
  }
  static void read(T& into, Reader& reader) {
    if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>)
      into = reader.float32();
    else if constexpr (std::is_floating_point_v<T>)
      into = reader.float64();
    else if constexpr (std::is_signed_v<T>)
      into = static_cast<T>(
          reader.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    else
      into = static_cast<T>(reader.unsigned_integer(std::numeric_limits<T>::max()));
  }
};

template <Named E>
struct Codec<E> {
  static constexpr std::size_t min_bytes = 1;
  static void write(E value, Writer& writer) {
    writer.unsigned_integer(static_cast<std::uint64_t>(value));
  }
  static void read(E& into, Reader& reader) {
    into = static_cast<E>(reader.unsigned_integer(names_of(E{}).size() - 1));
  }
};

template <>
struct Codec<std::string> {
  static constexpr std::size_t min_bytes = 1;
  static void write(const std::string& value, Writer& writer) { writer.text(value); }
  static void read(std::string& into, Reader& reader) { into = reader.text(); }
};

template <>
struct Codec<Json> {
  static constexpr std::size_t min_bytes = 1;
  static void write(const Json& value, Writer& writer) { writer.json(value); }
  static void read(Json& into, Reader& reader) { into = reader.json(); }
};

/// Copies numbers out of the header or a part.
template <Number T>
std::vector<T> copied(const Reader::Numbers& found) {
  std::vector<T> values(found.count);
  if (found.count > 0) std::memcpy(values.data(), found.bytes.data, found.bytes.size);
  return values;
}

template <Number T>
struct Codec<std::vector<T>> {
  static constexpr std::size_t min_bytes = 3;
  static void write(const std::vector<T>& value, Writer& writer) {
    writer.numbers(dtype_of<T>(), value.data(), value.size());
  }
  static void read(std::vector<T>& into, Reader& reader) {
    into = copied<T>(reader.numbers(dtype_of<T>()));
  }
};

/// An array that arrives as a part is not copied, unless its address is not aligned for T.
template <Number T>
struct Codec<SharedArray<T>> {
  static constexpr std::size_t min_bytes = 3;
  static void write(const SharedArray<T>& value, Writer& writer) {
    writer.numbers(dtype_of<T>(), value->data(), value->size(), value.owner());
  }
  static void read(SharedArray<T>& into, Reader& reader) {
    const Reader::Numbers found = reader.numbers(dtype_of<T>());
    const bool stays =
        found.bytes.owner && reinterpret_cast<std::uintptr_t>(found.bytes.data) % alignof(T) == 0;
    into = stays ? SharedArray<T>(found.bytes.owner,
                                  {reinterpret_cast<const T*>(found.bytes.data), found.count})
                 : SharedArray<T>(std::make_shared<const std::vector<T>>(copied<T>(found)));
  }
};

template <class T>
requires(!Number<T> && encodable<T>) struct Codec<std::vector<T>> {
  static constexpr std::size_t min_bytes = 1;
  static void write(const std::vector<T>& values, Writer& writer) {
    writer.list(values.size());
    for (const auto& value : values) Codec<T>::write(value, writer);
  }
  static void read(std::vector<T>& into, Reader& reader) {
    const std::size_t count = reader.list(Codec<T>::min_bytes);
    into.clear();
    into.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Reader::Inside inside(reader, i);
      T value{};
      Codec<T>::read(value, reader);
      into.push_back(std::move(value));
    }
  }
};

template <class T>
requires encodable<T>
struct Codec<std::optional<T>> {
  static constexpr std::size_t min_bytes = 1;
  static void write(const std::optional<T>& value, Writer& writer) {
    writer.list(value ? 1 : 0);
    if (value) Codec<T>::write(*value, writer);
  }
  static void read(std::optional<T>& into, Reader& reader) {
    into.reset();
    const std::size_t count = reader.list(Codec<T>::min_bytes);
    if (count > 1) reader.fail("at most one value", cat(count, " values"));
    if (count == 1) Codec<T>::read(into.emplace(), reader);
  }
};

/// Codec of a fixed list of fields; base of the codecs of structs and pairs.
template <class... Ts>
struct FieldList {
  static constexpr std::size_t min_bytes = 1 + (Codec<Ts>::min_bytes + ... + 0);
  static void write(Writer& writer, const Ts&... values) {
    writer.list(sizeof...(Ts));
    (Codec<Ts>::write(values, writer), ...);
  }
  static void read(Reader& reader, Ts&... into) {
    reader.list_of(sizeof...(Ts), "fields");
    std::size_t index = 0;
    (read_one(reader, index++, into), ...);
  }

 private:
  template <class T>
  static void read_one(Reader& reader, std::size_t index, T& into) {
    const Reader::Inside inside(reader, index);
    Codec<T>::read(into, reader);
  }
};

template <class A, class B>
requires(encodable<A>&& encodable<B>) struct Codec<std::pair<A, B>> : private FieldList<A, B> {
  static constexpr std::size_t min_bytes = FieldList<A, B>::min_bytes;
  static void write(const std::pair<A, B>& value, Writer& writer) {
    FieldList<A, B>::write(writer, value.first, value.second);
  }
  static void read(std::pair<A, B>& into, Reader& reader) {
    FieldList<A, B>::read(reader, into.first, into.second);
  }
};

/// The FieldList of a tuple of references.
template <class Tuple>
struct ListOf;
template <class... Ts>
struct ListOf<std::tuple<Ts&...>> {
  static constexpr bool ok = (encodable<Ts> && ...);
  using type = FieldList<Ts...>;
};

template <Struct T>
requires ListOf<decltype(fields(std::declval<T&>()))>::ok struct Codec<T> {
  using List = typename ListOf<decltype(fields(std::declval<T&>()))>::type;
  static constexpr std::size_t min_bytes = List::min_bytes;
  static void write(const T& value, Writer& writer) {
    // fields() returns non-const references, which are only read here.
    std::apply([&](const auto&... members) { List::write(writer, members...); },
               fields(const_cast<T&>(value)));
  }
  static void read(T& into, Reader& reader) {
    std::apply([&](auto&... members) { List::read(reader, members...); }, fields(into));
  }
};

/// `owner` keeps `value` alive as long as the parts exist.
template <class T>
WireBody encode(const T& value, std::shared_ptr<const void> owner) {
  Writer writer(std::move(owner));
  Codec<T>::write(value, writer);
  return std::move(writer).finish();
}

/// Throws Failure(bad_input) unless `body` is exactly one T; `what` starts the message.
template <class T>
T decode(const WireBody& body, std::string_view what) {
  Reader reader(body, what);
  T value{};
  Codec<T>::read(value, reader);
  reader.finish();
  return value;
}

}  // namespace troupe::transports::wire
