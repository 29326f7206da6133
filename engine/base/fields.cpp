#include "engine/base/fields.h"

#include <algorithm>
#include <limits>

namespace troupe::detail {
namespace {

Result<> wrong(const std::string& where, const char* expected, const Json& found) {
  const std::string text =
      found.is_string() || found.is_number() ? cat(" ", quote(found.dump())) : "";
  return fail(Errc::usage,
              cat(where, ": expected ", expected, ", found ", found.type_name(), text));
}

}  // namespace

Result<> read_field(const Json& json, double& into, const std::string& where) {
  if (!json.is_number()) return wrong(where, "a number", json);
  into = json.number();
  return {};
}

Result<> read_field(const Json& json, bool& into, const std::string& where) {
  if (!json.is_bool()) return wrong(where, "true or false", json);
  into = json.boolean();
  return {};
}

Result<> read_field(const Json& json, int& into, const std::string& where) {
  using Limits = std::numeric_limits<int>;
  if (!json.is_integer() || json.integer() < Limits::min() || json.integer() > Limits::max())
    return wrong(where, "a whole number", json);
  into = static_cast<int>(json.integer());
  return {};
}

Result<> read_field(const Json& json, std::string& into, const std::string& where) {
  if (!json.is_string()) return wrong(where, "a text", json);
  into = json.string();
  return {};
}

Result<std::size_t> read_word(const Json& json, const std::vector<std::string>& names,
                              const std::string& where) {
  const std::string word = json.is_string() ? json.string() : "";
  const auto found = std::find(names.begin(), names.end(), word);
  if (json.is_string() && found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  const std::string near = nearest(word, names);
  return fail(Errc::usage,
              cat(where, ": expected one of ", join(names, ", "), "; found ", quote(json.dump()),
                  near.empty() ? "" : cat(" (did you mean ", near, "?)")));
}

Result<> refuse_unknown(const Json& json, const std::vector<std::string>& known,
                        const std::string& where) {
  for (const auto& [key, value] : json.object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    return fail(Errc::usage, cat(where, ": unknown key ", quote(key),
                                 near.empty() ? "" : cat(", did you mean ", near, "?"),
                                 " Known are ", join(known, ", ")));
  }
  return {};
}

}  // namespace troupe::detail
