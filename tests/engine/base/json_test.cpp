#include "engine/base/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>

#include "tests/support/sanitized.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string problem(std::string_view text, JsonLimits limits = {}) {
  const auto value = parse_json(text, "here", limits);
  return value ? "accepted" : value.error().what;
}

TEST(Json, KeepsTheOrderOfMembersAndTheKindOfNumbers) {
  const auto value =
      parse_json(R"({"b":1,"a":[1.0,-2,true,null,"x"],"big":9223372036854775807})", "here");
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
  EXPECT_EQ(problem("{\n  \"a\": 1,\n  \"b\": [\"a\"],\n  \"a\": 2\n}\n"),
            "here: not valid JSON at line 4, column 5: the key \"a\" occurs twice in one object");
  EXPECT_THAT(problem("[1] x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("\"\xff\""), HasSubstr("not UTF-8"));
  EXPECT_EQ(problem("[\n" + std::string(100000, '[')),
            "here: not valid JSON at line 2, column 64: nested deeper than 64 levels");
  EXPECT_LT(problem("[" + std::string(5000, '9') + "]").size(), 400u);
  EXPECT_LT(problem("[\"" + std::string(5000, 'x')).size(), 400u);
  EXPECT_EQ(problem("[1e999]"),
            "here: not valid JSON at line 1, column 6: number overflow parsing '1e999'");
  EXPECT_THAT(problem("[NaN]"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("[1,2,3]", {.bytes = 3}), HasSubstr("at most 3"));
}

std::string list_of(std::size_t count) {
  std::string text = "[0";
  for (std::size_t i = 1; i < count; ++i) text += ",0";
  return text + "]";
}

TEST(Json, BuildsOnlyABoundedNumberOfValues) {
  EXPECT_TRUE(parse_json(list_of(4000), "here", {.bytes = 10'000}));
  EXPECT_THAT(problem(list_of(4097), {.bytes = 10'000}),
              HasSubstr("line 1, column 8194: more than 4096 values"));
  EXPECT_TRUE(parse_json(list_of(std::size_t{1} << 20), "here"));
  EXPECT_THAT(problem(list_of((std::size_t{1} << 20) + 1)),
              HasSubstr("line 1, column 2097154: more than 1048576 values in one list or object"));
  const std::string million = list_of(1'000'000);
  EXPECT_THAT(problem("[" + million + "," + million + "," + million + "]"),
              HasSubstr("more than 3000000 values"));
}

TEST(Json, FindsAKeyThatStandsTwiceAmongMany) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(parse_json(text + "\"last\":0}", "here"));
  EXPECT_THAT(problem(text + "\"500\":0}"),
              HasSubstr("the key \"500\" occurs twice in one object"));
}

TEST(Json, EscapesControlCharacters) {
  const auto value = parse_json(R"("a\u0001\n\"\\\t")", "here");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump(), R"("a\u0001\n\"\\\t")");
}

TEST(Json, SettingMembersChainsOnTheObject) {
  EXPECT_EQ(Json().set("a", 1).set("b", Json().set("c", true)).set("a", 2).dump(),
            R"({"a":2,"b":{"c":true}})");
}

TEST(Json, CheckedReadersNameTheKey) {
  const auto value = parse_json(R"({"n":1.5})", "here");
  EXPECT_THAT(get_integer(*value, "n", "x.json").error().what,
              HasSubstr("x.json: \"n\" must be an integer, found \"1.5\""));
  EXPECT_THAT(get_string(*value, "m", "x.json").error().what,
              HasSubstr("\"m\" (a string) is missing"));
}

TEST(Json, ACopyForWhichMemoryRunsOutIsBadAlloc) {
#ifdef TROUPE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs terabytes of address space";
#endif
  const auto copy = [](const Json& value) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (16u << 20);
    ::setrlimit(RLIMIT_AS, &limit);  // less than another copy of the text needs
    try {
      const Json same = value;
    } catch (const std::bad_alloc&) {
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  const Json text(std::string(64u << 20, 'x'));
  for (const Json& value : {text, Json(Json::Array{1, text}), Json(Json::Object{{"a", text}})})
    EXPECT_EXIT(copy(value), testing::ExitedWithCode(0), "");
}

TEST(Json, ACopyOfAPartOfItselfIsTheWholePart) {
  Json value = Json::Object{{"a", Json::Array{1, "two", nullptr}}};
  value = *value.find("a");
  EXPECT_EQ(value.dump(), R"([1,"two",null])");
}

}  // namespace
}  // namespace troupe
