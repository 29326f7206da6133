// SchemaPath: a place in a JSON schema, for messages: "#/properties/name". The text is made only
// when it is needed, because names may be long and places many.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::engine::constraints {

class SchemaPath {
 public:
  /// A place that is not below another one: "#", or a reference. What is passed must outlive this.
  explicit SchemaPath(std::string_view text) : name_(text) {}
  /// What `keyword` has below `parent`.
  SchemaPath(const SchemaPath& parent, std::string_view keyword)
      : parent_(&parent), keyword_(keyword) {}
  SchemaPath(const SchemaPath& parent, std::string_view keyword, std::string_view name)
      : parent_(&parent), keyword_(keyword), name_(name) {}
  SchemaPath(const SchemaPath& parent, std::string_view keyword, std::size_t index)
      : parent_(&parent), keyword_(keyword), index_(index), has_index_(true) {}

  std::string text() const {
    std::string out;
    if (parent_ == nullptr) return std::string(name_);
    out = parent_->text();
    out.append("/").append(keyword_);
    if (has_index_) out.append("/").append(std::to_string(index_));
    if (!name_.empty()) out.append("/").append(name_);
    return out;
  }

 private:
  const SchemaPath* parent_ = nullptr;
  std::string_view keyword_, name_;
  std::size_t index_ = 0;
  bool has_index_ = false;
};

}  // namespace troupe::engine::constraints
