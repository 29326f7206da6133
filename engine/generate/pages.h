// Pages of a cache of keys and values, as bytes: who owns which is PagePool's business.
#pragma once

#include <span>

#include "engine/generate/scheduler.h"
#include "engine/nn/pass.h"

namespace troupe::engine::generate {

/// In all layers, in the order of `copies`.
void copy_pages(ops::Device& device, nn::KvCache& cache, std::span<const PageCopy> copies);

}  // namespace troupe::engine::generate
