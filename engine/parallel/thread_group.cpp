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

/// A rank's arguments to a collective.
struct Post {
  const char* kind = "";
  int root = 0;
  std::span<const std::byte> bytes{};
  std::string_view what{};
  bool here = false;
};

struct ThreadRanks;

/// State shared by a group and all groups split from it.
struct World {
  std::mutex mutex;
  std::chrono::nanoseconds deadline{};
  std::vector<std::weak_ptr<ThreadRanks>> groups{};
  std::vector<int> held{};   // number of communicators that each rank holds
  std::vector<bool> left{};  // ranks that have destroyed all their communicators

  void take(int name);
  void drop(int name);
  void end(const std::string& message, bool bug);
};

/// One group of threads. world->mutex guards everything but `world` and `names`.
struct ThreadRanks {
  ThreadRanks(std::shared_ptr<World> of, std::vector<int> ranks)
      : world(std::move(of)), names(std::move(ranks)), posts(names.size()) {}

  const std::shared_ptr<World> world;
  const std::vector<int> names;  // ranks in the first group, for messages
  std::condition_variable changed{};
  std::vector<Post> posts;
  std::size_t arrived = 0, copied = 0;
  std::uint64_t collective = 0;        // number of the current one
  bool open = false;                   // all have arrived: copy
  std::optional<std::string> ended{};  // why the group was aborted
  bool bug = false;                    // it was aborted by a Bug
  // Results of a split: each rank's group, and its rank there.
  std::vector<std::pair<std::shared_ptr<ThreadRanks>, int>> children{};

  int size() const { return static_cast<int>(names.size()); }
  template <class Copy>
  void run(int rank, Post post, bool idle, const Copy& copy);
  void wait_for_all(std::unique_lock<std::mutex>& lock, int rank, bool idle);
  void throw_if_ended(std::string_view what) const;
  bool any_rank_left() const;
  std::string missing(bool only_left) const;
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

void World::end(const std::string& message, bool bug) {
  for (const auto& weak : groups) {
    const auto group = weak.lock();
    if (!group || group->ended) continue;
    group->ended = message;
    group->bug = bug;
    group->changed.notify_all();
  }
}

void ThreadRanks::throw_if_ended(std::string_view what) const {
  if (!ended) return;
  if (bug) throw Bug(*ended);
  throw Failure(Error{Errc::closed, cat("'", what, "': ", *ended)});
}

bool ThreadRanks::any_rank_left() const {
  for (std::size_t r = 0; r < posts.size(); ++r)
    if (world->left[names[r]] && !posts[r].here) return true;
  return false;
}

/// The ranks that have not arrived: "rank 2" or "ranks 1, 3".
std::string ThreadRanks::missing(bool only_left) const {
  std::vector<std::string> ranks;
  for (std::size_t r = 0; r < posts.size(); ++r)
    if (!posts[r].here && (!only_left || world->left[names[r]]))
      ranks.push_back(std::to_string(names[r]));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, ", "));
}

void ThreadRanks::check_that_posts_agree() {
  const auto describe = [this](std::size_t r) {
    const Post& post = posts[r];
    return cat("rank ", names[r], " calls ", post.kind, " of ", post.bytes.size(),
               " bytes with root ", post.root, " ('", post.what, "')");
  };
  for (std::size_t r = 1; r < posts.size(); ++r) {
    const Post &a = posts[0], &b = posts[r];
    if (std::string_view(a.kind) == b.kind && a.root == b.root && a.bytes.size() == b.bytes.size())
      continue;
    world->end(cat("the ranks' calls do not match: ", describe(0), ", ", describe(r),
                   " (a bug in troupe, not in your input)"),
               true);
    return;
  }
}

/// Creates the groups of a split; the last rank to arrive does it for all.
void ThreadRanks::make_children() {
  struct Request {
    int color, key, rank;
  };
  std::vector<Request> requests;
  for (int r = 0; r < size(); ++r) {
    std::array<int, 2> pair{};
    std::memcpy(pair.data(), posts[r].bytes.data(), sizeof pair);
    requests.push_back({pair[0], pair[1], r});
  }
  std::sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) {
    return std::tie(a.color, a.key, a.rank) < std::tie(b.color, b.key, b.rank);
  });
  children.assign(posts.size(), {});
  std::erase_if(world->groups, [](const auto& group) { return group.expired(); });
  for (std::size_t first = 0; first < requests.size();) {
    std::size_t last = first;
    std::vector<int> members;
    for (; last < requests.size() && requests[last].color == requests[first].color; ++last)
      members.push_back(names[requests[last].rank]);
    const auto child = std::make_shared<ThreadRanks>(world, std::move(members));
    world->groups.push_back(child);
    for (std::size_t i = first; i < last; ++i)
      children[requests[i].rank] = {child, static_cast<int>(i - first)};
    first = last;
  }
}

void ThreadRanks::wait_for_all(std::unique_lock<std::mutex>& lock, int rank, bool idle) {
  const auto decided = [&] { return open || ended || any_rank_left(); };
  const std::string_view what = posts[rank].what;
  if (idle) {
    changed.wait(lock, decided);
  } else if (!changed.wait_until(lock, Clock::now() + world->deadline, decided)) {
    const double seconds = std::chrono::duration<double>(world->deadline).count();
    const auto waited = cat("waited ", to_text(seconds), " s for ", missing(false), " of ", size());
    world->end(cat("rank ", names[rank], " timed out in '", what, "': it ", waited), false);
    throw Failure(
        Error{Errc::timeout, cat("'", what, "': ", waited, ", which neither arrived nor aborted")});
  }
  if (open) return;  // first: other ranks read this rank's memory now
  if (!ended) {
    ended = cat(missing(true), " left the group");
    changed.notify_all();
  }
  throw_if_ended(what);
}

template <class Copy>
void ThreadRanks::run(int rank, Post post, bool idle, const Copy& copy) {
  std::unique_lock lock(world->mutex);
  throw_if_ended(post.what);
  const auto current = collective;
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
    ++collective;
    changed.notify_all();
  } else {
    // The other ranks only copy: this wait always ends, even when the group is aborted.
    changed.wait(lock, [&] { return collective != current; });
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
    broadcast_bytes(data, root, what, false);
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    broadcast_bytes(data, root, what, true);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    check(all.size() == mine.size() * group_->posts.size(),
          "all_gather: `all` must hold one block per rank");
    group_->run(rank_, {"all_gather", 0, mine, what}, false, [&] {
      for (int r = 0; r < size(); ++r)
        copy_bytes(all.data() + r * mine.size(), group_->posts[r].bytes.data(), mine.size());
    });
  }

  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const std::size_t block = mine.size() / group_->posts.size();
    check(theirs.size() == mine.size() && block * group_->posts.size() == mine.size(),
          "all_to_all: expected one equal block per rank");
    group_->run(rank_, {"all_to_all", 0, mine, what}, false, [&] {
      for (int r = 0; r < size(); ++r)
        copy_bytes(theirs.data() + r * block, group_->posts[r].bytes.data() + rank_ * block, block);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    check(color >= 0, "split: the color must not be negative");
    const std::array<int, 2> request{color, key};
    std::pair<std::shared_ptr<ThreadRanks>, int> child;
    group_->run(rank_, {"split", 0, std::as_bytes(std::span(request)), "splitting the group"},
                false, [&] { child = group_->children[rank_]; });
    return std::make_unique<ThreadRank>(std::move(child.first), child.second);
  }

  void abort(std::string_view why) noexcept override {
    const std::lock_guard lock(group_->world->mutex);
    group_->world->end(cat("rank ", name(), " ended: ", why), false);
  }

 private:
  void broadcast_bytes(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size(), "broadcast: the root is not a rank of the group");
    group_->run(rank_, {"broadcast", root, data, what}, idle,
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
  check(ranks >= 1, "ThreadGroup: expected at least one rank");
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
  check(rank >= 0 && rank < parts_->ranks->size(), "ThreadGroup: not a rank of the group");
  check(!parts_->given[rank], "ThreadGroup: the communicator of a rank is returned once");
  parts_->given[rank] = true;
  return std::make_unique<ThreadRank>(parts_->ranks, rank);
}

}  // namespace troupe::engine::parallel
