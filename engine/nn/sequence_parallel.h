// Sequence parallelism (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2): between products
// that a tensor-parallel group divides, each rank has some of the rows instead of all. A sum over
// the group becomes a reduce-scatter of rows, and products gather the rows of their input.
#pragma once

#include <string_view>

#include "engine/nn/forward_context.h"

namespace troupe::engine::nn {

// Without pass.rows_group, the first three functions return their argument.

/// x [own rows, W] -> [rows, W], those of all ranks. Collective; `what` names the operation.
Tensor gather_rows(const ForwardContext& pass, const Tensor& x, std::string_view what);
/// The own rows of x [rows, W]; shares its memory.
Tensor own_rows(const ForwardContext& pass, const Tensor& x);
/// Number of rows of all ranks, where x has the own ones.
std::int64_t all_rows(const ForwardContext& pass, const Tensor& x);
/// The sum of y [rows, W] over `tp`, in the order of the ranks: all rows, or with pass.rows_group,
/// which is then the same group, own rows. `tp` nullptr: y itself.
Tensor sum_rows(const ForwardContext& pass, collectives::TensorGroup* tp, Tensor y,
                std::string_view what);

}  // namespace troupe::engine::nn
