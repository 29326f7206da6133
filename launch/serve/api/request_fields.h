// RequestFields: checked access to the members of a request's JSON body. Every getter throws
// ApiFailure (status 400 with the field's name) for a value of the wrong type or out of range; a
// null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

class RequestFields {
 public:
  static constexpr std::size_t any_number = ~std::size_t{0};  ///< the body is bounded
  /// `body` must outlive this. `prefix`: "" or "FIELD.", before the names in
  /// messages.
  explicit RequestFields(const Json& body, std::string prefix = "");
  /// The whole body of a request: fields that `table` refuses get status 400, and only those that
  /// act can be read.
  RequestFields(const Json& body, const EndpointFields& table);

  /// The value, or nullptr. The field is then known.
  const Json* find(std::string_view name);
  bool flag(std::string_view name, bool otherwise);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<std::string> text(std::string_view name);
  /// A string or a list of at most `most` strings of at most `longest` bytes; empty when absent.
  std::vector<std::string> texts(std::string_view name, std::size_t most, std::size_t longest);
  /// A list of at most `most` token ids, each in [0, vocabulary); nothing when absent.
  std::optional<std::vector<std::int32_t>> ids(std::string_view name, std::int64_t vocabulary,
                                               std::size_t most = any_number);

  /// Whether the endpoint reads the field; also true without a table.
  bool has(std::string_view name) const;

  /// The members that the table does not have or, without one, that no call has named.
  std::vector<std::string> unknown() const;
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  const Json& body_;
  std::string prefix_;
  const EndpointFields* table_ = nullptr;
  std::set<std::string, std::less<>> known_;
};

/// The ids of a list; `field` names it in messages.
std::vector<std::int32_t> read_ids(const Json& list, std::int64_t vocabulary,
                                   const std::string& field);

}  // namespace troupe::launch::serve::api
