#include "engine/tokenizer/models/bpe_merge.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace troupe::engine::tokenizer {
namespace {

constexpr std::size_t short_word = 32;

// Keeps the ranks of neighbours in an array; each merge looks up two pairs again.
void merge_by_scan(std::vector<TokenId>& symbols, const MergeTable& merges,
                   std::vector<MergeTable::Merge>& pairs) {
  pairs.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    pairs.push_back(merges.find(symbols[i], symbols[i + 1]));
  while (!pairs.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs.size(); ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == MergeTable::no_rank) return;
    symbols[best] = pairs[best].id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
    if (best < pairs.size()) pairs[best] = merges.find(symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = merges.find(symbols[best - 1], symbols[best]);
  }
}

// A linked list of symbols and a heap of candidate merges; candidates whose neighbours have changed
// are skipped.
class HeapMerger {
 public:
  HeapMerger(const MergeTable& merges, MergeScratch& scratch)
      : merges_(merges), symbols_(scratch.symbols), heap_(scratch.heap) {}

  void run(std::vector<TokenId>& ids) {
    symbols_.clear();
    heap_.clear();
    const auto count = static_cast<std::int32_t>(ids.size());
    for (std::int32_t i = 0; i < count; ++i)
      symbols_.push_back({ids[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    for (std::int32_t i = 0; i + 1 < count; ++i) consider(i, false);
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const MergeScratch::Candidate top = heap_.back();
      heap_.pop_back();
      merge(static_cast<std::int32_t>(top.order & 0xFFFFFFFFu), top.id);
    }
    ids.clear();
    for (std::int32_t i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  static bool later(const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
    return a.order > b.order;
  }
  MergeScratch::Symbol& at(std::int32_t index) { return symbols_[static_cast<std::size_t>(index)]; }

  void consider(std::int32_t left, bool push) {
    const auto found = merges_.find(at(left).id, at(at(left).next).id);
    if (found.rank == MergeTable::no_rank) return;
    heap_.push_back(
        {(std::uint64_t{found.rank} << 32) | static_cast<std::uint32_t>(left), found.id});
    if (push) std::push_heap(heap_.begin(), heap_.end(), later);
  }

  void merge(std::int32_t left, TokenId id) {
    if (at(left).id < 0 || at(left).next < 0) return;
    const std::int32_t right = at(left).next;
    if (merges_.find(at(left).id, at(right).id).id != id) return;
    at(left).id = id;
    at(left).next = at(right).next;
    if (at(right).next >= 0) at(at(right).next).previous = left;
    at(right).id = -1;
    if (at(left).previous >= 0) consider(at(left).previous, true);
    if (at(left).next >= 0) consider(left, true);
  }

  const MergeTable& merges_;
  std::vector<MergeScratch::Symbol>& symbols_;
  std::vector<MergeScratch::Candidate>& heap_;
};

// Processes all candidates of a rank from left to right, then those of the next rank: if merges are
// in order, no candidate of a lower rank appears later.
class RankMerger {
 public:
  RankMerger(const MergeTable& merges, MergeScratch& scratch)
      : merges_(merges), scratch_(scratch) {}

  void run(std::vector<TokenId>& ids) {
    auto& symbols = scratch_.symbols;
    symbols.clear();
    scratch_.entries.clear();
    scratch_.buckets.resize(merges_.ranks());
    scratch_.waiting.resize((merges_.ranks() + 63) / 64);
    const auto count = static_cast<std::int32_t>(ids.size());
    for (std::int32_t i = 0; i < count; ++i)
      symbols.push_back({ids[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
    for (std::int32_t i = 0; i + 1 < count; ++i) consider(i);
    for (std::size_t word = 0; word <= last_word_; ++word)
      while (scratch_.waiting[word] != 0)
        merge_all(static_cast<std::uint32_t>(64 * word + std::countr_zero(scratch_.waiting[word])));
    ids.clear();
    for (std::int32_t i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  MergeScratch::Symbol& at(std::int32_t index) {
    return scratch_.symbols[static_cast<std::size_t>(index)];
  }

  void consider(std::int32_t left) {
    const auto found = merges_.find(at(left).id, at(at(left).next).id);
    if (found.rank == MergeTable::no_rank) return;
    const auto entry = static_cast<std::int32_t>(scratch_.entries.size());
    scratch_.entries.push_back({left, -1});
    auto& bucket = scratch_.buckets[found.rank];
    (bucket.first < 0 ? bucket.first
                      : scratch_.entries[static_cast<std::size_t>(bucket.last)].next) = entry;
    bucket.last = entry;
    scratch_.waiting[found.rank / 64] |= std::uint64_t{1} << (found.rank % 64);
    last_word_ = std::max<std::size_t>(last_word_, found.rank / 64);
  }

  void merge_all(std::uint32_t rank) {
    auto& positions = scratch_.positions;
    positions.clear();
    const auto bucket = std::exchange(scratch_.buckets[rank], {});
    scratch_.waiting[rank / 64] &= ~(std::uint64_t{1} << (rank % 64));
    for (std::int32_t i = bucket.first; i >= 0;
         i = scratch_.entries[static_cast<std::size_t>(i)].next)
      positions.push_back(scratch_.entries[static_cast<std::size_t>(i)].position);
    if (!std::is_sorted(positions.begin(), positions.end()))
      std::sort(positions.begin(), positions.end());
    for (const std::int32_t position : positions) merge(position, rank);
  }

  // Skips a candidate whose neighbours have changed.
  void merge(std::int32_t left, std::uint32_t rank) {
    if (at(left).id < 0 || at(left).next < 0) return;
    const std::int32_t right = at(left).next;
    const auto found = merges_.find(at(left).id, at(right).id);
    if (found.rank != rank) return;
    at(left).id = found.id;
    at(left).next = at(right).next;
    if (at(right).next >= 0) at(at(right).next).previous = left;
    at(right).id = -1;
    if (at(left).previous >= 0) consider(at(left).previous);
    if (at(left).next >= 0) consider(left);
  }

  const MergeTable& merges_;
  MergeScratch& scratch_;
  std::size_t last_word_ = 0;
};

}  // namespace

void merge_pairs(std::vector<TokenId>& symbols, const MergeTable& merges, MergeScratch& scratch) {
  if (symbols.size() < 2 || merges.ranks() == 0) return;
  if (symbols.size() <= short_word) return merge_by_scan(symbols, merges, scratch.pairs);
  merges.in_order() ? RankMerger(merges, scratch).run(symbols)
                    : HeapMerger(merges, scratch).run(symbols);
}

}  // namespace troupe::engine::tokenizer
