#include "engine/ops/memory/page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace troupe::engine::ops {
namespace {

// Address space, not memory: pages are allocated when they are written.
constexpr std::size_t region_bytes = std::size_t{1} << 30;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::byte* map(std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

/// Advice only: a kernel without huge pages provides small ones.
void prefer_huge_pages(std::byte* data, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(data),
             begin = (address + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes,
             end = (address + bytes) / huge_page_bytes * huge_page_bytes;
  if (bytes >= 2 * huge_page_bytes)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

PageArena::~PageArena() {
  for (const Region& region : regions_) ::munmap(region.data, region.bytes);
}

/// Makes a spare node for a range that is about to be in use.
void PageArena::reserve_node() {
  if (spare_.size() > in_use_) return;
  Pieces one;
  one.emplace(nullptr, Free{});
  spare_.push_back(one.extract(one.begin()));
}

void PageArena::insert(std::byte* data, const Free& piece) {
  Pieces one;
  one.emplace(data, piece);
  insert(one.extract(one.begin()));
}

/// Merges neighbours if both have resident pages, or neither has.
void PageArena::insert(Pieces::node_type node) {
  auto at = pieces_.insert(std::move(node)).position;
  const auto join = [&](Pieces::iterator left, Pieces::iterator right) {
    if (left->first + left->second.bytes != right->first || left->second.warm != right->second.warm)
      return left;
    left->second.bytes += right->second.bytes;
    left->second.since = std::max(left->second.since, right->second.since);
    pieces_.erase(right);
    return left;
  };
  if (const auto next = std::next(at); next != pieces_.end()) at = join(at, next);
  if (at != pieces_.begin()) join(std::prev(at), at);
}

bool PageArena::add_region(std::size_t bytes) {
  for (const std::size_t size : {std::max(bytes, region_bytes), bytes}) {
    std::byte* data = map(size);
    if (data == nullptr) continue;
    regions_.push_back({data, size});
    insert(data, {size, false, ++clock_});
    return true;
  }
  return false;
}

std::optional<PageArena::Run> PageArena::run_from(Pieces::iterator first, std::size_t bytes) {
  Run run{first, 0, 0};
  const std::byte* end = first->first;
  for (auto at = first; at != pieces_.end() && at->first == end; ++at) {
    const Free& piece = at->second;
    const std::size_t used = std::min(piece.bytes, bytes);
    if (!piece.warm) run.fresh += used;
    bytes -= used;
    run.left_over = piece.bytes - used;
    if (bytes == 0) return run;
    end = at->first + piece.bytes;
  }
  return std::nullopt;
}

/// Returns the run with the fewest fresh pages; among those the one that leaves the smallest rest
/// of a piece, then the most recently used.
std::optional<PageArena::Run> PageArena::best_run(std::size_t bytes) {
  std::optional<Run> best;
  const auto rank = [](const Run& run) {
    return std::tuple(run.fresh, run.left_over, ~run.first->second.since);
  };
  for (auto at = pieces_.begin(); at != pieces_.end(); ++at) {
    const auto run = run_from(at, bytes);
    if (run && (!best || rank(*run) < rank(*best))) best = run;
  }
  return best;
}

/// Removes `bytes` from the pieces, from the start of `first` on.
void PageArena::cut(Pieces::iterator first, std::size_t bytes) {
  while (bytes > 0) {
    const auto [data, piece] = *first;
    const std::size_t used = std::min(piece.bytes, bytes);
    if (piece.warm) warm_ -= used;
    first = pieces_.erase(first);
    if (used < piece.bytes)
      pieces_.emplace(data + used, Free{piece.bytes - used, piece.warm, piece.since});
    bytes -= used;
  }
}

std::byte* PageArena::take(std::size_t bytes) {
  reserve_node();
  auto run = best_run(bytes);
  if (!run && add_region(bytes)) run = best_run(bytes);
  if (!run) return nullptr;
  std::byte* data = run->first->first;
  cut(run->first, bytes);
  ++in_use_;
  if (run->fresh > 0) prefer_huge_pages(data, bytes);
  return data;
}

void PageArena::give_back(std::byte* data, std::size_t bytes) noexcept {
  warm_ += bytes;
  --in_use_;
  Pieces::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = data;
  node.mapped() = {bytes, true, ++clock_};
  insert(std::move(node));
}

void PageArena::release(std::size_t max_warm) {
  while (warm_ > max_warm) {
    auto oldest = pieces_.end();
    for (auto at = pieces_.begin(); at != pieces_.end(); ++at)
      if (at->second.warm && (oldest == pieces_.end() || at->second.since < oldest->second.since))
        oldest = at;
    const auto [data, piece] = *oldest;
    const std::size_t bytes = std::min(piece.bytes, (warm_ - max_warm + page - 1) / page * page);
    cut(oldest, bytes);
    ::madvise(data, bytes, MADV_DONTNEED);
    insert(data, {bytes, false, piece.since});
  }
}

}  // namespace troupe::engine::ops
