#include "engine/jinja/sequences.h"

#include <algorithm>

namespace troupe::engine::jinja {

Value list_of(std::vector<Value> items) {
  List out;
  out.items = std::move(items);
  return out;
}

Value dotted(Runtime& runtime, const Value& item, const Value& path, const Value* otherwise) {
  if (path.is_integral()) {
    Value out = runtime.item(item, path);
    return out.is(Value::Type::undefined) && otherwise ? *otherwise : out;
  }
  const std::string& text = to_text(path, "attribute");
  Value out = item;
  for (std::size_t at = 0; at <= text.size();) {
    runtime.charge(1);
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool number = !part.empty() && part.size() < 9 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    out =
        runtime.item(out, number ? Value(static_cast<std::int64_t>(std::stol(part))) : Value(part));
    if (out.is(Value::Type::undefined) && otherwise) out = *otherwise;
    at = end + 1;
  }
  return out;
}

}  // namespace troupe::engine::jinja
