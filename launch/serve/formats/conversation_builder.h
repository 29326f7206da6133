// ConversationBuilder: collects the messages of a chat request from turns of other formats, where
// reasoning, text and calls of one turn of the assistant are separate items.
#pragma once

#include <optional>
#include <string>

#include "engine/base/json/json.h"

namespace troupe::launch::serve::formats {

class ConversationBuilder {
 public:
  /// A message of the system or the user. `content`: a text or a list of parts of type text.
  void add_message(const std::string& role, Json content);
  /// The result of a call, with more members for the template.
  void add_result(const std::string& call_id, Json content, Json::Object more = {});

  // What follows belongs to one message of the assistant as long as it can: reasoning, a text, and
  // calls.

  void add_reasoning(const std::string& text);
  /// A text behind calls continues the text before them.
  void add_text(const std::string& text);
  /// `arguments`: an object.
  void add_call(const std::string& id, const std::string& name, Json arguments);
  /// The next text, reasoning or call begins another message.
  void end_turn();

  bool empty() const { return messages_.empty() && !turn_; }
  /// Whether the last message is the assistant's.
  bool ends_with_assistant() const { return turn_ || last_is_assistant_; }
  Json take();

 private:
  struct Turn {
    std::string reasoning;
    std::optional<std::string> text;
    Json::Array calls;
  };
  Turn& turn();
  void push(Json message, bool of_assistant);

  Json::Array messages_;
  std::optional<Turn> turn_;
  bool last_is_assistant_ = false;
};

}  // namespace troupe::launch::serve::formats
