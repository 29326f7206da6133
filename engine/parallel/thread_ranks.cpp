#include "engine/parallel/thread_ranks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

namespace troupe::engine::parallel {

void ThreadWorld::take(int name) {
  const std::lock_guard lock(mutex);
  ++held[name];
}

void ThreadWorld::drop(int name) {
  const std::lock_guard lock(mutex);
  if (--held[name] > 0) return;
  left[name] = true;
  for (const auto& weak : groups)
    if (const auto group = weak.lock()) group->changed.notify_all();
}

void ThreadWorld::end(const std::string& message, bool bug) {
  for (const auto& weak : groups) {
    const auto group = weak.lock();
    if (!group || group->ended) continue;
    group->ended = message;
    group->bug = bug;
    group->changed.notify_all();
  }
}

ThreadRanks::ThreadRanks(std::shared_ptr<ThreadWorld> of, std::vector<int> ranks)
    : world(std::move(of)), names(std::move(ranks)), next_(names.size()) {
}

void ThreadRanks::throw_if_ended(std::string_view what) const {
  if (!ended) return;
  if (bug) throw Bug(*ended);
  throw Failure(Error{Errc::closed, cat("'", what, "': ", *ended)});
}

bool ThreadRanks::any_rank_left(const Exchange& exchange) const {
  for (std::size_t i = 0; i < exchange.ranks.size(); ++i)
    if (world->left[exchange.ranks[i]] && !exchange.here[i]) return true;
  return false;
}

/// The ranks that have not started the operation: "rank 2" or "ranks 1, 3".
std::string ThreadRanks::missing(const Exchange& exchange, bool only_left) const {
  std::vector<std::string> ranks;
  for (std::size_t i = 0; i < exchange.ranks.size(); ++i)
    if (!exchange.here[i] && (!only_left || world->left[exchange.ranks[i]]))
      ranks.push_back(std::to_string(exchange.ranks[i]));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, ", "));
}

/// Creates the groups of a split; the last rank to arrive does it for all.
void ThreadRanks::make_children(Exchange& exchange) {
  struct Request {
    int color, key, rank;
  };
  std::vector<Request> requests;
  for (int r = 0; r < size(); ++r) {
    std::array<int, 2> pair{};
    std::memcpy(pair.data(), exchange.posts[r].bytes.data(), sizeof pair);
    requests.push_back({pair[0], pair[1], r});
  }
  std::sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) {
    return std::tie(a.color, a.key, a.rank) < std::tie(b.color, b.key, b.rank);
  });
  exchange.children.assign(requests.size(), {});
  std::erase_if(world->groups, [](const auto& group) { return group.expired(); });
  for (std::size_t first = 0; first < requests.size();) {
    std::size_t last = first;
    std::vector<int> members;
    for (; last < requests.size() && requests[last].color == requests[first].color; ++last)
      members.push_back(names[requests[last].rank]);
    const auto child = std::make_shared<ThreadRanks>(world, std::move(members));
    world->groups.push_back(child);
    for (std::size_t i = first; i < last; ++i)
      exchange.children[requests[i].rank] = {child, static_cast<int>(i - first)};
    first = last;
  }
}

void ThreadRanks::add(Exchange& exchange, std::size_t index, Post post) {
  const ExchangeKind kind = post.kind;
  exchange.arrive(index, std::move(post));
  if (!exchange.all_here()) return;
  if (const std::string found = exchange.contradiction(); !found.empty()) {
    exchange.dropped = true;
    world->end(
        cat("the ranks' calls do not match: ", found, " (a bug in troupe, not in your input)"),
        true);
  }
  throw_if_ended(exchange.posts[index].what);
  if (kind == ExchangeKind::split) make_children(exchange);
  changed.notify_all();
}

ThreadRanks::Started ThreadRanks::start(int rank, Post post) {
  const std::lock_guard lock(world->mutex);
  throw_if_ended(post.what);
  const std::uint64_t number = next_[rank]++;
  if (number - first_ == open_.size()) open_.push_back(std::make_shared<Exchange>(names));
  const Started exchange = open_[number - first_];
  add(*exchange, static_cast<std::size_t>(rank), std::move(post));
  if (exchange->all_here()) {  // operations are completed in their order
    open_.pop_front();
    ++first_;
  }
  return exchange;
}

ThreadRanks::Started ThreadRanks::start_transfer(int from, int to, int index, Post post) {
  const std::lock_guard lock(world->mutex);
  throw_if_ended(post.what);
  auto& open = transfers_[{from, to}];
  const auto side = static_cast<std::size_t>(index);
  // Either only senders wait here, or only receivers.
  if (!open.empty() && !open.front()->here[side]) {
    const Started exchange = open.front();
    open.pop_front();
    add(*exchange, side, std::move(post));
    return exchange;
  }
  open.push_back(std::make_shared<Exchange>(std::vector<int>{names[from], names[to]}));
  add(*open.back(), side, std::move(post));
  return open.back();
}

void ThreadRanks::wait_for_all(std::unique_lock<std::mutex>& lock, Exchange& exchange,
                               std::size_t index, WaitLimit limit) {
  const auto decided = [&] { return exchange.all_here() || ended || any_rank_left(exchange); };
  const auto deadline = limit.deadline.value_or(world->deadline);
  const std::string& what = exchange.posts[index].what;
  if (limit.idle) {
    changed.wait(lock, decided);
  } else if (!changed.wait_for(lock, deadline, decided)) {
    const double seconds = std::chrono::duration<double>(deadline).count();
    const auto waited = cat("waited ", to_text(seconds), " s for ", missing(exchange, false),
                            " of ", exchange.ranks.size());
    world->end(cat("rank ", exchange.ranks[index], " timed out in '", what, "': it ", waited),
               false);
    throw Failure(
        Error{Errc::timeout, cat("'", what, "': ", waited, ", which neither arrived nor aborted")});
  }
  if (exchange.all_here()) return;  // first: other ranks read this rank's memory now
  if (!ended) {
    ended = cat(missing(exchange, true), " left the group");
    changed.notify_all();
  }
  throw_if_ended(what);
}

void ThreadRanks::finish(Exchange& exchange, std::size_t index, WaitLimit limit) {
  std::unique_lock lock(world->mutex);
  exchange.waits[index] = 1;
  wait_for_all(lock, exchange, index, limit);
  for (;;) {
    if (const int part = exchange.next_part(index); part >= 0) {
      exchange.parts[part] = Exchange::Part::running;
      ++exchange.running;
      lock.unlock();
      exchange.run_part(static_cast<std::size_t>(part));
      lock.lock();
      exchange.parts[part] = Exchange::Part::done;
      --exchange.running;
      if (++exchange.finished == exchange.posts.size() || exchange.dropped) changed.notify_all();
      continue;
    }
    if (exchange.complete()) return;
    if (exchange.dropped && exchange.running == 0) throw_if_ended(exchange.posts[index].what);
    // The other ranks only copy and add: this wait always ends, even when the group is aborted.
    changed.wait(
        lock, [&] { return exchange.complete() || (exchange.dropped && exchange.running == 0); });
  }
}

void ThreadRanks::abandon(Exchange& exchange, const std::string& why) {
  std::unique_lock lock(world->mutex);
  world->end(why, true);
  exchange.dropped = true;
  changed.notify_all();
  changed.wait(lock, [&] { return exchange.running == 0; });
}

}  // namespace troupe::engine::parallel
