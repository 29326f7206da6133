#include "engine/generate/prefix_cache.h"

#include <algorithm>

#include "engine/base/errors/check.h"

namespace troupe::engine::generate {

PrefixCache::PrefixCache(int page_size, std::int32_t pages)
    : page_size_(static_cast<std::size_t>(page_size)), nodes_(static_cast<std::size_t>(pages)) {
}

PrefixCache::Key PrefixCache::key_of(std::int32_t before, std::span<const std::int32_t> tokens,
                                     const Context& context) {
  Key key(tokens.begin(), tokens.end());
  if (before == no_page) key.insert(key.end(), context.begin(), context.end());
  return key;
}

std::vector<std::int32_t> PrefixCache::match(std::span<const std::int32_t> tokens,
                                             const Context& context) {
  std::vector<std::int32_t> pages;
  std::int32_t page = no_page;
  for (; tokens.size() >= page_size_; tokens = tokens.subspan(page_size_)) {
    page = find(page, tokens.first(page_size_), context);
    if (page == no_page) break;
    use(page);
    pages.push_back(page);
  }
  return pages;
}

std::int32_t PrefixCache::find(std::int32_t before, std::span<const std::int32_t> tokens,
                               const Context& context) const {
  const Children& following = at(before).following;
  const auto found = following.find(key_of(before, tokens, context));
  return found == following.end() ? no_page : found->second;
}

void PrefixCache::insert(std::int32_t before, std::span<const std::int32_t> tokens,
                         std::int32_t page, PagePool& pool, const Context& context) {
  check(tokens.size() == page_size_, "PrefixCache: expected the tokens of a full page");
  check(before == no_page || at(before).used > 0, "PrefixCache: the page before is not known");
  Node& node = at(page);
  check(node.used == 0, "PrefixCache: the page is known");
  if (before != no_page && at(before).following.empty()) last_.erase({at(before).used, before});
  const auto [place, added] = at(before).following.emplace(key_of(before, tokens, context), page);
  check(added, "PrefixCache: another page holds these tokens");
  pool.keep(page);
  node.before = before;
  node.place = place;
  use(page);
}

void PrefixCache::use(std::int32_t page) {
  Node& node = at(page);
  if (node.following.empty()) {
    last_.erase({node.used, page});
    last_.emplace(uses_ + 1, page);
  }
  node.used = ++uses_;
}

void PrefixCache::evict(PagePool& pool) {
  // Each running sequence holds at most one of the pages that are passed over.
  const auto idle =
      std::ranges::find_if(last_, [&](const auto& each) { return pool.is_idle(each.second); });
  check(idle != last_.end(), "PrefixCache: no page is idle");
  remove(idle->second, pool);
}

void PrefixCache::remove(std::int32_t page, PagePool& pool) {
  Node& node = at(page);
  last_.erase({node.used, page});
  at(node.before).following.erase(node.place);
  if (node.before != no_page && at(node.before).following.empty())
    last_.emplace(at(node.before).used, node.before);
  node = {};
  pool.end_keeping(page);
}

void PrefixCache::clear(PagePool& pool) {
  while (!last_.empty()) remove(last_.begin()->second, pool);
}

}  // namespace troupe::engine::generate
