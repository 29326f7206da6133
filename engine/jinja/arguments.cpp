#include "engine/jinja/arguments.h"

#include <algorithm>

#include "engine/base/text.h"

namespace troupe::engine::jinja {
namespace {

struct Parameters {
  std::vector<std::string_view> names;
  std::size_t needed = 0;
  bool by_position_only = false;
};

Parameters parse(std::string_view text) {
  Parameters out;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name == "/") {
      out.by_position_only = true;
      continue;
    }
    if (name.ends_with('?'))
      name.remove_suffix(1);
    else
      ++out.needed;
    out.names.push_back(name);
  }
  return out;
}

}  // namespace

void check_arguments(std::string_view callee, std::string_view parameters,
                     const Arguments& arguments) {
  if (parameters == "*") return;
  const Parameters known = parse(parameters);
  const std::size_t given = arguments.positional.size();
  if (given > known.names.size())
    raise(
        cat(callee, "() takes at most ", known.names.size(), " arguments, ", given, " were given"));
  for (const auto& [name, value] : arguments.keyword) {
    const auto found = std::find(known.names.begin(), known.names.end(), name);
    if (known.by_position_only || found == known.names.end())
      raise(cat(callee, "() takes no keyword argument '", name, "'"));
    if (static_cast<std::size_t>(found - known.names.begin()) < given)
      raise(cat(callee, "() got two values for '", name, "'"));
  }
  for (std::size_t i = given; i < known.needed; ++i)
    if (!arguments.find(i, known.names[i]))
      raise(cat(callee, "() is missing its argument '", known.names[i], "'"));
}

void require_hashable(const Value& key) {
  if (key.is(Value::Type::dict) ||
      (key.is(Value::Type::list) && key.list().kind == List::Kind::list))
    raise(cat("unhashable type: '", key.type_name(), "'"));
  if (!key.is(Value::Type::list) || key.list().kind != List::Kind::tuple) return;
  for (const Value& item : key.list().items) require_hashable(item);
}

}  // namespace troupe::engine::jinja
