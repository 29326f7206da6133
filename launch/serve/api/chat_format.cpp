#include "launch/serve/api/chat_format.h"

#include <utility>

namespace troupe::launch::serve::api {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// Replaces a name where it stands alone or has members.
std::string replaced(std::string text, const FieldName& name) {
  for (std::size_t at = text.find(name.chat); at != std::string::npos;
       at = text.find(name.chat, at)) {
    const std::size_t end = at + name.chat.size();
    const bool alone = (at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '.')) &&
                       (end == text.size() || !is_word(text[end]));
    if (alone) text.replace(at, name.chat.size(), name.own);
    at += alone ? name.own.size() : 1;
  }
  return text;
}

}  // namespace

ApiFailure renamed(const ApiFailure& failure, std::span<const FieldName> names) {
  http::ErrorBody error = failure.error();
  for (const FieldName& name : names) {
    error.param = replaced(std::move(error.param), name);
    error.message = replaced(std::move(error.message), name);
  }
  return ApiFailure(failure.status(), std::move(error));
}

}  // namespace troupe::launch::serve::api
