#include "engine/parallel/profiled_communicator.h"

#include <utility>

namespace troupe::engine::parallel {
namespace {

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
  std::unique_ptr<Communicator> split(int color, int key) override {
    return make_profiled(inner_->split(color, key), spans_);
  }
  void abort(std::string_view why) noexcept override { inner_->abort(why); }

 private:
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
