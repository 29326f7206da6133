#include "tests/support/hostile.h"

#include <thread>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"

namespace troupe::engine::parallel {
namespace {

using Lengths = std::vector<std::size_t>;

struct State {
  HostileOptions options;
  std::int64_t calls = 0;
  std::uint64_t random_draws = 0;
};

/// An operation that may start later than its call.
struct Deferred {
  std::function<Pending()> start;
  Pending inner = {};
  bool started = false;

  void begin() {
    if (!std::exchange(started, true)) inner = start();
  }
};

class HostileOperation final : public Operation {
 public:
  HostileOperation(std::shared_ptr<Deferred> deferred, std::function<void()> pause)
      : deferred_(std::move(deferred)), pause_(std::move(pause)) {}
  void finish(std::optional<std::chrono::nanoseconds> deadline) override {
    pause_();
    deferred_->begin();
    deferred_->inner.wait(deadline);
    pause_();
  }
  void abandon(std::string_view) noexcept override { deferred_->inner = {}; }

 private:
  std::shared_ptr<Deferred> deferred_;
  std::function<void()> pause_;
};

/// The counts with one less for the last rank that has any. Errors of the test itself are a Bug.
Lengths shortened(Counts counts) {
  Lengths less(counts.begin(), counts.end());
  std::size_t i = less.size();
  while (i > 0 && less[i - 1] == 0) --i;
  check(i > 0, "Hostile: an operation without data cannot be shortened");
  --less[i - 1];
  return less;
}

class Hostile final : public Communicator {
 public:
  Hostile(std::unique_ptr<Communicator> group, std::shared_ptr<State> state)
      : group_(std::move(group)), state_(std::move(state)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void broadcast(std::span<std::byte> data, int root, std::string_view what) override {
    before();
    group_->broadcast(data, root, what);
    pause();
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    before();
    group_->all_gather(mine, all, what);
    pause();
  }
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    before();
    group_->all_to_all(mine, theirs, what);
    pause();
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    before();
    group_->broadcast_idle(data, root, what);
    pause();
  }
  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override {
    const auto sent = before() ? data.first(data.size() - 1) : data;
    return start(what,
                 [=, this](std::string_view name) { return group_->start_send(sent, to, name); });
  }
  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override {
    const auto received = before() ? data.first(data.size() - 1) : data;
    return start(what, [=, this](std::string_view name) {
      return group_->start_receive(received, from, name);
    });
  }
  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override {
    Lengths lengths(counts.begin(), counts.end());
    if (before()) {
      --lengths[static_cast<std::size_t>(rank())];
      mine = mine.first(mine.size() - 1);
      all = all.first(all.size() - 1);
    }
    return start(what, [=, this](std::string_view name) {
      return group_->start_all_gather(mine, all, lengths, name);
    });
  }
  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override {
    Lengths lengths(sent.begin(), sent.end()), expected(received.begin(), received.end());
    if (before()) {
      lengths = shortened(sent);
      mine = mine.first(mine.size() - 1);
    }
    return start(what, [=, this](std::string_view name) {
      return group_->start_all_to_all(mine, lengths, theirs, expected, name);
    });
  }
  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override {
    Lengths lengths(counts.begin(), counts.end());
    if (before()) {
      lengths = shortened(counts);
      values = values.first(values.size() - 1);
      part = part.first(lengths[static_cast<std::size_t>(rank())]);
    }
    return start(what, [=, this](std::string_view name) {
      return group_->start_reduce_scatter(values, lengths, part, name);
    });
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    before();
    return std::make_unique<Hostile>(group_->split(color, key), state_);
  }
  void abort(std::string_view why) noexcept override { group_->abort(why); }

 private:
  /// Returns whether this call has a wrong length.
  bool before() {
    call_ = state_->calls++;
    if (call_ == state_->options.fail_at) throw Failure(state_->options.failure);
    if (call_ == state_->options.stall_at) state_->options.stall();
    pause();
    return call_ == state_->options.shorten_at;
  }
  void pause() {
    if (state_->options.max_yields <= 0) return;
    auto yields = uniform_below(state_->options.max_yields + 1ULL, state_->options.seed,
                                group_->rank(), state_->random_draws++);
    for (; yields > 0; --yields) std::this_thread::yield();
  }

  template <class Start>
  Pending start(std::string_view what, const Start& begin) {
    const auto operation = std::make_shared<Deferred>();
    if (call_ == state_->options.lose_at)
      operation->start = [this, name = std::string(what)] {  // nothing answers this
        return group_->start_receive({}, rank(), name);
      };
    else
      operation->start = [begin, name = std::string(what)] { return begin(name); };
    if (call_ == state_->options.swap_at) {
      held_back_ = operation;
    } else {
      operation->begin();
      if (const auto earlier = std::exchange(held_back_, nullptr)) earlier->begin();
    }
    return {std::make_unique<HostileOperation>(operation, [this] { pause(); }), what};
  }

  std::unique_ptr<Communicator> group_;
  std::shared_ptr<State> state_;
  std::int64_t call_ = 0;
  std::shared_ptr<Deferred> held_back_;
};

}  // namespace

std::unique_ptr<Communicator> make_hostile(std::unique_ptr<Communicator> group,
                                           HostileOptions options) {
  return std::make_unique<Hostile>(std::move(group),
                                   std::make_shared<State>(State{std::move(options)}));
}

}  // namespace troupe::engine::parallel
