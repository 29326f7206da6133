// What a forward or backward pass carries through every module: the device, the shape of the batch,
// the precision of products, and in generation the cache of keys and values.
#pragma once

#include <span>
#include <vector>

#include "engine/ops/device.h"

namespace troupe::engine::nn {

/// Keys and values of a generating model: per layer two tensors [pages * page_size, G*K]. Who owns
/// which page is the scheduler's business.
struct KvCache {
  int page_size = 16;
  std::int32_t pages = 0;
  std::vector<Tensor> k, v;  ///< one per layer
};

/// Of a training pass over a model with adapters: the draws of its dropout.
struct Dropout {
  std::uint64_t key = 0;            ///< of the run and the update
  std::vector<std::uint64_t> rows;  ///< [T] the sequence's number in the whole batch, and the
                                    ///< position in it: no micro-batch changes them
};

/// What a training pass does not keep for its backward pass but computes once more: less memory,
/// the same bits.
struct Recomputed {
  bool layers = false;     ///< all but the input of each layer (Chen et al. 2016, arXiv:1604.06174)
  bool attention = false;  ///< what attention gives, between its products (Korthikanti et al. 2022,
                           ///< arXiv:2205.05198: "selective")
  bool activation = false;  ///< the inner values of an MLP behind its activation
  bool norm = false;        ///< what the norms before attention and MLP give
  bool operator==(const Recomputed&) const = default;
};

struct SharedRows;

struct Pass {
  ops::Device& device;
  const ops::Layout& layout;
  ops::Precision precision = ops::Precision::f32;
  KvCache* cache = nullptr;  ///< nullptr: training and scoring
  std::span<const std::vector<std::int32_t>> pages =
      {};                            ///< [N] the page table of each sequence, when there is a cache
  const Dropout* dropout = nullptr;  ///< nullptr: nothing is let go
  /// [N] how long each sequence is by now, where rows of it are still to come or in the cache;
  /// empty: up to its last row.
  std::span<const std::int32_t> lengths = {};
  Recomputed recomputed = {};
  bool packed = false;  ///< products read packed weights, where there are: the caller has seen to
                        ///< it that they are those of now
  const SharedRows* shared = nullptr;  ///< rows that are computed once for several sequences
                                       ///< (shared_rows.h); nullptr: none
};

}  // namespace troupe::engine::nn
