#include "launch/commands/conversation.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::commands {

namespace {

Json message(const char* role, const std::string& content) {
  return Json::Object{{"role", role}, {"content", content}};
}

}  // namespace

void Conversation::clear() {
  turns_.clear();
  first_ = 0;
}

void Conversation::ask(std::string text) {
  turns_.push_back({std::move(text), std::nullopt});
}

Result<std::size_t> Conversation::fit(
    const std::function<Result<std::size_t>(const Json& messages)>& count, std::size_t room) {
  const std::size_t before = first_;
  for (std::size_t left_out = 0;; ++left_out) {
    const auto tokens = count(messages());
    RETURN_IF_ERROR(tokens);
    if (*tokens <= room) return left_out;
    if (first_ + 1 >= turns_.size()) {
      first_ = before;
      return fail(Errc::bad_input,
                  cat("the message and the system message have ", *tokens,
                      " tokens; the model has room for ", room, " and a reply; shorten it"));
    }
    ++first_;
  }
}

void Conversation::limit(std::size_t earlier) {
  if (turns_.size() > earlier + 1) first_ = std::max(first_, turns_.size() - earlier - 1);
}

bool Conversation::leave_out_oldest() {
  if (first_ + 1 >= turns_.size()) return false;
  ++first_;
  return true;
}

Json Conversation::messages_from(std::size_t first) const {
  Json::Array out;
  if (!system_.empty()) out.push_back(message("system", system_));
  for (std::size_t i = first; i < turns_.size(); ++i) {
    out.push_back(message("user", turns_[i].user));
    if (turns_[i].assistant) out.push_back(message("assistant", *turns_[i].assistant));
  }
  return out;
}

}  // namespace troupe::launch::commands
