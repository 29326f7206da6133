#include "engine/parallel/profiled_communicator.h"

#include <algorithm>
#include <utility>

namespace troupe::engine::parallel {
namespace {

/// The span covers the wait. The time between the start and the wait overlaps other work.
class ProfiledOperation final : public Operation {
 public:
  ProfiledOperation(Pending inner, Spans& spans, std::string_view wait_name)
      : inner_(std::move(inner)), spans_(spans), wait_name_(wait_name) {}
  void finish(std::optional<std::chrono::nanoseconds> deadline) override {
    const ScopedSpan span(&spans_, [&] {
      return SpanStart{SpanKind::communication, wait_name_, {}, inner_.what()};
    });
    inner_.wait(deadline);
  }
  void abandon(std::string_view) noexcept override { inner_ = {}; }

 private:
  Pending inner_;
  Spans& spans_;
  std::string_view wait_name_;
};

class Profiled final : public Communicator {
 public:
  Profiled(std::unique_ptr<Communicator> inner, Spans& spans)
      : inner_(std::move(inner)), spans_(spans) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void broadcast(std::span<std::byte> data, int root, std::string_view what) override {
    const ScopedSpan span(&spans_, [&] { return start("broadcast", data.size(), what); });
    inner_->broadcast(data, root, what);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    const ScopedSpan span(&spans_,
                          [&] { return start("all_gather", all.size() - mine.size(), what); });
    inner_->all_gather(mine, all, what);
  }
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const ScopedSpan span(&spans_, [&] {
      return start("all_to_all", mine.size() - mine.size() / static_cast<std::size_t>(size()),
                   what);
    });
    inner_->all_to_all(mine, theirs, what);
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    const ScopedSpan span(&spans_, [&] { return start("broadcast_idle", data.size(), what); });
    inner_->broadcast_idle(data, root, what);
  }
  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override {
    return started("start_send", "wait_send", data.size(), what,
                   [&] { return inner_->start_send(data, to, what); });
  }
  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override {
    return started("start_receive", "wait_receive", data.size(), what,
                   [&] { return inner_->start_receive(data, from, what); });
  }
  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override {
    return started("start_all_gather", "wait_all_gather", all.size() - mine.size(), what,
                   [&] { return inner_->start_all_gather(mine, all, counts, what); });
  }
  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override {
    const std::size_t bytes = std::max(mine.size(), theirs.size());
    return started("start_all_to_all", "wait_all_to_all", bytes, what,
                   [&] { return inner_->start_all_to_all(mine, sent, theirs, received, what); });
  }
  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override {
    const std::size_t bytes = values.size_bytes() - part.size_bytes();
    return started("start_reduce_scatter", "wait_reduce_scatter", bytes, what,
                   [&] { return inner_->start_reduce_scatter(values, counts, part, what); });
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return make_profiled(inner_->split(color, key), spans_);
  }
  void abort(std::string_view why) noexcept override { inner_->abort(why); }

 private:
  /// Starts an operation within a span of its own, which has the bytes.
  template <class Start>
  Pending started(std::string_view name, std::string_view wait_name, std::size_t bytes,
                  std::string_view what, const Start& begin) {
    const ScopedSpan span(&spans_, [&] { return start(name, bytes, what); });
    return {std::make_unique<ProfiledOperation>(begin(), spans_, wait_name), what};
  }

  static SpanStart start(std::string_view name, std::size_t bytes, std::string_view what) {
    return {
        SpanKind::communication, name, {.bytes = static_cast<double>(bytes)}, std::string(what)};
  }

  std::unique_ptr<Communicator> inner_;
  Spans& spans_;
};

}  // namespace

std::unique_ptr<Communicator> make_profiled(std::unique_ptr<Communicator> inner, Spans& spans) {
  return std::make_unique<Profiled>(std::move(inner), spans);
}

}  // namespace troupe::engine::parallel
