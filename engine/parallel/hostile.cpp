#include "engine/parallel/hostile.h"

#include <thread>

#include "engine/base/random.h"

namespace troupe::engine::parallel {
namespace {

struct State {
  HostileOptions options;
  std::int64_t calls = 0;
  std::uint64_t random_draws = 0;
};

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
  std::unique_ptr<Communicator> split(int color, int key) override {
    before();
    return std::make_unique<Hostile>(group_->split(color, key), state_);
  }
  void abort(std::string_view why) noexcept override { group_->abort(why); }

 private:
  void before() {
    const auto call = state_->calls++;
    if (call == state_->options.fail_at) throw Failure(state_->options.failure);
    if (call == state_->options.stall_at) state_->options.stall();
    pause();
  }
  void pause() {
    if (state_->options.max_yields <= 0) return;
    auto yields = uniform_below(state_->options.max_yields + 1ULL, state_->options.seed,
                                group_->rank(), state_->random_draws++);
    for (; yields > 0; --yields) std::this_thread::yield();
  }

  std::unique_ptr<Communicator> group_;
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Communicator> make_hostile(std::unique_ptr<Communicator> group,
                                           HostileOptions options) {
  return std::make_unique<Hostile>(std::move(group),
                                   std::make_shared<State>(State{std::move(options)}));
}

}  // namespace troupe::engine::parallel
