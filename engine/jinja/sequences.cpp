#include "engine/jinja/sequences.h"

#include <algorithm>

#include "engine/base/text/parse.h"

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
  for (const auto each : split(text, '.')) {
    runtime.charge(1);
    const std::string part(each);
    const bool number = !part.empty() && part.size() < 9 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    out =
        runtime.item(out, number ? Value(static_cast<std::int64_t>(std::stol(part))) : Value(part));
    if (out.is(Value::Type::undefined) && otherwise) out = *otherwise;
  }
  return out;
}

}  // namespace troupe::engine::jinja
