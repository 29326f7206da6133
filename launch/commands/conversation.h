// Conversation: the turns of a chat, and how many of them fit into the model's context.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::commands {

class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  void set_system(std::string text) { system_ = std::move(text); }
  void clear();
  /// Starts a turn with the user's text; answer() ends it, withdraw() removes it.
  void ask(std::string text);
  void answer(std::string text) { turns_.back().assistant = std::move(text); }
  void withdraw() { turns_.pop_back(); }

  /// Leaves out the oldest turns until the messages have at most `room` tokens; the system message
  /// and the last turn stay. `count` returns the number of tokens of a list of messages. Returns
  /// the number of turns left out by this call. Errc::bad_input when the last turn does not fit.
  Result<std::size_t> fit(const std::function<Result<std::size_t>(const Json& messages)>& count,
                          std::size_t room);

  /// Leaves out all turns but the last `earlier` ones and the one that was asked last.
  void limit(std::size_t earlier);

  /// Leaves out the oldest turn. False when the last turn is the only one left.
  bool leave_out_oldest();

  /// The messages without the turns that were left out: the model's input.
  Json messages() const { return messages_from(first_); }
  /// All messages.
  Json all() const { return messages_from(0); }
  bool empty() const { return turns_.empty(); }

 private:
  struct Turn {
    std::string user;
    std::optional<std::string> assistant;
  };
  Json messages_from(std::size_t first) const;

  std::string system_;
  std::vector<Turn> turns_;
  std::size_t first_ = 0;  // the first turn that is sent
};

}  // namespace troupe::launch::commands
