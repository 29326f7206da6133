// Fields: the settings of a struct (a loss, a method, a section of a run file), each defined once:
//
//   struct SimpoLoss {
//     double beta = 2;
//     double version = 0;
//     static void each_field(auto& self, auto&& field) {
//       field("beta", self.beta, above_0, "reward scale");
//       field("version", self.version);
//     }
//   };
//
// A field has a name, a member, an optional range of its numbers, and a description. From this list
// come the struct's JSON form (below), and the keys, `--set`, `explain` and the reference page of
// the configuration (launch/config/schema.h). Both check the ranges. A field without a description
// is part of the JSON form only: users cannot set it.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe {

/// An enumeration with names: `names_of(E{})`, found beside the type, returns an array of
/// string_view in the order of the enumerators.
template <class E>
concept Named = std::is_enum_v<E> && requires {
  names_of(E{});
};

/// The name of an enumerator.
template <Named E>
constexpr std::string_view name_of(E value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

/// Allowed values of a number, or of each number of a list.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;   ///< excludes low
  bool below_high = false;  ///< excludes high
  bool or_zero = false;     ///< 0 is allowed, too
};

/// True for a finite number within the range.
bool contains(const Range& range, double value);
/// "above 0, at most 1", "0, or at least 0.001"; empty if every number is allowed.
std::string range_text(const Range& range);

/// Calls visit(number, whole) for each number of a value: of a number, a list or an array of
/// numbers, or pairs of a name and a number. `whole`: an integer.
template <class T, class Visit>
void each_number(const T& value, const Visit& visit) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
    visit(static_cast<double>(value), std::is_integral_v<T>);
  else if constexpr (requires { value.begin()->second; })
    for (const auto& [name, each] : value) each_number(each, visit);
  else if constexpr (requires { value.begin(); } && !std::is_convertible_v<T, std::string_view>)
    for (const auto& each : value) each_number(each, visit);
}

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr Range at_least_0{0, unbounded}, at_least_1{1, unbounded}, above_0{0, unbounded, true},
    from_0_to_1{0, 1}, above_0_to_1{0, 1, true}, from_0_below_1{0, 1, false, true};

namespace detail {

Result<> read_field(const Json& json, double& into, const std::string& where);
Result<> read_field(const Json& json, bool& into, const std::string& where);
Result<> read_field(const Json& json, int& into, const std::string& where);
Result<> read_field(const Json& json, std::string& into, const std::string& where);
inline Result<> read_field(const Json& json, Json& into, const std::string&) {
  into = json;
  return {};
}
/// The index of a word among `names`, or an error that lists them and suggests the nearest.
Result<std::size_t> read_word(const Json& json, const std::vector<std::string>& names,
                              const std::string& where);
Result<> refuse_unknown(const Json& json, const std::vector<std::string>& known,
                        const std::string& where);

template <Named E>
Result<> read_field(const Json& json, E& into, const std::string& where) {
  std::vector<std::string> names;
  for (const auto name : names_of(E{})) names.emplace_back(name);
  const auto index = read_word(json, names, where);
  RETURN_IF_ERROR(index);
  into = static_cast<E>(*index);
  return {};
}

template <class T>
Result<> read_field(const Json& json, std::vector<T>& into, const std::string& where) {
  if (!json.is_array())
    return fail(Errc::usage, cat(where, ": expected a list, found ", json.type_name()));
  into.clear();
  for (const auto& item : json.array()) {
    T value{};
    RETURN_IF_ERROR(read_field(item, value, cat(where, "[", into.size(), "]")));
    into.push_back(value);
  }
  return {};
}

inline Range range_of() {
  return {};
}
inline Range range_of(const char*) {
  return {};
}
inline Range range_of(const Range& range) {
  return range;
}
inline Range range_of(const Range& range, const char*) {
  return range;
}
/// Errc::usage for a number outside the range.
Result<> check_number(double value, const Range& range, const std::string& where);

template <class T>
Result<> check_numbers(const T& value, const Range& range, const std::string& where) {
  Result<> done;
  each_number(value, [&](double each, bool) {
    if (done) done = check_number(each, range, where);
  });
  return done;
}

template <class T>
Json field_json(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return Json(name_of(value));
  else
    return Json(value);
}

template <class T>
Json field_json(const std::vector<T>& values) {
  Json::Array out;
  for (const auto& value : values) out.push_back(field_json(value));
  return out;
}

}  // namespace detail

template <class S>
Json fields_to_json(const S& settings) {
  Json out = Json::Object{};
  S::each_field(settings, [&](const char* name, const auto& value, const auto&...) {
    out.set(name, detail::field_json(value));
  });
  return out;
}

/// Members that are absent keep their defaults. Errc::usage for an unknown key, a wrong type, an
/// unknown enumerator or a number outside its range. `where` ("dpo", "rewards[2]") starts every
/// message.
template <class S>
Result<S> fields_from_json(const Json& json, const std::string& where) {
  if (json.is_null()) return S{};
  if (!json.is_object())
    return fail(Errc::usage, cat(where, ": expected an object, found ", json.type_name()));
  S out;
  std::vector<std::string> known;
  Result<> done;
  S::each_field(out, [&](const char* name, auto& value, const auto&... rest) {
    known.emplace_back(name);
    const Json* member = json.find(name);
    if (!done || member == nullptr) return;
    done = detail::read_field(*member, value, cat(where, ".", name));
    if (done) done = detail::check_numbers(value, detail::range_of(rest...), cat(where, ".", name));
  });
  if (done) done = detail::refuse_unknown(json, known, where);
  RETURN_IF_ERROR(done);
  return out;
}

}  // namespace troupe
