#include "engine/parallel/thread_group.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/blocks.h"
#include "engine/parallel/thread_ranks.h"

namespace troupe::engine::parallel {
namespace {

using Lengths = std::vector<std::size_t>;

Lengths copy_of(Counts counts) {
  return {counts.begin(), counts.end()};
}

class ThreadOperation final : public Operation {
 public:
  ThreadOperation(std::shared_ptr<ThreadRanks> group, ThreadRanks::Started exchange,
                  std::size_t index)
      : group_(std::move(group)), exchange_(std::move(exchange)), index_(index) {}
  void finish(std::optional<std::chrono::nanoseconds> deadline) override {
    group_->finish(*exchange_, index_, {.deadline = deadline});
  }
  void abandon(std::string_view why) noexcept override {
    group_->abandon(*exchange_, cat("rank ", exchange_->ranks[index_], ": ", why));
  }

 private:
  std::shared_ptr<ThreadRanks> group_;
  ThreadRanks::Started exchange_;
  std::size_t index_;
};

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
    check(all.size() == mine.size() * ranks(), "all_gather: `all` must hold one block per rank");
    run({.kind = ExchangeKind::all_gather,
         .bytes = mine,
         .into = all,
         .counts = Lengths(ranks(), mine.size()),
         .what = std::string(what),
         .blocking = true});
  }

  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const std::size_t block = mine.size() / ranks();
    check(theirs.size() == mine.size() && block * ranks() == mine.size(),
          "all_to_all: expected one equal block per rank");
    run({.kind = ExchangeKind::all_to_all,
         .bytes = mine,
         .into = theirs,
         .counts = Lengths(ranks(), block),
         .received = Lengths(ranks(), block),
         .what = std::string(what),
         .blocking = true});
  }

  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override {
    check(to >= 0 && to < size(), "send: not a rank of the group");
    return transfer(rank_, to, 0,
                    {.kind = ExchangeKind::transfer, .bytes = data, .what = std::string(what)});
  }

  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override {
    check(from >= 0 && from < size(), "receive: not a rank of the group");
    return transfer(from, rank_, 1,
                    {.kind = ExchangeKind::transfer, .into = data, .what = std::string(what)});
  }

  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override {
    check_all_gather(mine, all, counts, rank_, size(), what);
    return start({.kind = ExchangeKind::all_gather,
                  .bytes = mine,
                  .into = all,
                  .counts = copy_of(counts),
                  .what = std::string(what)});
  }

  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override {
    check_all_to_all(mine, sent, theirs, received, size(), what);
    return start({.kind = ExchangeKind::all_to_all,
                  .bytes = mine,
                  .into = theirs,
                  .counts = copy_of(sent),
                  .received = copy_of(received),
                  .what = std::string(what)});
  }

  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override {
    check_reduce_scatter(values, counts, part, rank_, size(), what);
    return start({.kind = ExchangeKind::reduce_scatter,
                  .bytes = std::as_bytes(values),
                  .into = std::as_writable_bytes(part),
                  .counts = copy_of(counts),
                  .what = std::string(what)});
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    check(color >= 0, "split: the color must not be negative");
    const std::array<int, 2> request{color, key};
    const auto exchange = run({.kind = ExchangeKind::split,
                               .bytes = std::as_bytes(std::span(request)),
                               .what = "splitting the group",
                               .blocking = true});
    const auto& [child, rank] = exchange->children[rank_];
    return std::make_unique<ThreadRank>(std::static_pointer_cast<ThreadRanks>(child), rank);
  }

  void abort(std::string_view why) noexcept override {
    const std::lock_guard lock(group_->world->mutex);
    group_->world->end(cat("rank ", name(), " ended: ", why), false);
  }

 private:
  void broadcast_bytes(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size(), "broadcast: the root is not a rank of the group");
    run({.kind = ExchangeKind::broadcast,
         .root = root,
         .bytes = data,
         .into = data,
         .what = std::string(what),
         .blocking = true},
        idle);
  }

  ThreadRanks::Started run(Post post, bool idle = false) {
    auto exchange = group_->start(rank_, std::move(post));
    group_->finish(*exchange, static_cast<std::size_t>(rank_), {.idle = idle});
    return exchange;
  }

  Pending start(Post post) {
    const std::string what = post.what;
    return pending(group_->start(rank_, std::move(post)), rank_, what);
  }

  Pending transfer(int from, int to, int index, Post post) {
    const std::string what = post.what;
    return pending(group_->start_transfer(from, to, index, std::move(post)), index, what);
  }

  Pending pending(ThreadRanks::Started exchange, int index, const std::string& what) {
    return {std::make_unique<ThreadOperation>(group_, std::move(exchange),
                                              static_cast<std::size_t>(index)),
            what};
  }

  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
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
  auto world = std::make_shared<ThreadWorld>();
  world->deadline = options.deadline;
  world->on_timeout = std::move(options.on_timeout);
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
