// Mailbox: what waits for one actor, in order of arrival. Bounded: a full one refuses, it never
// blocks the reader.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "transports/transport.h"

namespace troupe::actors {

class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {
    check(capacity > 0, "a mailbox holds at least one message");
  }
  /// False, and the frame is untouched, when it is full.
  bool push(transports::Frame& frame) {
    if (frames_.size() >= capacity_) return false;
    frames_.push_back(std::move(frame));
    return true;
  }
  std::optional<transports::Frame> pop() {
    if (frames_.empty()) return std::nullopt;
    std::optional<transports::Frame> first(std::move(frames_.front()));
    frames_.pop_front();
    return first;
  }
  std::size_t size() const { return frames_.size(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::deque<transports::Frame> frames_;
};

}  // namespace troupe::actors
