// What a forward or backward pass carries through every module: the device, the shape of the batch, the precision of products,
// and in generation the cache of keys and values.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// Keys and values of a generating model: per layer two tensors [pages * page_size, G*K]. Who owns which page is the scheduler's business.
struct KvCache {
  int page_size = 16;
  std::int32_t pages = 0;
  std::vector<Tensor> k, v;  ///< one per layer
};

struct Pass {
  ops::Device& device;
  const ops::Layout& layout;
  ops::Precision precision = ops::Precision::f32;
  KvCache* cache = nullptr;                               ///< nullptr: training and scoring
  std::span<const std::vector<std::int32_t>> pages = {};  ///< [N] the page table of each sequence, when there is a cache
};

}  // namespace troupe::engine::nn
