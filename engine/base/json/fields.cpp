#include "engine/base/json/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

bool contains(const Range& range, double value) {
  const bool low = range.above_low ? value > range.low : value >= range.low;
  const bool high = range.below_high ? value < range.high : value <= range.high;
  return std::isfinite(value) && ((low && high) || (range.or_zero && value == 0));
}

std::string range_text(const Range& range) {
  std::vector<std::string> parts;
  if (range.low > -unbounded)
    parts.push_back(cat(range.above_low ? "above " : "at least ", to_text(range.low)));
  if (range.high < unbounded)
    parts.push_back(cat(range.below_high ? "below " : "at most ",
                        range.high > 1000 ? to_text(range.high, 0) : to_text(range.high)));
  return cat(range.or_zero ? "0, or " : "", join(parts, ", "));
}

namespace detail {
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

Result<> check_number(double value, const Range& range, const std::string& where) {
  if (contains(range, value)) return {};
  const std::string allowed = range_text(range);
  return fail(Errc::usage,
              cat(where, ": expected ", allowed.empty() ? "a finite number" : "a number ", allowed,
                  ", found ", value));
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
    return fail(Errc::usage,
                cat(where, ": unknown key ", quote(key),
                    near.empty() ? "; the known keys are "
                                 : cat("; did you mean ", near, "? The known keys are "),
                    join(known, ", ")));
  }
  return {};
}

}  // namespace detail
}  // namespace troupe
