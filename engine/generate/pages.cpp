#include "engine/generate/pages.h"

namespace troupe::engine::generate {

void copy_pages(ops::Device& device, nn::KvCache& cache, std::span<const PageCopy> copies) {
  const auto page = [&](Tensor& all, std::int32_t number) {
    return all.rows(std::int64_t{number} * cache.page_size,
                    (std::int64_t{number} + 1) * cache.page_size);
  };
  for (const PageCopy& copy : copies) {
    for (auto* side : {&cache.k, &cache.v}) {
      for (Tensor& layer : *side) {
        Tensor to = page(layer, copy.to);
        device.copy(page(layer, copy.from), to);
      }
    }
  }
}

}  // namespace troupe::engine::generate
