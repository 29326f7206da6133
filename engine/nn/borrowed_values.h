// Parameters whose values are an array that others read too: a set of weights that several models
// of a process share, or a received message. Nothing is copied.
#pragma once

#include "engine/base/memory/shared_array.h"
#include "engine/nn/parameters.h"

namespace troupe::engine::nn {

/// Whether `parameters` can read logical values where they lie: they are whole and trained, and
/// their device computes in host memory.
bool can_borrow(const Parameters& parameters);

/// Makes `logical` (logical_count() values, in the order of models::parameter_list) the values of
/// `parameters`, whose own memory is freed. Needs can_borrow(); another length is a Bug. Nobody may
/// write to the parameters afterwards.
void borrow_values(const SharedArray<float>& logical, Parameters& parameters);

/// Makes the values of `from`, a model of the same shape and grid, those of `into` too.
void share_values(const Parameters& from, Parameters& into);

/// Exchanges the values of two models of one shape and grid, without a copy.
void swap_values(Parameters& a, Parameters& b);

}  // namespace troupe::engine::nn
