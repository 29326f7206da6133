// ConfigReader: members of a config.json with checks. The first mistake is kept, and what is read
// after it is harmless, so that a family reads as a list of its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"

namespace troupe::engine::models {

class ConfigReader {
 public:
  /// Names of one field; the first that stands there (and is not null) is read.
  using Keys = std::vector<std::string_view>;

  /// `where` is the file's path, for messages. Both must outlive this.
  ConfigReader(const Json& config, const std::string& where) : config_(config), where_(where) {}

  const Json& config() const { return config_; }
  const std::string& where() const { return where_; }
  /// The member, or nullptr when it is absent or null.
  const Json* find(std::string_view key) const;

  // Absent gives the fallback, or an error when there is none; outside the bounds is an error.
  std::int64_t size(const Keys& keys, std::int64_t low, std::int64_t high,
                    std::optional<std::int64_t> fallback = {});
  double number(const Keys& keys, std::optional<double> fallback = {});    ///< finite
  double positive(const Keys& keys, std::optional<double> fallback = {});  ///< finite, above 0
  bool flag(std::string_view key, bool fallback);
  std::string text(const Keys& keys, std::string_view fallback);
  /// One id or a list of them, below `vocabulary`; -1 stands for none.
  std::vector<std::int32_t> token_ids(std::string_view key, std::int64_t vocabulary);
  /// As many strings as there are layers, or empty when absent.
  std::vector<std::string> layer_types(std::int64_t layers);

  /// Refuses, by name, fields that would change the numbers and that the family of this file does
  /// not have. `known`: those that it has.
  void refuse_foreign(const Keys& known);
  /// Refuses a field by name where it is true.
  void refuse_flag(std::string_view key);

  void fail(Errc code, std::string what);  ///< `where` is put in front
  bool failed() const { return error_.has_value(); }
  Result<> result() const;

  /// The same checks on an object inside this one.
  ConfigReader inside(const Json& object) const { return ConfigReader(object, where_); }
  void take(const ConfigReader& inner);  ///< its mistake, if it has one

 private:
  void refuse(std::string_view key, const Json& value);
  const Json* first(const Keys& keys, std::string_view& key) const;

  const Json& config_;
  const std::string& where_;
  std::optional<Error> error_;
};

}  // namespace troupe::engine::models
