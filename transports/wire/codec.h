// The codec: any message, reply or settings struct to and from its wire form. A struct lists its
// members in `fields(m)` (std::tie, found beside it) and travels as a list of them; numbers, bools,
// texts, enumerations with words (engine/base/fields.h), optionals, pairs, vectors, Json, and
// arrays of numbers (which become raw parts) are known. Nothing else is encodable.
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

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/shared_array.h"
#include "transports/wire/reader.h"
#include "transports/wire/writer.h"

namespace troupe::transports::wire {

template <class T>
concept Struct = std::is_class_v<T> && requires(T& value) {
  { std::tuple_size<decltype(fields(value))>::value } -> std::convertible_to<std::size_t>;
};

/// How a T is written, read, and the fewest bytes of header that one takes. Not defined: not
/// encodable.
template <class T>
struct Form;

template <class T>
inline constexpr bool encodable = requires(const T& value, Writer& writer) {
  Form<T>::write(value, writer);
};

template <>
struct Form<bool> {
  static constexpr std::size_t least = 1;
  static void write(bool value, Writer& writer) { writer.boolean(value); }
  static void read(bool& into, Reader& reader) { into = reader.boolean(); }
};

template <class T>
requires std::is_arithmetic_v<T> && Number<T>
struct Form<T> {
  static constexpr std::size_t least = std::is_floating_point_v<T> ? 1 + sizeof(T) : 1;
  static void write(T value, Writer& writer) {
    if constexpr (std::is_floating_point_v<T>)
      writer.real(value);
    else if constexpr (std::is_signed_v<T>)
      writer.integer(value);
    else
      writer.natural(value);
  }
  static void read(T& into, Reader& reader) {
    if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>)
      into = reader.real32();
    else if constexpr (std::is_floating_point_v<T>)
      into = reader.real64();
    else if constexpr (std::is_signed_v<T>)
      into = static_cast<T>(
          reader.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    else
      into = static_cast<T>(reader.natural(std::numeric_limits<T>::max()));
  }
};

template <Named E>
struct Form<E> {
  static constexpr std::size_t least = 1;
  static void write(E value, Writer& writer) { writer.natural(static_cast<std::uint64_t>(value)); }
  static void read(E& into, Reader& reader) {
    into = static_cast<E>(reader.natural(names_of(E{}).size() - 1));
  }
};

template <>
struct Form<std::string> {
  static constexpr std::size_t least = 1;
  static void write(const std::string& value, Writer& writer) { writer.text(value); }
  static void read(std::string& into, Reader& reader) { into = reader.text(); }
};

template <>
struct Form<Json> {
  static constexpr std::size_t least = 1;
  static void write(const Json& value, Writer& writer) { writer.json(value); }
  static void read(Json& into, Reader& reader) { into = reader.json(); }
};

/// Numbers copied out of the header or a part.
template <Number T>
std::vector<T> copied(const Reader::Numbers& found) {
  std::vector<T> values(found.count);
  if (found.count > 0) std::memcpy(values.data(), found.bytes.data, found.bytes.size);
  return values;
}

template <Number T>
struct Form<std::vector<T>> {
  static constexpr std::size_t least = 3;
  static void write(const std::vector<T>& value, Writer& writer) {
    writer.numbers(dtype_of<T>(), value.data(), value.size());
  }
  static void read(std::vector<T>& into, Reader& reader) {
    into = copied<T>(reader.numbers(dtype_of<T>()));
  }
};

/// Not copied when it comes as a part, unless the transport put it at an address where a T may not
/// stand.
template <Number T>
struct Form<SharedArray<T>> {
  static constexpr std::size_t least = 3;
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
requires(!Number<T> && encodable<T>) struct Form<std::vector<T>> {
  static constexpr std::size_t least = 1;
  static void write(const std::vector<T>& values, Writer& writer) {
    writer.list(values.size());
    for (const auto& value : values) Form<T>::write(value, writer);
  }
  static void read(std::vector<T>& into, Reader& reader) {
    const std::size_t count = reader.list(Form<T>::least);
    into.clear();
    into.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Reader::Inside inside(reader, i);
      T value{};
      Form<T>::read(value, reader);
      into.push_back(std::move(value));
    }
  }
};

template <class T>
requires encodable<T>
struct Form<std::optional<T>> {
  static constexpr std::size_t least = 1;
  static void write(const std::optional<T>& value, Writer& writer) {
    writer.list(value ? 1 : 0);
    if (value) Form<T>::write(*value, writer);
  }
  static void read(std::optional<T>& into, Reader& reader) {
    into.reset();
    const std::size_t count = reader.list(Form<T>::least);
    if (count > 1) reader.fail("a value or none", cat(count, " values"));
    if (count == 1) Form<T>::read(into.emplace(), reader);
  }
};

/// What a struct and a pair have in common: a list of fields.
template <class... Ts>
struct FieldList {
  static constexpr std::size_t least = 1 + (Form<Ts>::least + ... + 0);
  static void write(Writer& writer, const Ts&... values) {
    writer.list(sizeof...(Ts));
    (Form<Ts>::write(values, writer), ...);
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
    Form<T>::read(into, reader);
  }
};

template <class A, class B>
requires(encodable<A>&& encodable<B>) struct Form<std::pair<A, B>> : private FieldList<A, B> {
  static constexpr std::size_t least = FieldList<A, B>::least;
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
requires ListOf<decltype(fields(std::declval<T&>()))>::ok struct Form<T> {
  using List = typename ListOf<decltype(fields(std::declval<T&>()))>::type;
  static constexpr std::size_t least = List::least;
  static void write(const T& value, Writer& writer) {
    // fields() gives references to change; here they are only read.
    std::apply([&](const auto&... members) { List::write(writer, members...); },
               fields(const_cast<T&>(value)));
  }
  static void read(T& into, Reader& reader) {
    std::apply([&](auto&... members) { List::read(reader, members...); }, fields(into));
  }
};

/// `owner` keeps `value` alive as long as the parts are.
template <class T>
WireBody encode(const T& value, std::shared_ptr<const void> owner) {
  Writer writer(std::move(owner));
  Form<T>::write(value, writer);
  return std::move(writer).finish();
}

/// Failure(bad_input) unless `body` is one T and nothing more; `what` begins the sentence.
template <class T>
T decode(const WireBody& body, std::string_view what) {
  Reader reader(body, what);
  T value{};
  Form<T>::read(value, reader);
  reader.finish();
  return value;
}

}  // namespace troupe::transports::wire
