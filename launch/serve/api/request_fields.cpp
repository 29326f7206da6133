#include "launch/serve/api/request_fields.h"

#include <cmath>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

namespace {

/// Before anything is copied.
void check_count(const std::string& field, std::size_t count, std::size_t most, const char* what) {
  if (count > most) refuse(field, cat(field, ": ", count, " ", what, "; allowed: at most ", most));
}

/// 5 and 5.0; nothing for other values.
std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_integer()) return value.integer();
  constexpr double exact = 9007199254740992;  // 2^53
  if (!value.is_number() || std::abs(value.number()) > exact) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(value.number());
  return static_cast<double>(whole) == value.number() ? std::optional(whole) : std::nullopt;
}

[[noreturn]] void wrong_type(const std::string& field, const char* expected, const Json& found) {
  refuse(field, cat(field, ": expected ", expected, ", found ", found.type_name()));
}

}  // namespace

RequestFields::RequestFields(const Json& body, std::string prefix)
    : body_(body), prefix_(std::move(prefix)) {
  if (body.is_object()) return;
  const std::string field = prefix_.substr(0, prefix_.size() - (prefix_.empty() ? 0 : 1));
  refuse(field, cat(field.empty() ? "the body" : field, ": expected a JSON object, found ",
                    body.type_name()));
}

RequestFields::RequestFields(const Json& body, const EndpointFields& table) : RequestFields(body) {
  table_ = &table;
  for (const auto& [name, value] : body.object()) {
    const FieldRow* row = table.find(name);
    if (row == nullptr || row->effect != Effect::refused || is_absent_value(*row, value)) continue;
    refuse_unsupported(name, cat(name, " is not supported: ", row->note));
  }
}

const Json* RequestFields::find(std::string_view name) {
  check(has(name), cat("the field ", name, " is read, and the table of the endpoint has it not"));
  known_.emplace(name);
  const Json* found = body_.find(name);
  return found != nullptr && found->is_null() ? nullptr : found;
}

bool RequestFields::flag(std::string_view name, bool otherwise) {
  const Json* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->is_bool()) wrong_type(path(name), "true or false", *found);
  return found->boolean();
}

std::optional<std::int64_t> RequestFields::integer(std::string_view name, std::int64_t low,
                                                   std::int64_t high) {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  const auto whole = whole_number(*found);
  constexpr double bound = 9223372036854775808.0;  // 2^63: such integers were read as doubles
  if (!whole && found->is_number() && std::abs(found->number()) >= bound)
    refuse(path(name), cat(path(name), " has more than 64 bits; allowed: ", low, " to ", high));
  if (!whole) wrong_type(path(name), "an integer", *found);
  const std::int64_t value = *whole;
  if (value < low || value > high)
    refuse(path(name), cat(path(name), " is ", value, "; allowed: ", low, " to ", high));
  return value;
}

std::optional<double> RequestFields::number(std::string_view name, double low, double high) {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) wrong_type(path(name), "a number", *found);
  const double value = found->number();
  if (!(value >= low && value <= high))
    refuse(path(name), cat(path(name), " is ", value, "; allowed: ", low, " to ", high));
  return value;
}

std::optional<std::string> RequestFields::text(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) wrong_type(path(name), "a string", *found);
  return found->string();
}

std::vector<std::string> RequestFields::texts(std::string_view name, std::size_t most,
                                              std::size_t longest) {
  const Json* found = find(name);
  if (found == nullptr) return {};
  std::vector<std::string> out;
  const auto add = [&](const std::string& field, const Json& each) {
    if (!each.is_string()) wrong_type(field, "a string", each);
    check_count(field, each.string().size(), longest, "bytes");
    out.push_back(each.string());
  };
  if (found->is_string()) {
    add(path(name), *found);
    return out;
  }
  if (!found->is_array()) wrong_type(path(name), "a string or a list of strings", *found);
  check_count(path(name), found->array().size(), most, "strings");
  for (const Json& each : found->array()) add(cat(path(name), "[", out.size(), "]"), each);
  return out;
}

std::optional<std::vector<std::int32_t>> RequestFields::ids(std::string_view name,
                                                            std::int64_t vocabulary,
                                                            std::size_t most) {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  if (found->is_array()) check_count(path(name), found->array().size(), most, "ids");
  return read_ids(*found, vocabulary, path(name));
}

bool RequestFields::has(std::string_view name) const {
  if (table_ == nullptr) return true;
  const FieldRow* row = table_->find(name);
  return row != nullptr && row->effect == Effect::acts;
}

std::vector<std::string> RequestFields::unknown() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : body_.object())
    if (table_ == nullptr ? !known_.contains(name) : table_->find(name) == nullptr)
      out.push_back(path(name));
  return out;
}

std::vector<std::int32_t> read_ids(const Json& list, std::int64_t vocabulary,
                                   const std::string& field) {
  if (!list.is_array()) wrong_type(field, "a list of token ids", list);
  std::vector<std::int32_t> out;
  out.reserve(list.array().size());
  for (const Json& each : list.array()) {
    const std::string where = cat(field, "[", out.size(), "]");
    if (!each.is_integer()) wrong_type(where, "a token id", each);
    if (each.integer() < 0 || each.integer() >= vocabulary) {
      refuse(where, cat(where, " is ", each.integer(), "; the token ids of this model are 0 to ",
                        vocabulary - 1));
    }
    out.push_back(static_cast<std::int32_t>(each.integer()));
  }
  return out;
}

}  // namespace troupe::launch::serve::api
