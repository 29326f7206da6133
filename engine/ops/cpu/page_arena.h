// PageArena: pages of the system given out in ranges of any length. Free neighbours become one
// again, so that what a step frees in small pieces serves the next large one, with pages that are
// there already: a fresh page costs a fault and a wipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe::engine::ops {

/// Not safe to use from several threads.
class PageArena {
 public:
  static constexpr std::size_t page = 4096;

  PageArena() = default;
  /// All ranges were given back.
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  /// `bytes`, a multiple of `page`, from where the fewest fresh pages are needed; nullptr when the
  /// system has no room.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* data, std::size_t bytes);
  /// Gives the pages of free ranges to the system, the longest unused first, until no more than
  /// `most` bytes of them are left.
  void release(std::size_t most);
  /// Bytes of free ranges that have pages.
  std::size_t warm() const { return warm_; }

 private:
  struct Free {
    std::size_t bytes;
    bool warm;            ///< has pages
    std::uint64_t since;  ///< when it became free
  };
  using Pieces = std::map<std::byte*, Free>;
  /// Neighbouring pieces, from the begin of the first, that have room together.
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
  void insert(std::byte* data, const Free& piece);
  void cut(Pieces::iterator first, std::size_t bytes);

  Pieces pieces_;  // no two neighbours are both warm, or both not
  std::vector<Region> regions_;
  std::size_t warm_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace troupe::engine::ops
