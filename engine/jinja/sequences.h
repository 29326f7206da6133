// Functions shared by the filters of sequences.
#pragma once

#include "engine/jinja/runtime.h"

namespace troupe::engine::jinja {

/// The items that `fill(items)` appends, as a generator: a failure of `fill` is raised only after
/// the items before it have been consumed.
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
/// Looks up "a.b.0" attribute by attribute; `otherwise` (may be null) replaces undefined ones.
Value dotted(Runtime& runtime, const Value& item, const Value& path,
             const Value* otherwise = nullptr);

}  // namespace troupe::engine::jinja
