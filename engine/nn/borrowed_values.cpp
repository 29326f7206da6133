#include "engine/nn/borrowed_values.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/ops/borrowed.h"

namespace troupe::engine::nn {
namespace {

// Modules hold references to the parameters, so they read the new arena in their next pass.
void set_arena(const Tensor& arena, Parameters& parameters) {
  check(arena.count() == parameters.count() && &parameters.trained() == &parameters,
        "parameters take over an arena of their size, and none of them is frozen");
  std::int64_t at = 0;
  for (auto& parameter : parameters.all()) {
    const Shape shape = parameter.value.shape();
    parameter.value = arena.flat(at, at + shape.count()).view(shape);
    at += shape.count();
  }
  parameters.values() = arena;
}

}  // namespace

bool can_borrow(const Parameters& parameters) {
  return &parameters.trained() == &parameters && !parameters.all().empty() &&
         ops::in_host_memory(parameters.values()) &&
         std::ranges::all_of(parameters.all(),
                             [](const Parameter& each) { return each.shard.whole(); });
}

void borrow_values(const SharedArray<float>& logical, Parameters& parameters) {
  check(can_borrow(parameters), "borrow_values: the parameters need memory of their own");
  set_arena(ops::borrow(logical), parameters);
}

void share_values(const Parameters& from, Parameters& into) {
  set_arena(from.values(), into);
}

void swap_values(Parameters& a, Parameters& b) {
  const Tensor arena = a.values();
  set_arena(b.values(), a);
  set_arena(arena, b);
}

}  // namespace troupe::engine::nn
