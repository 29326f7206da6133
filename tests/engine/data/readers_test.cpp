#include <gmock/gmock.h>

#include "engine/data/readers/file_list.h"
#include "engine/data/readers/row_reader.h"
#include "tests/engine/data/every_row.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(JsonLines, BlankLinesCarriageReturnsAndAByteOrderMarkAreNoRows) {
  Scratch scratch;
  const auto path =
      scratch.write("a.jsonl", "\xEF\xBB\xBF{\"a\":1}\r\n\r\n  \n{\"a\":2}\n{\"a\":3}");
  EXPECT_THAT(read_all(path), testing::ElementsAre("1 {\"a\":1}", "4 {\"a\":2}", "5 {\"a\":3}"));
}

struct Malformed {
  const char* name;
  std::string line;
  const char* words;
};

TEST(JsonLines, AMalformedRowIsNamedByFileAndLineAndTheNextOneIsRead) {
  const std::string deep(40, '['), shut(40, ']');
  const std::vector<Malformed> table = {
      {"truncated", R"({"a": 1)", ""},
      {"not json", "hello", ""},
      {"an array", "[1]", "expected an object"},
      {"a number", "7", "found: integer"},
      {"two values", R"({"a":1} {"b":2})", ""},
      {"duplicate key", R"({"a":1,"a":2})", "a"},
      {"invalid UTF-8", "{\"a\":\"\xff\"}", "UTF-8"},
      {"lone surrogate", R"({"a":"\ud800"})", ""},
      {"NUL", std::string("{\"a\":\0}", 7), ""},
      {"raw control character", "{\"a\":\"\x01\"}", ""},
      {"NaN", R"({"a":NaN})", ""},
      {"overflowing number", R"({"a":1e999})", ""},
      {"deep nesting", "{\"a\":" + deep + shut + "}", ""},
      {"too long", "{\"a\":\"" + std::string(max_row_bytes, 'x') + "\"}", "8 MiB"},
  };
  for (const auto& [name, line, words] : table) {
    Scratch scratch;
    const auto path = scratch.write("rows.jsonl", "{\"n\":1}\n" + line + "\n{\"n\":3}\n");
    const auto rows = read_all(path);
    ASSERT_EQ(rows.size(), 3u) << name;
    EXPECT_EQ(rows[0], "1 {\"n\":1}") << name;
    EXPECT_THAT(rows[1], AllOf(HasSubstr("!" + path + ":2"), HasSubstr(words))) << name;
    EXPECT_LT(rows[1].size(), path.size() + 300) << name;
    EXPECT_EQ(rows[2], "3 {\"n\":3}") << name;
  }
}

TEST(JsonLines, ALastLineWithoutItsEndIsSaidToBeTruncated) {
  Scratch scratch;
  const auto rows = read_all(scratch.write("rows.jsonl", "{\"n\":1}\n{\"n\":2"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[1], HasSubstr("truncated"));
}

TEST(JsonFile, HoldsItsRowsInAnArrayOrInTheOneListOfAnObject) {
  Scratch scratch;
  const std::vector<std::string> rows = {"2 {\"a\":\"] , }\"}", "3 {\"b\":[{\"c\":\"\\\"\"}]}"};
  EXPECT_EQ(
      read_all(scratch.write("a.json", "[\n{\"a\":\"] , }\"},\n {\"b\":[{\"c\":\"\\\"\"}]}\n]\n")),
      rows);
  EXPECT_EQ(read_all(scratch.write("b.json",
                                   "{\"version\": [1, 2], \"data\": [\n{\"a\":\"] , }\"},\n "
                                   "{\"b\":[{\"c\":\"\\\"\"}]}\n]}")),
            rows);
}

TEST(JsonFile, MayHoldJsonLinesOrOneRow) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("lines.json", "{\"a\":1}\n{\"a\":2}\n")),
              testing::ElementsAre("1 {\"a\":1}", "2 {\"a\":2}"));
  EXPECT_THAT(read_all(scratch.write("one.json", "{\n\"messages\":\n[{\"role\":\"user\"}]}")),
              testing::ElementsAre("1 {\"messages\":[{\"role\":\"user\"}]}"));
  EXPECT_THAT(read_all(scratch.write("none.json", "[]")), testing::IsEmpty());
}

TEST(JsonFile, AMalformedRowIsOneRowsMatter) {
  Scratch scratch;
  const auto path =
      scratch.write("a.json", "[{\"n\":1},\n{\"a\":1,\"a\":2},\n7,\n{\"a\":\n nul},\n{\"n\":6}]");
  const auto rows = read_all(path);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0], "1 {\"n\":1}");
  EXPECT_THAT(rows[1], HasSubstr(path + ":2"));
  EXPECT_THAT(rows[2], AllOf(HasSubstr(path + ":3"), HasSubstr("expected an object")));
  EXPECT_THAT(rows[3], HasSubstr(path + ":4: not valid JSON at line 5, column 5"));
  EXPECT_EQ(rows[4], "6 {\"n\":6}");
}

TEST(JsonFile, BrokenBracketsAreRefusedWithTheirLine) {
  Scratch scratch;
  const std::vector<std::pair<std::string, const char*>> table = {
      {"[{\"a\":1},\n{\"a\":2}", ":2: expected ',' or ']'"},
      {"[{\"a\":1}\n{\"a\":2}]", ":2: expected ',' or ']'"},
      {"[{\"a\":1},\n]", ":2: expected a value"},
      {"[{\"a\":[1}]", ":1: expected ]"},
      {"[{\"a\":\"no end", "end of the file"},
      {"[{\"a\":1}]\nmore", ":2: expected the end"},
      {"", "end of the file"},
      {"hello", "expected '[' or '{'"},
      {"{\"a\":[{}],\"b\":[{}]}", "two lists"},
      {"[" + std::string(100000, '[') + "]", "levels"},
  };
  for (const auto& [text, words] : table) {
    const auto rows = read_all(scratch.write("a.json", text));
    ASSERT_EQ(rows.size(), 1u) << words;
    EXPECT_THAT(rows[0], AllOf(HasSubstr("!!"), HasSubstr("a.json"), HasSubstr(words)));
  }
}

TEST(Readers, SeekGoesToTheExactRowInAnyFormat) {
  Scratch scratch;
  const std::string lines = "{\"n\":0}\n\n{\"n\":1}\nbad\n{\"n\":3}\n";
  const std::string list = "[{\"n\":0},{\"n\":1},\n{\"bad\" 3},{\"n\":3}]";
  for (const auto& path : {scratch.write("a.jsonl", lines), scratch.write("a.json", list)}) {
    auto reader = value_or_throw(open_rows(path));
    for (const int n : {3, 0, 1, 3}) {
      ASSERT_TRUE(reader->seek(n));
      const auto row = value_or_throw(reader->next());
      ASSERT_TRUE(row) << path;
      EXPECT_EQ(row->index, n);
      EXPECT_EQ(row->value.find("n")->integer(), n);
    }
    ASSERT_TRUE(reader->seek(4));
    EXPECT_FALSE(value_or_throw(reader->next()));
    ASSERT_TRUE(reader->seek(99));
    EXPECT_FALSE(value_or_throw(reader->next()));
  }
}

TEST(Readers, ContentWinsOverAMisleadingName) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("a.data", "[{\"a\":1}]")),
              testing::ElementsAre("1 {\"a\":1}"));
  const std::vector<std::pair<std::string, std::pair<std::string, const char*>>> table = {
      {"a.parquet", {"{\"a\":1}", "expected a parquet file"}},
      {"a.dat", {"a,b\n", "known formats"}},
      {"a.arrow", {"{\"a\":1}", "expected an Arrow IPC file"}},
      {"a.jsonl", {"\x28\xB5\x2F\xFD\x24", "zstd"}},
      {"a.json", {std::string("\xFF\xFE[\0", 4), "UTF-16"}},
  };
  for (const auto& [name, content] : table)
    EXPECT_THAT(read_all(scratch.write(name, content.first))[0], HasSubstr(content.second)) << name;
  EXPECT_THAT(read_all(scratch.path("nothing.jsonl"))[0], HasSubstr("nothing.jsonl"));
}

TEST(JsonLines, IntegersBeyondSixtyThreeBitsAreNotRounded) {
  Scratch scratch;
  const auto read = [&](const std::string& text) {
    return read_all(scratch.write("a.jsonl", text + "\n"))[0];
  };
  EXPECT_EQ(read(R"({"a": 9223372036854775807, "b": -9223372036854775808})"),
            R"(1 {"a":9223372036854775807,"b":-9223372036854775808})");
  EXPECT_EQ(read(R"({"a": 18446744073709551615, "b": [-123456789012345678901234567890]})"),
            R"(1 {"a":"18446744073709551615","b":["-123456789012345678901234567890"]})");
  EXPECT_EQ(read(R"({"a": "\\\"18446744073709551615", "b": 18446744073709551615e-5})"),
            R"(1 {"a":"\\\"18446744073709551615","b":184467440737095.53})");
  for (const char* row : {R"({"tools": [{"parameters": {"maximum": 18446744073709551615}}]})",
                          R"({"messages": [{"tool_calls": [{"maximum": 18446744073709551615}]}]})"})
    EXPECT_THAT(read(row), AllOf(HasSubstr("a.jsonl:1: \"maximum\""),
                                 HasSubstr("18446744073709551615"), HasSubstr("write it as text")));
}

TEST(Readers, DamagedTextIsRefusedOrReadNeverTrusted) {
  Scratch scratch;
  const std::string list =
      R"({"v":[1],"data":[{"a":"x\\\"","b":[1,-2.5e3,null,true]},{"c":{"d":"\\u00e9é"}}]})";
  const std::string lines = "{\"a\":[1,{\"b\":\"\\\\\"}]}\r\n\n{\"c\":null}\n";
  for (const auto& [name, text] :
       {std::pair{"a.json", list}, {"a.jsonl", lines}, {"b.json", lines}})
    expect_damage_refused(scratch, name, text, std::string_view("\"{],\0\xff", 6), 10);
}

TEST(DataFiles, AFolderStandsForItsFilesByName) {
  Scratch scratch;
  const auto b = scratch.write("b.jsonl", ""), a = scratch.write("a.json", "");
  scratch.write("README.md", "");
  EXPECT_EQ(value_or_throw(list_data_files({scratch.folder()})), (std::vector<std::string>{a, b}));
  EXPECT_EQ(list_data_files({scratch.path("none")}).error().code, Errc::not_found);
  std::filesystem::create_directory(scratch.path("empty"));
  EXPECT_THAT(list_data_files({scratch.path("empty")}).error().what,
              HasSubstr("without data files"));
}

}  // namespace
}  // namespace troupe::engine::data
