#include "launch/serve/api/message/call_scanner.h"

#include <utility>

#include "engine/base/json/json.h"

namespace troupe::launch::serve::api {

namespace {

/// The text of a JSON string, or "" for another value.
std::string string_value(const std::string& json) {
  auto value = parse_json(json, "a tool call");
  return value && value->is_string() ? value->string() : "";
}

}  // namespace

Scan ValueScanner::push_first(char c) {
  if (c == '"') {
    kind_ = Kind::string;
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    kind_ = Kind::container;
    depth_ = 1;
  } else if (c == ',' || c == '}' || c == ']' || c == ':' || is_json_space(c)) {
    return Scan::invalid;
  } else {
    kind_ = Kind::word;
  }
  return Scan::inside;
}

Scan ValueScanner::push(char c) {
  if (kind_ == Kind::unknown) return push_first(c);
  if (kind_ == Kind::word)
    return c == ',' || c == '}' || c == ']' || is_json_space(c) ? Scan::after : Scan::inside;
  if (in_string_) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"')
      in_string_ = false;
    return kind_ == Kind::string && !in_string_ ? Scan::last : Scan::inside;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (c == '}' || c == ']') --depth_;
  return depth_ == 0 ? Scan::last : Scan::inside;
}

std::string CallScanner::take_arguments() {
  return arguments_.substr(std::exchange(taken_, arguments_.size()));
}

Scan CallScanner::end() {
  step_ = Step::done;
  return known() ? Scan::last : Scan::invalid;
}

Scan CallScanner::push_key(char c) {
  text_ += c;
  const Scan scan = value_.push(c);
  if (scan == Scan::invalid || text_.front() != '"') return Scan::invalid;
  if (scan != Scan::last) return Scan::inside;
  key_ = string_value(text_);
  step_ = Step::colon;
  return Scan::inside;
}

/// False: the name is not a text.
bool CallScanner::end_value() {
  step_ = Step::next;
  if (key_ != "name") return true;
  name_ = string_value(text_);
  return !name_.empty();
}

Scan CallScanner::push_value(char c) {
  const Scan scan = value_.push(c);
  if (scan == Scan::invalid) return scan;
  if (scan != Scan::after) {
    if (key_ == "arguments" || key_ == "parameters")
      arguments_ += c;
    else
      text_ += c;
  }
  if (scan == Scan::inside) return scan;
  if (!end_value()) return Scan::invalid;
  return scan == Scan::after ? push(c) : Scan::inside;
}

Scan CallScanner::push(char c) {
  if (step_ == Step::key) return push_key(c);
  if (step_ == Step::value) return push_value(c);
  if (is_json_space(c)) return Scan::inside;
  switch (step_) {
    case Step::open:
      step_ = Step::key_or_end;
      return c == '{' ? Scan::inside : Scan::invalid;
    case Step::key_or_end:
      if (c == '}') return end();
      step_ = Step::key;
      value_ = {};
      text_.clear();
      return push_key(c);
    case Step::colon:
      step_ = Step::value_begin;
      return c == ':' ? Scan::inside : Scan::invalid;
    case Step::value_begin:
      step_ = Step::value;
      value_ = {};
      text_.clear();
      return push_value(c);
    case Step::next:
      if (c == '}') return end();
      step_ = Step::key_or_end;
      return c == ',' ? Scan::inside : Scan::invalid;
    default:
      return Scan::invalid;
  }
}

}  // namespace troupe::launch::serve::api
