#include "engine/nn/sequence_parallel.h"

#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/nn/tensor_parallel.h"
#include "engine/ops/host_values.h"
#include "engine/parallel/shard.h"

namespace troupe::engine::nn {
namespace {

parallel::Range rows_of(const ForwardContext& pass, int rank) {
  return parallel::even_range(pass.rows, rank, pass.rows_group->size());
}

// Numbers of values of the ranks' rows, `each` bytes or values a row.
std::vector<std::size_t> counts_of(const ForwardContext& pass, std::int64_t each) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < pass.rows_group->size(); ++rank)
    counts.push_back(static_cast<std::size_t>(rows_of(pass, rank).size() * each));
  return counts;
}

}  // namespace

Tensor gather_rows(const ForwardContext& pass, const Tensor& x, std::string_view what) {
  if (pass.rows_group == nullptr) return x;
  const std::int64_t width = x.shape()[1];
  Tensor all = pass.device.empty({pass.rows, width});
  ops::HostValues mine(pass.device, x), into(pass.device, all);
  pass.rows_group
      ->start_all_gather(std::as_bytes(mine.values()), std::as_writable_bytes(into.values()),
                         counts_of(pass, width * std::int64_t{sizeof(float)}), what)
      .wait();
  into.store();
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

Tensor sum_rows(const ForwardContext& pass, parallel::Communicator* tp, Tensor y,
                std::string_view what) {
  if (pass.rows_group == nullptr || tp == nullptr) {
    all_reduce(tp, pass.device, y, what);
    return y;
  }
  check(tp == pass.rows_group, "sum_rows: the rows are divided over another group");
  const std::int64_t width = y.shape()[1];
  Tensor own = pass.device.empty({rows_of(pass, tp->rank()).size(), width});
  ops::HostValues values(pass.device, y), into(pass.device, own);
  tp->start_reduce_scatter(values.values(), counts_of(pass, width), into.values(), what).wait();
  into.store();
  return own;
}

}  // namespace troupe::engine::nn
