#include "engine/parallel/thread_group.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe::engine::parallel {
namespace {

using Clock = std::chrono::steady_clock;

/// What a rank brings to a meeting.
struct Post {
  const char* kind = "";
  int root = 0;
  std::span<const std::byte> bytes{};
  std::string_view what{};
  bool here = false;
};

struct ThreadRanks;

/// What a group and all groups split off from it have in common.
struct World {
  std::mutex mutex;
  std::chrono::nanoseconds deadline{};
  std::vector<std::weak_ptr<ThreadRanks>> groups{};
  std::vector<int>
      held{};  // communicators that each rank holds, of this group and of those split off
  std::vector<bool> left{};  // ranks that held some and hold none: they come no more

  void take(int name);
  void drop(int name);
  void end(const std::string& words, bool bug);
};

/// One group of threads: the meeting place. Everything but `world` and `names` is guarded by
/// world->mutex.
struct ThreadRanks {
  ThreadRanks(std::shared_ptr<World> of, std::vector<int> ranks)
      : world(std::move(of)), names(std::move(ranks)), posts(names.size()) {}

  const std::shared_ptr<World> world;
  const std::vector<int> names;  // its ranks as the world numbers them, for messages
  std::condition_variable changed{};
  std::vector<Post> posts;
  std::size_t arrived = 0, copied = 0;
  std::uint64_t meeting = 0;
  bool open = false;                   // all are here: copy
  std::optional<std::string> ended{};  // no meeting any more, and why
  bool bug = false;                    // it ended by a mistake of ours
  std::vector<std::pair<std::shared_ptr<ThreadRanks>, int>>
      children{};  // of a split: each rank's group, and its rank there

  int size() const { return static_cast<int>(names.size()); }
  template <class Copy>
  void meet(int rank, Post post, bool idle, const Copy& copy);
  void wait_for_all(std::unique_lock<std::mutex>& lock, int rank, bool idle);
  void throw_if_ended(std::string_view what) const;
  bool somebody_left() const;
  std::string missing(bool of_those_who_left) const;
  void check_that_posts_agree();
  void make_children();
};

void World::take(int name) {
  const std::lock_guard lock(mutex);
  ++held[name];
}

void World::drop(int name) {
  const std::lock_guard lock(mutex);
  if (--held[name] > 0) return;
  left[name] = true;
  for (const auto& weak : groups)
    if (const auto group = weak.lock()) group->changed.notify_all();
}

void World::end(const std::string& words, bool bug) {
  for (const auto& weak : groups) {
    const auto group = weak.lock();
    if (!group || group->ended) continue;
    group->ended = words;
    group->bug = bug;
    group->changed.notify_all();
  }
}

void ThreadRanks::throw_if_ended(std::string_view what) const {
  if (!ended) return;
  if (bug) throw Bug(*ended);
  throw Failure(Error{Errc::closed, cat("'", what, "': ", *ended)});
}

bool ThreadRanks::somebody_left() const {
  for (std::size_t r = 0; r < posts.size(); ++r)
    if (world->left[names[r]] && !posts[r].here) return true;
  return false;
}

/// "rank 2" or "ranks 1, 3": who has not come.
std::string ThreadRanks::missing(bool of_those_who_left) const {
  std::vector<std::string> ranks;
  for (std::size_t r = 0; r < posts.size(); ++r)
    if (!posts[r].here && (!of_those_who_left || world->left[names[r]]))
      ranks.push_back(std::to_string(names[r]));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, ", "));
}

void ThreadRanks::check_that_posts_agree() {
  const auto words = [this](std::size_t r) {
    const Post& post = posts[r];
    return cat("rank ", names[r], " calls ", post.kind, " of ", post.bytes.size(),
               " bytes with root ", post.root, " ('", post.what, "')");
  };
  for (std::size_t r = 1; r < posts.size(); ++r) {
    const Post &a = posts[0], &b = posts[r];
    if (std::string_view(a.kind) == b.kind && a.root == b.root && a.bytes.size() == b.bytes.size())
      continue;
    world->end(cat("the ranks' calls do not match: ", words(0), ", ", words(r),
                   " (a bug in troupe, not in your input)"),
               true);
    return;
  }
}

/// Sorts the ranks into the groups of a split; the last to come does it for all.
void ThreadRanks::make_children() {
  struct Wish {
    int color, key, rank;
  };
  std::vector<Wish> wishes;
  for (int r = 0; r < size(); ++r) {
    std::array<int, 2> pair{};
    std::memcpy(pair.data(), posts[r].bytes.data(), sizeof pair);
    wishes.push_back({pair[0], pair[1], r});
  }
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return std::tie(a.color, a.key, a.rank) < std::tie(b.color, b.key, b.rank);
  });
  children.assign(posts.size(), {});
  std::erase_if(world->groups, [](const auto& group) { return group.expired(); });
  for (std::size_t first = 0; first < wishes.size();) {
    std::size_t last = first;
    std::vector<int> members;
    for (; last < wishes.size() && wishes[last].color == wishes[first].color; ++last)
      members.push_back(names[wishes[last].rank]);
    const auto child = std::make_shared<ThreadRanks>(world, std::move(members));
    world->groups.push_back(child);
    for (std::size_t i = first; i < last; ++i)
      children[wishes[i].rank] = {child, static_cast<int>(i - first)};
    first = last;
  }
}

void ThreadRanks::wait_for_all(std::unique_lock<std::mutex>& lock, int rank, bool idle) {
  const auto settled = [&] { return open || ended || somebody_left(); };
  const std::string_view what = posts[rank].what;
  if (idle) {
    changed.wait(lock, settled);
  } else if (!changed.wait_until(lock, Clock::now() + world->deadline, settled)) {
    const double seconds = std::chrono::duration<double>(world->deadline).count();
    const auto words = cat("waited ", to_text(seconds), " s for ", missing(false), " of ", size());
    world->end(cat("rank ", names[rank], " gave up '", what, "': it ", words), false);
    throw Failure(
        Error{Errc::timeout, cat("'", what, "': ", words, ", which neither came nor said why")});
  }
  if (open) return;  // before anything else: who has come reads the others' memory now
  if (!ended) {
    ended = cat(missing(true), " left the group");
    changed.notify_all();
  }
  throw_if_ended(what);
}

template <class Copy>
void ThreadRanks::meet(int rank, Post post, bool idle, const Copy& copy) {
  std::unique_lock lock(world->mutex);
  throw_if_ended(post.what);
  const auto here = meeting;
  posts[rank] = post;
  posts[rank].here = true;
  if (++arrived == posts.size()) {
    check_that_posts_agree();
    throw_if_ended(post.what);
    if (std::string_view(post.kind) == "split") make_children();
    open = true;
    changed.notify_all();
  } else {
    wait_for_all(lock, rank, idle);
  }
  lock.unlock();
  copy();
  lock.lock();
  if (++copied == posts.size()) {
    for (Post& old : posts) old = {};
    children.clear();
    arrived = copied = 0;
    open = false;
    ++meeting;
    changed.notify_all();
  } else {
    changed.wait(lock, [&] {
      return meeting != here;
    });  // the others only copy: this ends, also when the group does
  }
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) {
  if (n && to != from) std::memcpy(to, from, n);
}

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<ThreadRanks> group, int rank) : group_(std::move(group)), rank_(rank) {
    group_->world->take(name());
  }
  ~ThreadRank() override { group_->world->drop(name()); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void broadcast(std::span<std::byte> data, int root, std::string_view what) override {
    spread(data, root, what, false);
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    spread(data, root, what, true);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    check(all.size() == mine.size() * group_->posts.size(),
          "all_gather: `all` holds one block of every rank");
    group_->meet(rank_, {"all_gather", 0, mine, what}, false, [&] {
      for (int r = 0; r < size(); ++r)
        copy_bytes(all.data() + r * mine.size(), group_->posts[r].bytes.data(), mine.size());
    });
  }

  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const std::size_t block = mine.size() / group_->posts.size();
    check(theirs.size() == mine.size() && block * group_->posts.size() == mine.size(),
          "all_to_all: one equal block for every rank");
    group_->meet(rank_, {"all_to_all", 0, mine, what}, false, [&] {
      for (int r = 0; r < size(); ++r)
        copy_bytes(theirs.data() + r * block, group_->posts[r].bytes.data() + rank_ * block, block);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    check(color >= 0, "a split's colours are not negative");
    const std::array<int, 2> wish{color, key};
    std::pair<std::shared_ptr<ThreadRanks>, int> child;
    group_->meet(rank_, {"split", 0, std::as_bytes(std::span(wish)), "splitting the group"}, false,
                 [&] { child = group_->children[rank_]; });
    return std::make_unique<ThreadRank>(std::move(child.first), child.second);
  }

  void abort(std::string_view why) noexcept override {
    const std::lock_guard lock(group_->world->mutex);
    group_->world->end(cat("rank ", name(), " ended: ", why), false);
  }

 private:
  void spread(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size(), "the root of a broadcast is a rank of the group");
    group_->meet(rank_, {"broadcast", root, data, what}, idle,
                 [&] { copy_bytes(data.data(), group_->posts[root].bytes.data(), data.size()); });
  }

  int name() const { return group_->names[rank_]; }

  const std::shared_ptr<ThreadRanks> group_;
  const int rank_;
};

}  // namespace

struct ThreadGroup::Parts {
  std::shared_ptr<ThreadRanks> ranks;
  std::vector<bool> given;
};

ThreadGroup::ThreadGroup(int ranks, ThreadGroupOptions options)
    : parts_(std::make_unique<Parts>()) {
  check(ranks >= 1, "a group has at least one rank");
  auto world = std::make_shared<World>();
  world->deadline = options.deadline;
  world->held.assign(ranks, 0);
  world->left.assign(ranks, false);
  std::vector<int> names;
  for (int r = 0; r < ranks; ++r) names.push_back(r);
  parts_->ranks = std::make_shared<ThreadRanks>(world, std::move(names));
  parts_->given.assign(ranks, false);
  world->groups.push_back(parts_->ranks);
}
ThreadGroup::~ThreadGroup() = default;
ThreadGroup::ThreadGroup(ThreadGroup&&) noexcept = default;

std::unique_ptr<Communicator> ThreadGroup::rank(int rank) {
  check(rank >= 0 && rank < parts_->ranks->size(), "a rank of the group");
  check(!parts_->given[rank], "a rank's communicator is given once");
  parts_->given[rank] = true;
  return std::make_unique<ThreadRank>(parts_->ranks, rank);
}

}  // namespace troupe::engine::parallel
