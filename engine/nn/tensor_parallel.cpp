#include "engine/nn/tensor_parallel.h"

#include "engine/base/check.h"
#include "engine/ops/host_values.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {

void all_reduce(parallel::Communicator* group, ops::Device& device, Tensor& x,
                std::string_view what) {
  if (group == nullptr) return;
  ops::HostValues host(device, x);
  parallel::all_reduce_sum(*group, host.values(), what);
  host.store();
}

std::span<const std::int32_t> local_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                         std::int32_t elsewhere,
                                         std::vector<std::int32_t>& storage) {
  const auto& shard = table.shard;
  if (shard.whole()) return ids;
  storage.assign(ids.begin(), ids.end());
  for (auto& id : storage) {
    check(id < shard.full, "local_rows: an id beyond the vocabulary");
    if (id < 0) continue;
    id = shard.begin <= id && id < shard.end ? id - static_cast<std::int32_t>(shard.begin)
                                             : elsewhere;
  }
  return storage;
}

}  // namespace troupe::engine::nn
