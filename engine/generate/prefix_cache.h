// PrefixCache: full pages of the KV cache by the tokens that they and the pages before them hold,
// as a radix tree over pages (Zheng et al. 2024, arXiv:2312.07104 sec. 3). A page is identified by
// all tokens up to its end and a context, on which its keys and values depend. Equal calls give
// equal trees.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/generate/page_pool.h"

namespace troupe::engine::generate {

class PrefixCache {
 public:
  static constexpr std::int32_t no_page = -1;

  /// For a pool of `pages` pages of `page_size` tokens each.
  PrefixCache(int page_size, std::int32_t pages);

  /// What keys and values depend on besides tokens, or what separates clients: sequences of
  /// different contexts share no page.
  using Context = std::vector<std::int32_t>;

  /// The pages of the longest known prefix of `tokens`, full pages only. They were used now.
  std::vector<std::int32_t> match(std::span<const std::int32_t> tokens,
                                  const Context& context = {});
  /// The page that holds `tokens` [page_size] after the tokens of `before` and of its predecessors,
  /// or no_page. before: no_page for the first page of a sequence, which alone needs the context.
  std::int32_t find(std::int32_t before, std::span<const std::int32_t> tokens,
                    const Context& context = {}) const;
  /// Adds a page, which find() did not know, and keeps it in `pool`. Who holds a page holds all
  /// pages before it.
  void insert(std::int32_t before, std::span<const std::int32_t> tokens, std::int32_t page,
              PagePool& pool, const Context& context = {});
  /// Frees the least recently used idle page that no other follows. There must be an idle page.
  void evict(PagePool& pool);
  /// Forgets all pages.
  void clear(PagePool& pool);

 private:
  /// The tokens of a page and, for the first of a sequence, its context.
  using Key = std::vector<std::int32_t>;
  using Children = std::map<Key, std::int32_t>;
  struct Node {
    Children following;
    std::int32_t before = no_page;
    Children::iterator place = {};  // among the following pages of `before`
    std::uint64_t used = 0;         // 0: the page is not in the tree
  };
  static Key key_of(std::int32_t before, std::span<const std::int32_t> tokens,
                    const Context& context);
  Node& at(std::int32_t page) { return page == no_page ? first_ : nodes_.at(page); }
  const Node& at(std::int32_t page) const { return page == no_page ? first_ : nodes_.at(page); }
  void use(std::int32_t page);
  void remove(std::int32_t page, PagePool& pool);

  std::size_t page_size_;
  Node first_;               // its following pages are the first pages of sequences
  std::vector<Node> nodes_;  // by page
  // Pages that no other follows, the least recently used one first.
  std::set<std::pair<std::uint64_t, std::int32_t>> last_;
  std::uint64_t uses_ = 0;
};

}  // namespace troupe::engine::generate
