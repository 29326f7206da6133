#include "engine/parallel/thread_ranks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/hangs/rank_wait.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"

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

/// The ranks whose part has not run.
std::string ThreadRanks::copying(const Exchange& exchange) const {
  std::vector<std::string> ranks;
  for (std::size_t i = 0; i < exchange.ranks.size(); ++i)
    if (exchange.parts[i] != Exchange::Part::done)
      ranks.push_back(std::to_string(exchange.ranks[i]));
  return cat(ranks.size() == 1 ? "rank " : "ranks ", join(ranks, ", "));
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

/// Waits for `decided`; false at the deadline. Warns if `ranks`, which it waits for, hang.
bool ThreadRanks::wait_and_watch(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                                 std::size_t index, std::chrono::nanoseconds deadline,
                                 const std::function<bool()>& decided,
                                 const std::function<std::string()>& ranks) {
  static const progress::WaitReports reports = progress::wait_reports();
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now(), end = begin + deadline;
  progress::RankWait wait(reports, progress::warn_after(), exchange.ranks[index],
                          exchange.posts[index].what, begin);
  while (!changed.wait_until(lock, std::min<Clock::time_point>(end, wait.next()), decided)) {
    if (Clock::now() >= end) return false;
    wait.look(ranks(), progress::total_pieces(), Clock::now());
  }
  return true;
}

void ThreadRanks::time_out(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                           std::size_t index, std::chrono::nanoseconds deadline) {
  const std::string& what = exchange.posts[index].what;
  const double seconds = std::chrono::duration<double>(deadline).count();
  const auto waited = cat("waited ", to_text(seconds), " s for ", missing(exchange, false), " of ",
                          exchange.ranks.size());
  world->end(cat("rank ", exchange.ranks[index], " timed out in '", what, "': it ", waited), false);
  const auto why = cat("'", what, "': ", waited, ", which neither arrived nor aborted");
  if (world->on_timeout) {
    lock.unlock();
    world->on_timeout(why);
    lock.lock();
  }
  throw Failure(Error{Errc::timeout, why});
}

void ThreadRanks::wait_for_all(std::unique_lock<std::mutex>& lock, Exchange& exchange,
                               std::size_t index, WaitLimit limit) {
  const auto decided = [&] { return exchange.all_here() || ended || any_rank_left(exchange); };
  const auto deadline = limit.deadline.value_or(world->deadline);
  if (limit.idle) {
    changed.wait(lock, decided);
  } else if (!wait_and_watch(lock, exchange, index, deadline, decided,
                             [&] { return missing(exchange, false); })) {
    time_out(lock, exchange, index, deadline);
  }
  if (exchange.all_here()) return;  // first: other ranks read this rank's memory now
  if (!ended) {
    ended = cat(missing(exchange, true), " left the group");
    changed.notify_all();
  }
  throw_if_ended(exchange.posts[index].what);
}

/// The other ranks only copy and add: this wait ends, even when the group is aborted, unless the
/// thread of another rank hangs. Their parts cannot be taken back, so it throws nothing.
void ThreadRanks::wait_for_copies(std::unique_lock<std::mutex>& lock, const Exchange& exchange,
                                  std::size_t index, WaitLimit limit) {
  const auto over = [&] {
    return exchange.complete() || (exchange.dropped && exchange.running == 0);
  };
  const auto deadline = limit.deadline.value_or(world->deadline);
  const auto ranks = [&] { return copying(exchange); };
  if (wait_and_watch(lock, exchange, index, deadline, over, ranks)) return;
  if (world->on_timeout) {
    const double seconds = std::chrono::duration<double>(deadline).count();
    const auto why =
        cat("'", exchange.posts[index].what, "': waited ", to_text(seconds), " s for ", ranks(),
            " of ", exchange.ranks.size(), ", which arrived but does not copy");
    lock.unlock();
    world->on_timeout(why);
    lock.lock();
  }
  changed.wait(lock, over);
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
    wait_for_copies(lock, exchange, index, limit);
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
