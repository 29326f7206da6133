// Built on yaml-cpp's event interface, not on its nodes: events can be refused one by one, before
// anything is expanded.
#include "launch/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::config {

namespace {

constexpr std::size_t max_bytes = 1u << 20;
constexpr std::size_t max_depth = 16;

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::string where) : where_(std::move(where)) {}
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not accepted; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
    node.quoted = tag == "!";
    if (!node.quoted &&
        (value == "null" || value == "Null" || value == "NULL" || value == "~" || value.empty()))
      node.kind = YamlNode::Kind::null;
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode node;
    std::string key;
    bool has_key = false;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view why) const {
    throw Failure(Error{Errc::usage, cat(where_, ':', mark.line + 1, ": ", why)});
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors (&name) are not accepted; write the value out");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, cat("the tag ", quote(tag), " is not accepted; write the plain value"));
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (levels_.size() >= max_depth) refuse(mark, cat("nested deeper than ", max_depth, " levels"));
    if (!levels_.empty() && levels_.back().node.kind == YamlNode::Kind::map &&
        !levels_.back().has_key) {
      refuse(mark, "a key must be text");
    }
    Level level;
    level.node.kind = kind;
    level.node.line = mark.line + 1;
    levels_.push_back(std::move(level));
  }
  void close() {
    YamlNode node = std::move(levels_.back().node);
    levels_.pop_back();
    place(std::move(node));
  }
  void add(const YAML::Mark& mark, YamlNode node) {
    node.line = mark.line + 1;
    if (!levels_.empty() && levels_.back().node.kind == YamlNode::Kind::map &&
        !levels_.back().has_key) {
      Level& map = levels_.back();
      for (const auto& [name, value] : map.node.members) {
        if (name == node.text)
          refuse(mark, cat("the key ", quote(name), " stands twice (first in line ", value.line,
                           "); keep one"));
      }
      map.key = std::move(node.text);
      map.has_key = true;
      return;
    }
    place(std::move(node));
  }
  void place(YamlNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
    } else if (Level& level = levels_.back(); level.node.kind == YamlNode::Kind::list) {
      level.node.items.push_back(std::move(node));
    } else {
      level.node.members.push_back({std::move(level.key), std::move(node)});
      level.has_key = false;
    }
  }

  std::string where_;
  std::vector<Level> levels_;
  YamlNode root_;
};

}  // namespace

const char* to_string(YamlNode::Kind kind) {
  static constexpr const char* names[] = {"nothing", "a single value", "a list", "a map"};
  return names[static_cast<int>(kind)];
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& where) {
  if (text.size() > max_bytes)
    return fail(Errc::usage,
                cat(where, ": larger than ", max_bytes, " bytes, which no configuration is"));
  std::size_t bad = 0;
  if (!valid_utf8(text, &bad))
    return fail(Errc::usage, cat(where, ": byte ", bad, " is not UTF-8; save the file as UTF-8"));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(where);
    if (!parser.HandleNextDocument(builder)) return YamlNode{};
    YamlNode root = builder.take();
    Builder rest(where);
    if (parser.HandleNextDocument(rest))
      return fail(Errc::usage, cat(where, ": more than one document; keep one"));
    return root;
  } catch (const Failure& failure) {
    return fail(failure);
  } catch (const YAML::Exception& error) {
    return fail(Errc::usage, cat(where, ':', error.mark.line + 1, ':', error.mark.column + 1,
                                 ": not YAML: ", error.msg));
  }
}

}  // namespace troupe::launch::config
