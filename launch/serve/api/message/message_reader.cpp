#include "launch/serve/api/message/message_reader.h"

#include <utility>

namespace troupe::launch::serve::api {

namespace {

constexpr std::string_view think = "<think>", think_end = "</think>";

constexpr std::pair<std::string_view, ReasoningFormat> reasoning_formats[] = {
    {"deepseek_r1", ReasoningFormat::deepseek_r1}, {"qwen3", ReasoningFormat::qwen3}};

bool ends_with_mark(std::string_view prompt, std::string_view mark) {
  while (!prompt.empty() && is_json_space(prompt.back())) prompt.remove_suffix(1);
  return prompt.ends_with(mark);
}

}  // namespace

std::vector<std::string> reasoning_format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : reasoning_formats) names.emplace_back(name);
  return names;
}

std::optional<ReasoningFormat> reasoning_format_of(std::string_view name) {
  for (const auto& [known, format] : reasoning_formats)
    if (known == name) return format;
  return std::nullopt;
}

bool opens_reasoning(std::string_view prompt) {
  return ends_with_mark(prompt, think);
}
bool closes_reasoning(std::string_view prompt) {
  return ends_with_mark(prompt, think_end);
}

MessageReader::MessageReader(const MessageFormat& format)
    : state_(format.reasoning == ReasoningFormat::none ? State::after : State::begin),
      open_(format.reasoning_open),
      forced_(format.calls == CallFormat::arguments || format.calls == CallFormat::list),
      opening_(think),
      closing_(think_end),
      calls_(format.calls, format.function) {
}

MessagePart MessageReader::push(std::string_view text) {
  MessagePart part;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (state_ == State::after) {
      calls_.push(text.substr(i), part);
      break;
    }
    step(text[i], part);
  }
  return part;
}

void MessageReader::step(char c, MessagePart& part) {
  if (state_ == State::begin)
    step_begin(c, part);
  else if (closing_.push(c, part.reasoning))
    state_ = State::after;
}

/// Before the reasoning: space and <think>, which an open reasoning need not have.
void MessageReader::step_begin(char c, MessagePart& part) {
  if (opening_.holds_nothing() && is_json_space(c)) {
    held_ += c;
    return;
  }
  std::string before;
  const bool complete = opening_.push(c, before);
  if (!complete && before.empty()) return;
  state_ = complete || open_ ? State::reasoning : State::after;
  if (complete) return;
  const std::string text = std::exchange(held_, {}) + before + opening_.take_held();
  if (!open_) return calls_.push(text, part);
  for (const char each : text) step(each, part);
}

MessagePart MessageReader::finish() {
  MessagePart part;
  const std::string held = std::exchange(held_, {}) + opening_.take_held();
  // Where only calls may follow, the beginning of <think> is reasoning.
  if (state_ == State::begin && !open_ && !forced_)
    calls_.push(held, part);
  else if (state_ != State::after)
    part.reasoning = held + closing_.take_held();
  calls_.finish(part);
  return part;
}

}  // namespace troupe::launch::serve::api
