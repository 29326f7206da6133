#include "launch/config/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text/text.h"

namespace troupe::launch::yaml_test {
namespace {

using testing::HasSubstr;

TEST(Yaml, KeepsOrderLinesAndQuotes) {
  const auto root = config::parse_yaml("b: 1\na:\n  - null\n  - 'null'\nc: \"x\\ny\"\n", "f");
  ASSERT_TRUE(root) << root.error().what;
  ASSERT_EQ(root->members.size(), 3u);
  EXPECT_EQ(root->members[0].name, "b");
  EXPECT_EQ(root->members[1].value.items[0].kind, config::YamlNode::Kind::null);
  EXPECT_EQ(root->members[1].value.items[1].text, "null");
  EXPECT_EQ(root->members[1].value.items[1].line, 4);
  EXPECT_EQ(root->members[2].value.text, "x\ny");
}

TEST(Yaml, JsonIsYaml) {
  const auto root = config::parse_yaml(R"({"a": {"b": [1, 2.5, "\u00e9\n"]}, "c": null})", "f");
  ASSERT_TRUE(root) << root.error().what;
  EXPECT_EQ(root->members[0].value.members[0].value.items[2].text, "é\n");
  EXPECT_EQ(root->members[1].value.kind, config::YamlNode::Kind::null);
}

TEST(Yaml, RefusesWhatCouldHideOrExplode) {
  const auto refused = [](const std::string& text, const char* why) {
    const auto root = config::parse_yaml(text, "run.yaml");
    ASSERT_FALSE(root) << text.substr(0, 80);
    EXPECT_THAT(root.error().what, HasSubstr(why));
    EXPECT_THAT(root.error().what, HasSubstr("run.yaml"));
  };
  refused("a: &x [1]\nb: *x\n", "run.yaml:1: anchors");
  refused("b: *x\n", "");
  refused("a: 1\nb: 2\na: 3\n", "run.yaml:3: the key \"a\" stands twice (first in line 1)");
  refused("a: !!python/object x\n", "tag");
  refused("? [a]\n: b\n", "a key must be text");
  refused("a: 1\n---\nb: 2\n", "more than one document");
  refused("a: [1, 2\n", "not YAML");
  refused("\t- a: b: c", "");
  refused(std::string(40, '['), "");
  refused(std::string(100000, '['), "");
  refused(std::string((1u << 20) + 1, ' '), "larger than");
  refused("a: \xff\n", "not UTF-8");
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c)
    bomb +=
        cat(c, ": &", c, " [*", static_cast<char>(c - 1), ",*", static_cast<char>(c - 1), "]\n");
  refused(bomb, "anchors");
}

TEST(Yaml, AnEmptyFileIsNothing) {
  EXPECT_EQ(config::parse_yaml("", "f")->kind, config::YamlNode::Kind::null);
  EXPECT_EQ(config::parse_yaml("# only a comment\n", "f")->kind, config::YamlNode::Kind::null);
}

}  // namespace
}  // namespace troupe::launch::yaml_test
