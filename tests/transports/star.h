// A hub and spokes in one process, and waiting for messages with a deadline.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "transports/zmq/hub.h"
#include "transports/zmq/spoke.h"

namespace troupe::transports {

/// Received values, added from any thread. wait_for(n) waits up to 20 s for n of them.
template <class T>
class Arrivals {
 public:
  void add(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// Returns the first `count` values; a Bug if they do not arrive.
  std::vector<T> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    check(
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return values_.size() >= count; }),
        "what was waited for did not come");
    return {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

/// Polls `done` for up to 20 s, for counters of other threads.
template <class Done>
bool becomes(const Done& done) {
  for (int i = 0; i < 20000; ++i) {
    if (done()) return true;
    usleep(1000);
  }
  return false;
}

struct StarOptions {
  std::vector<std::string> spokes{"one", "two"};
  bool tcp = false;
  LinkOptions link;
};

/// Nodes "hub" and each spoke's; none is attached or open yet.
struct Star {
  explicit Star(StarOptions star = {}) : options(std::move(star)), hub_keys(new_keys()) {
    static int count = 0;
    HubOptions given{
        "hub",
        {options.tcp ? "tcp://127.0.0.1:*" : cat("ipc://", testing::TempDir(), "star-", ++count)},
        hub_keys,
        {},
        link(hub_events)};
    for (const auto& spoke : options.spokes) {
      keys[spoke] = new_keys();
      given.spokes[keys[spoke].public_key] = spoke;
    }
    hub = value_or_throw(Hub::bind(std::move(given)));
    for (const auto& spoke : options.spokes) spokes[spoke] = make_spoke(spoke, keys[spoke]);
  }
  LinkOptions link(Arrivals<PeerEvent>& events) const {
    LinkOptions link = options.link;
    link.on_peer = [&events](const PeerEvent& event) { events.add(event); };
    return link;
  }
  std::unique_ptr<Spoke> make_spoke(const std::string& name, const KeyPair& own) {
    return value_or_throw(Spoke::create(
        {name, "hub", hub->endpoints()[0], own, hub_keys.public_key, link(spoke_events)}));
  }
  /// Attaches, opens and joins all nodes.
  void join() {
    hub->attach("hub", [this](Frame frame) { at_hub.add(std::move(frame)); });
    hub->open();
    for (auto& [name, spoke] : spokes) {
      spoke->attach(name, [this](Frame frame) { at_spokes.add(std::move(frame)); });
      spoke->open();
    }
    hub_events.wait_for(spokes.size());
    spoke_events.wait_for(spokes.size());
  }

  StarOptions options;
  KeyPair hub_keys;
  std::map<std::string, KeyPair> keys;
  Arrivals<PeerEvent> hub_events, spoke_events;
  Arrivals<Frame> at_hub, at_spokes;
  std::unique_ptr<Hub> hub;
  std::map<std::string, std::unique_ptr<Spoke>> spokes;
};

}  // namespace troupe::transports
