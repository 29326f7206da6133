#include "engine/nn/sequence_parallel.h"

#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::nn {
namespace {

parallel::Range rows_of(const ForwardContext& pass, int rank) {
  return parallel::even_range(pass.rows, rank, pass.rows_group->size());
}

// Numbers of values of the ranks' rows, `width` a row.
std::vector<std::size_t> counts_of(const ForwardContext& pass, std::int64_t width) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < pass.rows_group->size(); ++rank)
    counts.push_back(static_cast<std::size_t>(rows_of(pass, rank).size() * width));
  return counts;
}

}  // namespace

Tensor gather_rows(const ForwardContext& pass, const Tensor& x, std::string_view what) {
  if (pass.rows_group == nullptr) return x;
  const std::int64_t width = x.shape()[1];
  Tensor all = pass.device.empty({pass.rows, width});
  pass.rows_group->start_all_gather(x, all, counts_of(pass, width), what).wait();
  return all;
}

Tensor own_rows(const ForwardContext& pass, const Tensor& x) {
  if (pass.rows_group == nullptr) return x;
  const auto [begin, end] = rows_of(pass, pass.rows_group->rank());
  return x.rows(begin, end);
}

std::int64_t all_rows(const ForwardContext& pass, const Tensor& x) {
  return pass.rows_group == nullptr ? x.shape()[0] : pass.rows;
}

Tensor sum_rows(const ForwardContext& pass, collectives::TensorGroup* tp, Tensor y,
                std::string_view what) {
  if (pass.rows_group == nullptr || tp == nullptr) {
    if (tp != nullptr) tp->all_reduce(y, what);
    return y;
  }
  check(tp == pass.rows_group, "sum_rows: the rows are divided over another group");
  const std::int64_t width = y.shape()[1];
  Tensor own = pass.device.empty({rows_of(pass, tp->rank()).size(), width});
  tp->start_reduce_scatter(y, counts_of(pass, width), own, what).wait();
  return own;
}

}  // namespace troupe::engine::nn
