#include "launch/serve/api/message/call_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace troupe::launch::serve::api {

namespace {

constexpr std::pair<std::string_view, CallFormat> call_formats[] = {
    {"hermes", CallFormat::hermes},
    {"llama3_json", CallFormat::llama3_json},
    {"mistral", CallFormat::mistral}};

constexpr std::string_view hermes_end = "</tool_call>";

std::string_view marker_of(CallFormat format) {
  if (format == CallFormat::hermes) return "<tool_call>";
  return format == CallFormat::mistral ? "[TOOL_CALLS]" : "<|python_tag|>";
}

/// Characters between [TOOL_CALLS] and {: a name, and markers such as [ARGS] behind it.
bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
         c == '[' || c == ']';
}

}  // namespace

std::vector<std::string> call_format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : call_formats) names.emplace_back(name);
  return names;
}

std::optional<CallFormat> call_format_of(std::string_view name) {
  for (const auto& [known, format] : call_formats)
    if (known == name) return format;
  return std::nullopt;
}

CallFormat call_format_in(std::string_view chat_template) {
  const auto has = [&](std::string_view part) {
    return chat_template.find(part) != std::string_view::npos;
  };
  // Qwen3-Coder and GLM write XML between the markers of Hermes.
  if (has("<tool_call>") && !has("<function=") && !has("<arg_key>")) return CallFormat::hermes;
  if (has("[TOOL_CALLS]")) return CallFormat::mistral;
  return has("ipython") ? CallFormat::llama3_json : CallFormat::none;
}

CallReader::CallReader(CallFormat format, std::string function)
    : format_(format),
      state_(format == CallFormat::none ? State::rest : State::text),
      marker_(marker_of(format)),
      closing_(hermes_end),
      name_(std::move(function)) {
  if (format == CallFormat::llama3_json || format == CallFormat::list) state_ = State::begin;
}

void CallReader::push(std::string_view text, MessagePart& part) {
  if (format_ == CallFormat::arguments) {
    if (text.empty()) return;
    if (calls_ == 0) announce(name_, part);
    return add_arguments(std::string(text), part);
  }
  for (const char c : text) step(c, part);
  if (state_ == State::object && announced_) add_arguments(call_.take_arguments(), part);
}

void CallReader::finish(MessagePart& part) {
  held_ += marker_.take_held();
  // Behind a call, only the beginning of its end marker is held back.
  if (state_ == State::end || (calls_ > 0 && std::ranges::all_of(held_, is_json_space)))
    held_.clear();
  part.content += std::exchange(held_, {});
}

void CallReader::step(char c, MessagePart& part) {
  switch (state_) {
    case State::text:
      return step_text(c, part);
    case State::begin:
      return step_begin(c, part);
    case State::object:
      return step_object(c, part);
    case State::name:
      return step_name(c, part);
    case State::arguments:
      return step_arguments(c, part);
    case State::end:
      return step_end(c, part);
    case State::rest:
      part.content += c;
  }
}

/// What follows a call and is not one is content.
void CallReader::give_up(MessagePart& part) {
  part.content += std::exchange(held_, {});
  state_ = marked() ? State::text : State::rest;
  in_list_ = false;
}

void CallReader::step_text(char c, MessagePart& part) {
  if (skips_space_ && is_json_space(c)) return;
  skips_space_ = false;
  if (!marker_.push(c, part.content)) return;
  held_ = marker_of(format_);
  state_ = State::begin;
}

void CallReader::begin_object(char c, MessagePart& part) {
  call_ = {};
  announced_ = false;
  state_ = State::object;
  step_object(c, part);
}

void CallReader::step_begin(char c, MessagePart& part) {
  if (c == '{') return begin_object(c, part);
  if (c == '[' && !in_list_ && format_ != CallFormat::hermes &&
      format_ != CallFormat::llama3_json) {
    in_list_ = true;
    held_ += c;
    return;
  }
  if (format_ == CallFormat::mistral && !in_list_ && is_name(c)) {
    name_.clear();
    state_ = State::name;
    return step_name(c, part);
  }
  if (format_ == CallFormat::llama3_json && calls_ == 0 && !is_json_space(c)) {
    // The marker before the first call.
    std::string before;
    const bool complete = marker_.push(c, before);
    if (before.empty()) {
      if (complete) held_ += marker_of(format_);
      return;
    }
    held_ += before;
    held_ += marker_.take_held();
    return give_up(part);
  }
  held_ += c;
  if (!is_json_space(c)) give_up(part);
}

void CallReader::step_object(char c, MessagePart& part) {
  if (!announced_) held_ += c;
  const Scan scan = call_.push(c);
  if (scan == Scan::invalid) {
    if (announced_) {
      add_arguments(call_.take_arguments(), part);
      held_ += c;
    }
    return give_up(part);
  }
  if (!announced_ && call_.known()) announce(call_.name(), part);
  if (scan != Scan::last) return;
  add_arguments(call_.take_arguments(), part);
  state_ = State::end;
}

void CallReader::step_name(char c, MessagePart& part) {
  held_ += c;
  if (c == '{') {
    name_ = name_.substr(0, name_.find('['));
    if (name_.empty()) return give_up(part);
    announce(name_, part);
    value_ = {};
    state_ = State::arguments;
    return step_arguments(c, part);
  }
  name_ += c;
  if (!is_name(c)) give_up(part);
}

void CallReader::step_arguments(char c, MessagePart& part) {
  add_arguments(std::string(1, c), part);
  if (value_.push(c) != Scan::last) return;
  skips_space_ = true;
  state_ = State::text;
}

void CallReader::step_end(char c, MessagePart& part) {
  held_ += c;
  if (is_json_space(c) && closing_.holds_nothing()) return;
  if (in_list_ && c == ',') {
    state_ = State::begin;
  } else if (in_list_ && c == ']') {
    in_list_ = false;
    held_.clear();
    skips_space_ = true;
    state_ = State::text;
  } else if (format_ == CallFormat::llama3_json && c == ';') {
    state_ = State::begin;
  } else if (format_ == CallFormat::hermes) {
    std::string before;
    if (closing_.push(c, before)) {
      held_.clear();
      skips_space_ = true;
      state_ = State::text;
    } else if (!before.empty()) {
      closing_ = MarkerSearch(hermes_end);
      give_up(part);
    }
  } else {
    give_up(part);
  }
}

void CallReader::announce(const std::string& name, MessagePart& part) {
  held_.clear();
  announced_ = true;
  part.calls.push_back({calls_++, name, ""});
}

void CallReader::add_arguments(const std::string& text, MessagePart& part) const {
  if (text.empty()) return;
  if (part.calls.empty() || part.calls.back().index != calls_ - 1)
    part.calls.push_back({calls_ - 1, "", ""});
  part.calls.back().arguments += text;
}

}  // namespace troupe::launch::serve::api
