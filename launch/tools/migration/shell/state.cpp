#include "launch/tools/migration/shell/state.h"

#include <utility>

#include "engine/base/text/parse.h"

namespace troupe::launch::tools::migration::shell {
namespace {

std::size_t bytes_of(const Value& value) {
  return value.text.size() + value.unknown.size() + value.unset.size();
}

std::size_t bytes_of(const Variable& variable) {
  std::size_t bytes = variable.unknown.size();
  for (const auto& [index, value] : variable.items) bytes += bytes_of(value) + sizeof(index);
  for (const auto& [key, value] : variable.by_key) bytes += bytes_of(value) + key.size();
  // A scalar counts as its text.
  return variable.array ? bytes : bytes - sizeof(std::int64_t) * variable.items.size();
}

Value joined(const Value& left, const Value& right) {
  return {left.text + right.text, left.unknown.empty() ? right.unknown : left.unknown,
          left.unset.empty() ? right.unset : left.unset,
          left.unknown.empty() ? left.text.size() + right.unknown_at : left.unknown_at};
}

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<std::int64_t>(text);
}

ShellState::ShellState(std::map<std::string, std::string> given) : given_(std::move(given)) {
  set("HOME", Value{"~", "", ""});
  for (const auto& [name, value] : given_) set(name, Value{value, "", ""});
}

const Variable* ShellState::find(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

void ShellState::put(const std::string& name, std::optional<Variable> variable) {
  const Variable* before = find(name);
  std::size_t bytes = bytes_ - (before ? bytes_of(*before) : 0);
  if (variable) bytes += bytes_of(*variable);
  if (bytes > max_bytes) too_large("the values of the variables", max_bytes);
  bytes_ = bytes;
  touched.insert(name);
  if (variable)
    variables_[name] = std::move(*variable);
  else
    variables_.erase(name);
}

void ShellState::set(const std::string& name, Variable variable) {
  put(name, std::move(variable));
}

void ShellState::set(const std::string& name, Value value) {
  if (const auto given = given_.find(name); !value.unknown.empty() && given != given_.end())
    value = {given->second, "", ""};
  Variable variable;
  if (const Variable* before = find(name); before && before->array) variable = *before;
  variable.items[0] = std::move(value);
  put(name, std::move(variable));
}

void ShellState::set_item(const std::string& name, const std::string& index, Value value) {
  Variable variable;
  if (const Variable* before = find(name)) variable = *before;
  variable.array = true;
  const auto number = whole_number(index);
  if (variable.associative) {
    variable.by_key[index] = std::move(value);
  } else if (number && *number >= 0) {
    variable.items[*number] = std::move(value);
  } else if (number && !variable.items.empty()) {
    variable.items[variable.items.rbegin()->first + 1 + *number] = std::move(value);
  } else {
    variable.unknown = "the index of an item";
  }
  put(name, std::move(variable));
}

void ShellState::append(const std::string& name, const Value& value) {
  Variable variable;
  if (const Variable* before = find(name)) variable = *before;
  variable.items[0] = joined(variable.items[0], value);
  put(name, std::move(variable));
}

void ShellState::append(const std::string& name, std::vector<Value> values) {
  Variable variable;
  if (const Variable* before = find(name)) variable = *before;
  variable.array = true;
  std::int64_t next = variable.items.empty() ? 0 : variable.items.rbegin()->first + 1;
  for (Value& value : values) variable.items[next++] = std::move(value);
  put(name, std::move(variable));
}

void ShellState::unset(const std::string& name) {
  if (find(name)) put(name, std::nullopt);
}

void ShellState::forget(const std::string& name, const std::string& why) {
  if (const auto given = given_.find(name); given != given_.end())
    return set(name, Value{given->second, "", ""});
  Variable variable;
  if (const Variable* before = find(name)) variable.array = before->array;
  variable.unknown = why;
  variable.items[0] = {"$" + name, why, ""};
  put(name, std::move(variable));
}

void ShellState::open_scope() {
  scopes_.emplace_back();
}

void ShellState::close_scope() {
  auto saved = std::move(scopes_.back());
  scopes_.pop_back();
  for (auto& [name, variable] : saved) put(name, std::move(variable));
}

void ShellState::make_local(const std::string& name) {
  if (scopes_.empty()) return;
  const Variable* before = find(name);
  if (scopes_.back().emplace(name, before ? std::optional(*before) : std::nullopt).second)
    put(name, std::nullopt);
}

}  // namespace troupe::launch::tools::migration::shell
