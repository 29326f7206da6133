// FairQueue: sequences that wait for the generator, taken from the clients in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::engine::serving {

/// Each client has a queue; pop() takes from the queues in turn, so that a client with many entries
/// delays the others by at most one entry each.
template <class Entry>
class FairQueue {
 public:
  void push(const std::string& client, Entry entry) {
    auto found = std::ranges::find(clients_, client, &Client::name);
    if (found == clients_.end()) {
      clients_.push_back({client, {}});
      found = std::prev(clients_.end());
    }
    found->entries.push_back(std::move(entry));
    ++size_;
  }

  /// The queue must not be empty.
  Entry pop() {
    Client next = std::move(clients_.front());
    clients_.pop_front();
    Entry entry = std::move(next.entries.front());
    next.entries.pop_front();
    if (!next.entries.empty()) clients_.push_back(std::move(next));
    --size_;
    return entry;
  }

  /// Removes and returns the entries for which `wanted` is true.
  template <class Wanted>
  std::vector<Entry> take_if(Wanted wanted) {
    std::vector<Entry> taken;
    for (Client& client : clients_) {
      std::deque<Entry> kept;
      for (Entry& entry : client.entries) {
        if (wanted(std::as_const(entry)))
          taken.push_back(std::move(entry));
        else
          kept.push_back(std::move(entry));
      }
      client.entries = std::move(kept);
    }
    std::erase_if(clients_, [](const Client& client) { return client.entries.empty(); });
    size_ -= taken.size();
    return taken;
  }

  /// Errc::full where `limit` entries may wait and `more` are too many.
  Result<> check_room(std::size_t more, std::size_t limit) const {
    if (size_ + more <= limit) return {};
    return fail(Errc::full, cat(size_, " sequences wait, and the request has ", more, "; at most ",
                                limit, " may wait; try again later"));
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Client {
    std::string name;
    std::deque<Entry> entries;
  };
  std::deque<Client> clients_;  // with entries, in the order of their turns
  std::size_t size_ = 0;
};

}  // namespace troupe::engine::serving
