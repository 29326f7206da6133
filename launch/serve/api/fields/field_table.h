// The fields of requests, by endpoint: the single source of what the readers of requests know and
// refuse (request_fields.h), of docs/request-fields.md, and of the test over the protocols of other
// servers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::launch::serve::api {

enum class Effect : std::uint8_t {
  acts,            ///< read by the endpoint
  without_effect,  ///< accepted with any value: it would change no result
  refused,         ///< status 400, except with null and with FieldRow::absent
};

// Who defines a field, as bits.
inline constexpr unsigned openai = 1, vllm = 2, llama = 4, sglang = 8, troupe = 16, anthropic = 32;

struct FieldRow {
  std::string_view name;
  unsigned peers = 0;
  Effect effect = Effect::acts;
  std::string_view note;         ///< what it does, or why it has no effect or is refused
  std::string_view absent = {};  ///< of a refused one: JSON, the value that it has when absent
};

/// The table of an endpoint.
class EndpointFields {
 public:
  EndpointFields(std::string path, std::vector<std::span<const FieldRow>> groups);
  const std::string& path() const { return path_; }
  const std::vector<const FieldRow*>& rows() const { return rows_; }
  /// nullptr: the endpoint does not know the field.
  const FieldRow* find(std::string_view name) const;

 private:
  std::string path_;
  std::vector<const FieldRow*> rows_;
};

/// Whether a value is that which the field has when it is absent. Numbers are compared by value.
bool is_absent_value(const FieldRow& row, const Json& value);

/// Of all endpoints.
const std::vector<EndpointFields>& field_tables();
/// The endpoint must have a table.
const EndpointFields& fields_of(std::string_view path);

// The fields of requests that generate text, and of those about tokens.

/// A part of field_tables().
std::vector<EndpointFields> generation_tables();

// The fields of OpenAI's Responses API and Anthropic's Messages API.

/// A part of field_tables().
std::vector<EndpointFields> format_tables();

}  // namespace troupe::launch::serve::api
