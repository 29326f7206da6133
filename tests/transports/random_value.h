// Messages with random contents, and their bitwise comparison by fields(), as the codec accesses
// them.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <string>

#include "transports/wire/codec.h"

namespace troupe::transports {

/// Seeded random contents. `size`: the maximum number of list elements; numeric arrays are
/// occasionally longer than the header holds.
class RandomValue {
 public:
  explicit RandomValue(std::uint64_t seed, std::size_t size = 4) : engine_(seed), size_(size) {}

  template <class T>
  T make() {
    T value{};
    fill(value);
    return value;
  }
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }

 private:
  template <wire::Number T>
  void fill(T& into) {
    std::array<std::byte, sizeof(T)> bits;
    for (auto& byte : bits) byte = static_cast<std::byte>(engine_());
    if (below(4) == 0) bits.fill(below(2) == 0 ? std::byte{0} : std::byte{0xff});
    into = std::bit_cast<T>(bits);
  }
  void fill(bool& into) { into = below(2) == 0; }
  void fill(std::string& into) {
    static const std::string pieces[] = {
        "a", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x8e\xad", std::string(1, '\0'), "longer text "};
    for (std::size_t n = below(size_ + 1); n > 0; --n) into += pieces[below(std::size(pieces))];
  }
  void fill(Json& into) { into = json(0); }
  template <Named E>
  void fill(E& into) {
    into = static_cast<E>(below(names_of(into).size()));
  }
  template <wire::Number T>
  void fill(std::vector<T>& into) {
    into.resize(below(8) == 0 ? wire::max_inline_bytes / sizeof(T) + below(100) : below(size_ + 1));
    for (auto& value : into) fill(value);
  }
  template <class T>
  void fill(SharedArray<T>& into) {
    into = std::make_shared<const std::vector<T>>(make<std::vector<T>>());
  }
  template <class T>
  void fill(std::vector<T>& into) {
    into.resize(below(size_ + 1));
    for (auto& value : into) fill(value);
  }
  template <class T>
  void fill(std::optional<T>& into) {
    if (below(2) == 0) fill(into.emplace());
  }
  template <class A, class B>
  void fill(std::pair<A, B>& into) {
    fill(into.first);
    fill(into.second);
  }
  template <wire::Struct T>
  void fill(T& into) {
    std::apply([&](auto&... members) { (fill(members), ...); }, fields(into));
  }
  Json json(int depth) {
    switch (below(depth < 3 ? 7 : 5)) {
      case 0:
        return {};
      case 1:
        return Json(make<bool>());
      case 2:
        return Json(make<std::int64_t>());
      case 3:
        return Json(make<double>());
      case 4:
        return Json(make<std::string>());
      case 5: {
        Json::Array items;
        for (std::size_t n = below(size_); n > 0; --n) items.push_back(json(depth + 1));
        return Json(std::move(items));
      }
      default: {
        Json object = Json::Object{};
        for (std::size_t n = below(size_); n > 0; --n) object.set(cat("key", n), json(depth + 1));
        return object;
      }
    }
  }

  std::mt19937_64 engine_;
  std::size_t size_;
};

/// True if the values are equal to the bit, NaN included: their encodings are compared. (Values
/// with equal encodings in one process could still differ if the writer lost something; the tests
/// of single values cover that.)
template <class T>
bool same(const T& a, const T& b) {
  const auto kept = std::make_shared<int>();
  const wire::WireBody x = wire::encode(a, kept), y = wire::encode(b, kept);
  bool equal = x.header == y.header && x.parts.size() == y.parts.size();
  for (std::size_t i = 0; equal && i < x.parts.size(); ++i)
    equal = x.parts[i].size == y.parts[i].size &&
            std::memcmp(x.parts[i].data, y.parts[i].data, x.parts[i].size) == 0;
  return equal;
}

}  // namespace troupe::transports
