// ConfigReader: checked access to the members of a config.json. It records the first error and
// returns valid defaults afterwards, so that a family reads as a list of its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"

namespace troupe::engine::models {

class ConfigReader {
 public:
  /// Alternative names of one field; the first that is present and not null is read.
  using Keys = std::vector<std::string_view>;

  /// `where` is the file's path, for messages. Both must outlive this.
  ConfigReader(const Json& config, const std::string& where) : config_(config), where_(where) {}

  const Json& config() const { return config_; }
  const std::string& where() const { return where_; }
  /// The member, or nullptr when it is absent or null.
  const Json* find(std::string_view key) const;

  // An absent field gives the fallback, or an error without one; a value out of bounds is an error.
  std::int64_t size(const Keys& keys, std::int64_t low, std::int64_t high,
                    std::optional<std::int64_t> fallback = {});
  double number(const Keys& keys, std::optional<double> fallback = {});    ///< finite
  double positive(const Keys& keys, std::optional<double> fallback = {});  ///< finite, above 0
  bool flag(std::string_view key, bool fallback);
  std::string text(const Keys& keys, std::string_view fallback);
  /// One id or a list of ids below `vocabulary`; -1: none.
  std::vector<std::int32_t> token_ids(std::string_view key, std::int64_t vocabulary);
  /// One string per layer, or empty when absent.
  std::vector<std::string> layer_types(std::int64_t layers);

  /// Numbers of layers, or empty when absent.
  std::vector<std::int64_t> layer_numbers(std::string_view key, std::int64_t layers);

  /// Rejects fields that would change the results and that the family does not support, except
  /// `known`. Errc::unsupported, naming the field.
  void reject_unsupported(const Keys& known);
  /// Rejects a field that is true.
  void reject_flag(std::string_view key);

  void fail(Errc code, std::string what);  ///< prefixes `where`
  bool failed() const { return error_.has_value(); }
  Result<> result() const;

  /// A reader of an object inside this one.
  ConfigReader inside(const Json& object) const { return ConfigReader(object, where_); }
  void take(const ConfigReader& inner);  ///< records its error, if it has one

 private:
  void reject(std::string_view key, const Json& value);
  const Json* first(const Keys& keys, std::string_view& key) const;

  const Json& config_;
  const std::string& where_;
  std::optional<Error> error_;
};

}  // namespace troupe::engine::models
