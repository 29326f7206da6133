// PagePool: the free pages of the KV cache, and the number of holders of each other page. A page
// that the prefix cache keeps is not freed by its last holder; it is idle then.
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
  /// Removes a holder; the last one frees the page, unless it is kept.
  void release(std::int32_t page);
  /// Keeps a page that has a holder.
  void keep(std::int32_t page);
  /// Ends keep(); frees an idle page.
  void end_keeping(std::int32_t page);
  std::int32_t free_pages() const { return static_cast<std::int32_t>(free_.size()); }
  /// Kept pages without a holder.
  std::int32_t idle_pages() const { return idle_; }
  bool is_idle(std::int32_t page) const { return kept_.at(page) && holders_[page] == 0; }
  std::int32_t pages() const { return static_cast<std::int32_t>(holders_.size()); }
  std::int32_t holders(std::int32_t page) const { return holders_[static_cast<std::size_t>(page)]; }

 private:
  void free(std::int32_t page);

  std::vector<std::int32_t> holders_;  // [pages]
  std::vector<std::int32_t> free_;     // a heap with the lowest on top
  std::vector<bool> kept_;             // [pages]
  std::int32_t idle_ = 0;
};

}  // namespace troupe::engine::generate
