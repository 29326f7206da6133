// What filters of sequences share.
#pragma once

#include "engine/jinja/machine.h"

namespace troupe::engine::jinja {

/// What `fill(items)` gives, as a generator: a failure of `fill` shows only to who goes through all
/// items before it.
template <class Fill>
Value generator(Fill fill) {
  List out;
  out.kind = List::Kind::generator;
  out.progress = std::make_shared<Progress>();
  try {
    fill(out.items);
  } catch (const Failure& failure) {
    out.progress->failure = failure.error().what;
  }
  return out;
}

Value list_of(std::vector<Value> items);
/// "a.b.0": attribute by attribute; `otherwise` (may be null) where one is undefined.
Value dotted(Machine& machine, const Value& item, const Value& path,
             const Value* otherwise = nullptr);

}  // namespace troupe::engine::jinja
