#include "engine/nn/tensor_parallel.h"

#include "engine/base/check.h"
#include "engine/parallel/all_reduce.h"

namespace troupe::engine::nn {

void sum_over(parallel::Communicator* group, ops::Device& device, Tensor& x,
              std::string_view what) {
  if (group == nullptr) return;
  auto values = ops::to_host(device, x);
  parallel::sum(*group, values, what);
  device.upload(x, values);
}

std::span<const std::int32_t> own_rows(const Parameter& table, std::span<const std::int32_t> ids,
                                       std::int32_t elsewhere, std::vector<std::int32_t>& room) {
  const auto& shard = table.shard;
  if (shard.whole()) return ids;
  room.assign(ids.begin(), ids.end());
  for (auto& id : room) {
    check(id < shard.full, "own_rows: an id beyond the vocabulary");
    if (id < 0) continue;
    id = shard.begin <= id && id < shard.end ? id - static_cast<std::int32_t>(shard.begin)
                                             : elsewhere;
  }
  return room;
}

}  // namespace troupe::engine::nn
