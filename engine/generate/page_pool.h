// PagePool: the free pages of the KV cache, and the number of holders of each other page.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine::generate {

class PagePool {
 public:
  explicit PagePool(std::int32_t pages);
  /// Takes the free page with the lowest number, for reproducible runs. A Bug when none is free.
  std::int32_t take();
  /// Adds a holder. A page with several holders is never written.
  void share(std::int32_t page);
  /// Removes a holder; the last one frees the page.
  void release(std::int32_t page);
  std::int32_t free_pages() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t pages() const { return static_cast<std::int32_t>(holders_.size()); }
  std::int32_t holders(std::int32_t page) const { return holders_[static_cast<std::size_t>(page)]; }

 private:
  std::vector<std::int32_t> holders_;  // [pages]
  std::vector<std::int32_t> free_;     // a heap with the lowest on top
};

}  // namespace troupe::engine::generate
