#include "launch/serve/formats/conversation_builder.h"

#include <utility>

namespace troupe::launch::serve::formats {

void ConversationBuilder::push(Json message, bool of_assistant) {
  messages_.push_back(std::move(message));
  last_is_assistant_ = of_assistant;
}

ConversationBuilder::Turn& ConversationBuilder::turn() {
  if (!turn_) turn_.emplace();
  return *turn_;
}

void ConversationBuilder::end_turn() {
  if (!turn_) return;
  Turn turn = std::move(*turn_);
  turn_.reset();
  Json message = Json::Object{{"role", "assistant"}};
  if (!turn.reasoning.empty()) message.set("reasoning_content", std::move(turn.reasoning));
  message.set("content", turn.text ? Json(std::move(*turn.text)) : Json());
  if (!turn.calls.empty()) message.set("tool_calls", std::move(turn.calls));
  push(std::move(message), true);
}

void ConversationBuilder::add_message(const std::string& role, Json content) {
  end_turn();
  push(Json::Object{{"role", role}, {"content", std::move(content)}}, false);
}

void ConversationBuilder::add_result(const std::string& call_id, Json content, Json::Object more) {
  end_turn();
  Json message =
      Json::Object{{"role", "tool"}, {"tool_call_id", call_id}, {"content", std::move(content)}};
  for (auto& [name, value] : more) message.set(name, std::move(value));
  push(std::move(message), false);
}

void ConversationBuilder::add_reasoning(const std::string& text) {
  if (turn_ && (turn_->text || !turn_->calls.empty())) end_turn();
  turn().reasoning += text;
}

void ConversationBuilder::add_text(const std::string& text) {
  if (turn_ && turn_->text && turn_->calls.empty()) end_turn();
  Turn& now = turn();
  now.text = now.text.value_or("") + text;
}

void ConversationBuilder::add_call(const std::string& id, const std::string& name, Json arguments) {
  Json function = Json::Object{{"name", name}, {"arguments", std::move(arguments)}};
  turn().calls.push_back(
      Json::Object{{"id", id}, {"type", "function"}, {"function", std::move(function)}});
}

Json ConversationBuilder::take() {
  end_turn();
  return std::exchange(messages_, {});
}

}  // namespace troupe::launch::serve::formats
