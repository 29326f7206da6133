#include "engine/generate/page_pool.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/base/errors/check.h"

namespace troupe::engine::generate {

PagePool::PagePool(std::int32_t pages)
    : holders_(static_cast<std::size_t>(pages), 0),
      free_(holders_.size()),
      kept_(holders_.size(), false) {
  std::iota(free_.begin(), free_.end(), 0);
}

std::int32_t PagePool::take() {
  check(!free_.empty(), "PagePool: no page is free");
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const std::int32_t page = free_.back();
  free_.pop_back();
  holders_[page] = 1;
  return page;
}

void PagePool::share(std::int32_t page) {
  check(holders_.at(page) > 0 || kept_[page], "PagePool: sharing a page that nobody holds");
  if (holders_[page]++ == 0) --idle_;
}

void PagePool::release(std::int32_t page) {
  check(holders_.at(page) > 0, "PagePool: releasing a page that nobody holds");
  if (--holders_[page] > 0) return;
  if (kept_[page])
    ++idle_;
  else
    free(page);
}

void PagePool::keep(std::int32_t page) {
  check(holders_.at(page) > 0 && !kept_[page], "PagePool: keeping a free or kept page");
  kept_[page] = true;
}

void PagePool::end_keeping(std::int32_t page) {
  check(kept_.at(page), "PagePool: the page is not kept");
  kept_[page] = false;
  if (holders_[page] > 0) return;
  --idle_;
  free(page);
}

void PagePool::free(std::int32_t page) {
  free_.push_back(page);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace troupe::engine::generate
