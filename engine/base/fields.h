// Fields: a struct of settings (a loss, a rule) to and from Json, from one list of its members, so
// that it can be named over a wire.
//
//   struct SimpoLoss {
//     double beta = 2, gamma = 1;
//     static void each_field(auto& self, auto&& field) { field("beta", self.beta), field("gamma",
//     self.gamma); }
//   };
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/text.h"

namespace troupe {

/// An enumeration with words: `names_of(E{})`, found beside the type, gives an array of string_view
/// in the order of the enumerators.
template <class E>
concept Named = std::is_enum_v<E> && requires {
  names_of(E{});
};

namespace detail {

Result<> read_field(const Json& json, double& into, const std::string& where);
Result<> read_field(const Json& json, bool& into, const std::string& where);
Result<> read_field(const Json& json, int& into, const std::string& where);
Result<> read_field(const Json& json, std::string& into, const std::string& where);
inline Result<> read_field(const Json& json, Json& into, const std::string&) {
  return into = json, Result<>();
}
/// The index of a word among `names`, or a message that lists them and says which is nearest.
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

template <class T>
Json field_json(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return Json(names_of(value)[static_cast<std::size_t>(value)]);
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
  S::each_field(settings, [&](const char* name, const auto& value) {
    out.set(name, detail::field_json(value));
  });
  return out;
}

/// Members that are absent keep their defaults; an unknown key, a wrong type or a word out of its
/// list is refused. Errc::usage. `where` ("dpo", "rewards[2]") starts every message.
template <class S>
Result<S> fields_from_json(const Json& json, const std::string& where) {
  if (json.is_null()) return S{};
  if (!json.is_object())
    return fail(Errc::usage, cat(where, ": expected an object, found ", json.type_name()));
  S out;
  std::vector<std::string> known;
  Result<> done;
  S::each_field(out, [&](const char* name, auto& value) {
    known.emplace_back(name);
    const Json* member = json.find(name);
    if (done && member != nullptr) done = detail::read_field(*member, value, cat(where, ".", name));
  });
  if (done) done = detail::refuse_unknown(json, known, where);
  RETURN_IF_ERROR(done);
  return out;
}

}  // namespace troupe
