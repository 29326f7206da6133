#include "engine/ops/cpu/context/context.h"

namespace troupe::engine::ops::cpu {

float* Scratch::need(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (!buffer_ || buffer_->bytes() < bytes) {
    buffer_.reset();
    buffer_ = std::make_unique<HostBuffer>(bytes, blocks_);
  }
  return data();
}

Workspace::Workspace(const std::shared_ptr<BlockPool>& blocks, int threads)
    : packed_a(blocks), packed_b(blocks), gain(blocks) {
  for (int i = 0; i < threads; ++i) {
    gemm_.emplace_back(blocks);
    tiles_.emplace_back(blocks);
  }
}

}  // namespace troupe::engine::ops::cpu
