// Tests of actors as transcripts (after CAF's deterministic fixture): frames are held until the
// test names the one that it expects, its sender and its receiver; then exactly that one is
// delivered and everything runs until nothing is ready.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "actors/runtime/virtual_scheduler.h"
#include "transports/transport.h"

namespace troupe::test {

/// A transport that holds frames.
class HeldFrames final : public transports::Transport {
 public:
  std::uint64_t attach(const std::string& node, transports::Receiver receive) override {
    receivers_[node] = std::move(receive);
    return ++incarnations_;
  }
  void detach(const std::string& node) override { receivers_.erase(node); }
  Result<> send(transports::Frame frame) override {
    held.push_back(std::move(frame));
    return {};
  }
  void deliver(transports::Frame frame) {
    const auto receiver = receivers_.find(frame.to.node);
    if (receiver != receivers_.end()) receiver->second(std::move(frame));
  }
  std::deque<transports::Frame> held;

 private:
  std::map<std::string, transports::Receiver> receivers_;
  std::uint64_t incarnations_ = 0;
};

class Transcript : public ::testing::Test {
 protected:
  /// `expect("request generate").from("main").to("main/rollout");` the kind, then the message's
  /// name.
  class Expectation {
   public:
    Expectation(Transcript& test, std::string what) : test_(test), what_(std::move(what)) {}
    Expectation& from(std::string sender) {
      from_ = std::move(sender);
      return *this;
    }
    void to(const std::string& receiver) {
      test_.scheduler.run_ready();
      ASSERT_FALSE(test_.network.held.empty())
          << "expected '" << what_ << "', but nothing was sent";
      transports::Frame frame = std::move(test_.network.held.front());
      test_.network.held.pop_front();
      static const char* kinds[] = {"request", "reply", "error"};
      EXPECT_EQ(std::string(kinds[static_cast<int>(frame.kind)]) + " " + frame.type, what_);
      EXPECT_EQ(to_string(frame.from), from_);
      EXPECT_EQ(to_string(frame.to), receiver);
      test_.network.deliver(std::move(frame));
      test_.scheduler.run_ready();
    }

   private:
    Transcript& test_;
    std::string what_, from_;
  };

  Expectation expect(std::string what) { return {*this, std::move(what)}; }
  void expect_silence() {
    scheduler.run_ready();
    EXPECT_TRUE(network.held.empty()) << "'" << network.held.front().type << "' was sent to "
                                      << to_string(network.held.front().to);
  }

  actors::VirtualScheduler scheduler;
  HeldFrames network;
};

}  // namespace troupe::test
