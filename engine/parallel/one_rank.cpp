#include "engine/parallel/one_rank.h"

#include <cstring>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe::engine::parallel {

void OneRank::enter(std::string_view what) const {
  if (!abort_message_.empty())
    throw Failure(Error{Errc::closed, cat("'", what, "': ", abort_message_)});
}

void OneRank::broadcast(std::span<std::byte>, int root, std::string_view what) {
  check(root == 0, "broadcast: the root is not a rank of the group");
  enter(what);
}

void OneRank::broadcast_idle(std::span<std::byte> data, int root, std::string_view what) {
  broadcast(data, root, what);
}

void OneRank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                         std::string_view what) {
  check(all.size() == mine.size(), "all_gather: `all` must hold one block per rank");
  enter(what);
  if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
}

void OneRank::all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                         std::string_view what) {
  all_gather(mine, theirs, what);
}

std::unique_ptr<Communicator> OneRank::split(int color, int) {
  check(color >= 0, "split: the color must not be negative");
  enter("splitting the group");
  return std::make_unique<OneRank>();
}

void OneRank::abort(std::string_view why) noexcept {
  abort_message_ = cat("rank 0 ended: ", why);
}

}  // namespace troupe::engine::parallel
