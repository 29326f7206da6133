#include "engine/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string problem(std::string_view text, JsonLimits limits = {}) {
  const auto value = parse_json(text, "here", limits);
  return value ? "accepted" : value.error().what;
}

TEST(Json, KeepsTheOrderOfMembersAndTheKindOfNumbers) {
  const auto value = parse_json(R"({"b":1,"a":[1.0,-2,true,null,"x"],"big":9223372036854775807})", "here");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump(), R"({"b":1,"a":[1.0,-2,true,null,"x"],"big":9223372036854775807})");
}

TEST(Json, DoublesReadBackTheSame) {
  for (const double x : {0.1, 1e-300, 1.0 / 3, 12345678.9, -0.0}) {
    const auto back = parse_json(Json(x).dump(), "here");
    ASSERT_TRUE(back);
    EXPECT_EQ(back->number(), x);
  }
}

TEST(Json, RefusesWithThePlace) {
  EXPECT_THAT(problem("{\"a\":1,\n\"b\" 2}"), HasSubstr("line 2"));
  EXPECT_THAT(problem("{\"a\":1,\"a\":2}"), HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(problem("[1] x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("\"\xff\""), HasSubstr("not UTF-8"));
  EXPECT_THAT(problem(std::string(100000, '[')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(problem("[1e999]"), HasSubstr("here"));
  EXPECT_THAT(problem("[NaN]"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("[1,2,3]", {.bytes = 3}), HasSubstr("at most 3"));
}

TEST(Json, EscapesControlCharacters) {
  const auto value = parse_json(R"("a\u0001\n\"\\\t")", "here");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump(), R"("a\u0001\n\"\\\t")");
}

TEST(Json, SettingMembersChainsOnTheObject) {
  EXPECT_EQ(Json().set("a", 1).set("b", Json().set("c", true)).set("a", 2).dump(), R"({"a":2,"b":{"c":true}})");
}

TEST(Json, CheckedReadersNameTheKey) {
  const auto value = parse_json(R"({"n":1.5})", "here");
  EXPECT_THAT(get_integer(*value, "n", "x.json").error().what, HasSubstr("x.json: \"n\" must be an integer, found \"1.5\""));
  EXPECT_THAT(get_string(*value, "m", "x.json").error().what, HasSubstr("\"m\" (a string) is missing"));
}

}  // namespace
}  // namespace troupe
