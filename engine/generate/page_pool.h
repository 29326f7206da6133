// PagePool: which pages of the key/value cache are free, and how many sequences hold each of the
// others.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::engine::generate {

class PagePool {
 public:
  explicit PagePool(std::int32_t pages);
  /// A free page, held once; the lowest number, so that runs repeat. A Bug when none is free.
  std::int32_t take();
  /// One more holder. A page with several holders is never written.
  void share(std::int32_t page);
  /// One holder less; the last one frees it.
  void release(std::int32_t page);
  std::int32_t free_pages() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t pages() const { return static_cast<std::int32_t>(holders_.size()); }
  std::int32_t holders(std::int32_t page) const { return holders_[static_cast<std::size_t>(page)]; }

 private:
  std::vector<std::int32_t> holders_;  // [pages]
  std::vector<std::int32_t> free_;     // a heap with the lowest on top
};

}  // namespace troupe::engine::generate
