// The global functions of the template language.
#pragma once

#include "engine/jinja/evaluator.h"

namespace troupe::engine::jinja {

/// Defines range, dict, namespace, cycler, joiner, lipsum and raise_exception.
void define_globals(Scope& scope);

}  // namespace troupe::engine::jinja
