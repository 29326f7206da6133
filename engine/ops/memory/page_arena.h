// PageArena: allocates ranges of pages of any length. Free neighbours are merged, so that small
// ranges that a step frees serve the next large one with pages that are resident already: a fresh
// page costs a page fault and clearing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe::engine::ops {

/// For use by one thread at a time.
class PageArena {
 public:
  static constexpr std::size_t page = 4096;

  PageArena() = default;
  /// All ranges must have been given back.
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  /// Allocates `bytes`, a multiple of `page`, where the fewest fresh pages are needed. Returns
  /// nullptr if the system has no memory. Throws std::bad_alloc if there is none for what
  /// give_back() will need.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* data, std::size_t bytes) noexcept;
  /// Returns the pages of free ranges to the system, the longest unused first, until at most
  /// `max_warm` bytes of them are left.
  void release(std::size_t max_warm);
  /// Bytes of free ranges that have resident pages.
  std::size_t warm() const { return warm_; }

 private:
  struct Free {
    std::size_t bytes;
    bool warm;            ///< has resident pages
    std::uint64_t since;  ///< time when it became free
  };
  using Pieces = std::map<std::byte*, Free>;
  /// Neighbouring pieces, from the start of the first, that are large enough together.
  struct Run {
    Pieces::iterator first;
    std::size_t fresh, left_over;
  };
  struct Region {
    std::byte* data;
    std::size_t bytes;
  };

  std::optional<Run> run_from(Pieces::iterator first, std::size_t bytes);
  std::optional<Run> best_run(std::size_t bytes);
  bool add_region(std::size_t bytes);
  void reserve_node();
  void insert(std::byte* data, const Free& piece);
  void insert(Pieces::node_type node);
  void cut(Pieces::iterator first, std::size_t bytes);

  Pieces pieces_;                         // no two neighbours are both warm, or both not
  std::vector<Pieces::node_type> spare_;  // at least one for each range that is in use
  std::size_t in_use_ = 0;                // ranges
  std::vector<Region> regions_;
  std::size_t warm_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace troupe::engine::ops
