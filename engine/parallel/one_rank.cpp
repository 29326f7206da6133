#include "engine/parallel/one_rank.h"

#include <cstring>
#include <deque>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"
#include "engine/parallel/blocks.h"

namespace troupe::engine::parallel {

/// A message from the rank to itself. Both sides are copied when one of them waits.
struct OneRank::Message {
  std::span<const std::byte> from = {};
  std::span<std::byte> to = {};
  std::string sent = {}, received = {};  ///< names; empty: this side was not started
  bool done = false;
};

struct OneRank::State {
  std::string abort_message;                  // empty: not aborted
  std::deque<std::shared_ptr<Message>> open;  // messages with one side

  void enter(std::string_view what) const {
    if (!abort_message.empty())
      throw Failure(Error{Errc::closed, cat("'", what, "': ", abort_message)});
  }
};

namespace {

void copy_span(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
}

/// A message, or a copy that was already made (`message` nullptr).
class LocalOperation final : public Operation {
 public:
  LocalOperation(std::shared_ptr<OneRank::State> state, std::shared_ptr<OneRank::Message> message,
                 std::string_view what)
      : state_(std::move(state)), message_(std::move(message)), what_(what) {}

  void finish(std::optional<std::chrono::nanoseconds>) override {
    state_->enter(what_);
    if (!message_ || message_->done) return;
    if (message_->sent.empty() || message_->received.empty())
      throw Failure(
          Error{Errc::timeout, cat("'", what_, "': rank 0 waits for itself, and did not start the ",
                                   message_->sent.empty() ? "send" : "receive")});
    copy_span(message_->from, message_->to);
    message_->done = true;
  }
  void abandon(std::string_view why) noexcept override {
    state_->abort_message = cat("rank 0: ", why);
  }

 private:
  std::shared_ptr<OneRank::State> state_;
  std::shared_ptr<OneRank::Message> message_;
  std::string what_;
};

}  // namespace

OneRank::OneRank() : state_(std::make_shared<State>()) {
}

Pending OneRank::start_copy(std::span<const std::byte> from, std::span<std::byte> to,
                            std::string_view what) {
  state_->enter(what);
  copy_span(from, to);
  return {std::make_unique<LocalOperation>(state_, nullptr, what), what};
}

Pending OneRank::start_message(bool sends, Message side, std::string_view what) {
  state_->enter(what);
  auto& open = state_->open;
  auto message = std::make_shared<Message>(std::move(side));
  // All open messages lack the same side.
  if (!open.empty() && (sends ? open.front()->sent : open.front()->received).empty()) {
    const auto other = open.front();
    open.pop_front();
    (sends ? other->sent : other->received) = what;
    if (sends)
      other->from = message->from;
    else
      other->to = message->to;
    check(other->from.size() == other->to.size() && other->sent == other->received,
          cat("the ranks' calls do not match: rank 0 calls send of ", other->from.size(),
              " bytes ('", other->sent, "'), rank 0 calls receive of ", other->to.size(),
              " bytes ('", other->received, "')"));
    message = other;
  } else {
    open.push_back(message);
  }
  return {std::make_unique<LocalOperation>(state_, message, what), what};
}

Pending OneRank::start_send(std::span<const std::byte> data, int to, std::string_view what) {
  check(to == 0, "send: not a rank of the group");
  return start_message(true, {.from = data, .sent = std::string(what)}, what);
}

Pending OneRank::start_receive(std::span<std::byte> data, int from, std::string_view what) {
  check(from == 0, "receive: not a rank of the group");
  return start_message(false, {.to = data, .received = std::string(what)}, what);
}

Pending OneRank::start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                  Counts counts, std::string_view what) {
  check_all_gather(mine, all, counts, 0, 1, what);
  return start_copy(mine, all, what);
}

Pending OneRank::start_all_to_all(std::span<const std::byte> mine, Counts sent,
                                  std::span<std::byte> theirs, Counts received,
                                  std::string_view what) {
  check_all_to_all(mine, sent, theirs, received, 1, what);
  check(mine.size() == theirs.size(), "all_to_all: the counts of a rank with itself differ");
  return start_copy(mine, theirs, what);
}

Pending OneRank::start_reduce_scatter(std::span<const float> values, Counts counts,
                                      std::span<float> part, std::string_view what) {
  check_reduce_scatter(values, counts, part, 0, 1, what);
  return start_copy(std::as_bytes(values), std::as_writable_bytes(part), what);
}

void OneRank::broadcast(std::span<std::byte>, int root, std::string_view what) {
  check(root == 0, "broadcast: the root is not a rank of the group");
  state_->enter(what);
}

void OneRank::broadcast_idle(std::span<std::byte> data, int root, std::string_view what) {
  broadcast(data, root, what);
}

void OneRank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                         std::string_view what) {
  check(all.size() == mine.size(), "all_gather: `all` must hold one block per rank");
  state_->enter(what);
  copy_span(mine, all);
}

void OneRank::all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                         std::string_view what) {
  all_gather(mine, theirs, what);
}

std::unique_ptr<Communicator> OneRank::split(int color, int) {
  check(color >= 0, "split: the color must not be negative");
  state_->enter("splitting the group");
  return std::make_unique<OneRank>();
}

void OneRank::abort(std::string_view why) noexcept {
  state_->abort_message = cat("rank 0 ended: ", why);
}

}  // namespace troupe::engine::parallel
