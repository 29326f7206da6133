#include "launch/tools/migration/shell/fields.h"

#include <utility>

namespace troupe::launch::tools::migration::shell {

void Fields::text(std::string_view text, bool quoted) {
  budget_.work(text.size());
  if (field_.value.text.size() + text.size() > max_bytes) too_large("a word", max_bytes);
  if (mode_ == Mode::pattern && quoted)
    for (const char c : text) {
      field_.value.text += '\\';
      field_.value.text += c;
    }
  else
    field_.value.text += text;
}

void Fields::literal(char c, bool quoted) {
  started_ = true;
  text(std::string_view(&c, 1), quoted);
}

void Fields::note(const Value& value, bool open) {
  if (field_.value.unset.empty()) field_.value.unset = value.unset;
  if (value.unknown.empty()) return;
  started_ = true;
  // What follows known text, as in key=$VALUE, is taken for one value.
  field_.open = field_.open || (open && field_.value.text.empty() && value.unknown_at == 0);
  if (!field_.value.unknown.empty()) return;
  field_.value.unknown = value.unknown;
  field_.value.unknown_at = field_.value.text.size() + value.unknown_at;
}

void Fields::value(const Value& value, bool quoted) {
  if (mode_ == Mode::split && !quoted && value.unknown.empty()) return split(value);
  note(value, mode_ == Mode::split && !quoted);
  if (!value.text.empty()) started_ = true;
  text(value.text, quoted);
}

void Fields::split(const Value& value) {
  for (const char c : value.text)
    if (separators_.find(c) != std::string::npos) {
      end_field();
    } else {
      if (!started_) note(value, false);
      started_ = true;
      text(std::string_view(&c, 1), false);
    }
  note(value, false);
}

void Fields::list(const std::vector<Value>& values, const std::string& unknown, bool quoted,
                  std::string_view raw) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && mode_ == Mode::split)
      end_field();
    else if (i > 0)
      text(" ", quoted);
    if (quoted) started_ = true;
    value(values[i], quoted);
  }
  if (unknown.empty()) return;
  note({"", unknown, ""}, true);
  text(raw, quoted);
}

void Fields::end_field() {
  if (started_) {
    budget_.expand(field_.value.text.size());
    field_.line = line_;
    fields_.push_back(std::move(field_));
  }
  field_ = {};
  started_ = false;
}

std::vector<Field> Fields::take() {
  end_field();
  return std::move(fields_);
}

Value Fields::take_value() {
  started_ = true;
  end_field();
  return std::move(fields_[0].value);
}

}  // namespace troupe::launch::tools::migration::shell
