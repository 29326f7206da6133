// Formats beside JSON: tables, plain text, gzip; and which files a path stands for.
#include <gmock/gmock.h>
#include <zlib.h>

#include "engine/base/files/file.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/text_stream.h"
#include "tests/engine/data/every_row.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string gzip(const std::string& text, int level = 6) {
  z_stream state{};
  EXPECT_EQ(deflateInit2(&state, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&state, text.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

TEST(Csv, CellsMayHoldDelimitersQuotesAndNewlines) {
  Scratch scratch;
  const auto path = scratch.write("a.csv",
                                  "\xEF\xBB\xBFprompt,completion\r\n\"a, "
                                  "\"\"b\"\"\",\"one\ntwo\"\r\n\r\nplain \"inside\",\r\n\"\",x");
  EXPECT_THAT(read_all(path),
              ElementsAre("2 {\"prompt\":\"a, \\\"b\\\"\",\"completion\":\"one\\ntwo\"}",
                          "5 {\"prompt\":\"plain \\\"inside\\\"\",\"completion\":null}",
                          "6 {\"prompt\":\"\",\"completion\":\"x\"}"));
}

TEST(Csv, TabsDivideATsvFileAndNamesMayBeGiven) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("a.tsv", "a\tb\n1,2\t3\n")),
              ElementsAre("2 {\"a\":\"1,2\",\"b\":\"3\"}"));
  EXPECT_THAT(read_all(scratch.write("b.csv", "1,2\n3,4\n"), {.column_names = {"a", "b"}}),
              ElementsAre("1 {\"a\":\"1\",\"b\":\"2\"}", "2 {\"a\":\"3\",\"b\":\"4\"}"));
  EXPECT_THAT(read_all(scratch.write("c.csv", "")), IsEmpty());
  EXPECT_THAT(read_all(scratch.write("d.csv", "a,b\n")), IsEmpty());
}

TEST(Csv, AMalformedRowIsNamedAndTheNextOneIsRead) {
  Scratch scratch;
  const auto path = scratch.write("a.csv", "a,b\n1\n\"x\"y,2\n1,2,3\n\xff,2\n5,6\n");
  const auto rows = read_all(path);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_THAT(rows[0], AllOf(HasSubstr(path + ":2: expected 2 columns"), HasSubstr("found 1")));
  EXPECT_THAT(rows[1], AllOf(HasSubstr(path + ":3: expected"),
                             HasSubstr("behind a closing quotation mark")));
  EXPECT_THAT(rows[2], HasSubstr(path + ":4: expected 2 columns"));
  EXPECT_THAT(rows[3], AllOf(HasSubstr(path + ":5"), HasSubstr("UTF-8")));
  EXPECT_EQ(rows[4], "6 {\"a\":\"5\",\"b\":\"6\"}");
}

TEST(Csv, AQuotationMarkThatIsNeverClosedEndsTheFileWithItsLine) {
  Scratch scratch;
  EXPECT_THAT(
      read_all(scratch.write("a.csv", "a,b\n1,2\n3,\"4\n5,6\n")),
      ElementsAre("2 {\"a\":\"1\",\"b\":\"2\"}",
                  AllOf(HasSubstr("a.csv:3: the row that begins here"), HasSubstr("not closed"))));
  EXPECT_THAT(read_all(scratch.write(
                  "b.csv", "a,b\n1,2\n3,\"" + std::string(max_row_bytes + 100, 'x') + "\n"))[1],
              HasSubstr("8 MiB"));
  EXPECT_THAT(read_all(scratch.write("c.csv", "a,a\n1,2\n"))[0],
              AllOf(HasSubstr("c.csv:1"), HasSubstr("two columns"), HasSubstr("column_names")));
  EXPECT_THAT(read_all(scratch.write("d.csv", "a\n" + std::string(5000, ',') + "\nx\n")),
              ElementsAre(HasSubstr("more than 4096"), "3 {\"a\":\"x\"}"));
}

TEST(PlainText, ARowIsALineAParagraphTheDocumentOrWhatStandsBeforeASeparator) {
  Scratch scratch;
  const auto path =
      scratch.write("a.txt", "\xEF\xBB\xBFone\r\ntwo\n\n \nthree\n<|endoftext|>\n\nfour\n\nfive");
  EXPECT_THAT(read_all(path),
              ElementsAre("1 {\"text\":\"one\"}", "2 {\"text\":\"two\"}", "5 {\"text\":\"three\"}",
                          "6 {\"text\":\"<|endoftext|>\"}", "8 {\"text\":\"four\"}",
                          "10 {\"text\":\"five\"}"));
  EXPECT_THAT(read_all(path, {.sample_by = SampleBy::paragraph}),
              ElementsAre("1 {\"text\":\"one\\ntwo\"}", "5 {\"text\":\"three\\n<|endoftext|>\"}",
                          "8 {\"text\":\"four\"}", "10 {\"text\":\"five\"}"));
  EXPECT_THAT(
      read_all(path, {.sample_by = SampleBy::document}),
      ElementsAre("1 {\"text\":\"one\\ntwo\\n\\n\\nthree\\n<|endoftext|>\\n\\nfour\\n\\nfive\"}"));
  EXPECT_THAT(
      read_all(path, {.sample_by = SampleBy::separator}),
      ElementsAre("1 {\"text\":\"one\\ntwo\\n\\n\\nthree\"}", "8 {\"text\":\"four\\n\\nfive\"}"));
  // By default lines; documents up to the separator where they are wanted and the file has it.
  EXPECT_EQ(read_all(path, {}), read_all(path, {.sample_by = SampleBy::line}));
  EXPECT_EQ(read_all(path, {.documents = true}),
            read_all(path, {.sample_by = SampleBy::separator}));
  EXPECT_EQ(read_all(path, {.separator = "---", .documents = true}),
            read_all(path, {.sample_by = SampleBy::document}));
  EXPECT_THAT(read_all(scratch.write("b.txt", " \n\n"), {.sample_by = SampleBy::document}),
              IsEmpty());
}

TEST(PlainText, AMalformedOrTooLongRowIsNamed) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("a.txt", "ok\n\xff\nfine\n")),
              ElementsAre("1 {\"text\":\"ok\"}", HasSubstr("a.txt:2: expected UTF-8"),
                          "3 {\"text\":\"fine\"}"));
  const auto rows =
      read_all(scratch.write("b.txt", std::string(max_row_bytes + 5, 'x') + "\nfine\n"));
  EXPECT_THAT(rows, ElementsAre(AllOf(HasSubstr("b.txt:1: expected a row of at most 8 MiB"),
                                      HasSubstr("data.sample_by")),
                                "2 {\"text\":\"fine\"}"));
}

TEST(Gzip, EveryTextFormatIsReadThroughIt) {
  Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> table = {
      {"a.jsonl", "{\"n\":1}\n\n{\"n\":2}\nbad\n{\"n\":3}\n"},
      {"a.json", "[{\"n\":1},\n{\"n\":2}]"},
      {"lines.json", "{\"n\":1}\n{\"n\":2}"},
      {"a.csv", "n,m\n1,\"2\n3\"\n"},
      {"a.tsv", "n\tm\n1\t2\n"},
      {"a.txt", "one\n\ntwo\n"}};
  for (const auto& [name, text] : table) {
    auto plain = read_all(scratch.write(name, text)),
         packed = read_all(scratch.write(name + ".gz", gzip(text)));
    for (auto& row : packed)
      if (const auto at = row.find(".gz"); at != std::string::npos) row.erase(at, 3);
    EXPECT_EQ(packed, plain) << name;
    EXPECT_GE(plain.size(), 1u) << name;
  }
  // Content wins over the name, and members stand one behind the other, padded with zeros.
  EXPECT_THAT(read_all(scratch.write(
                  "b.jsonl", gzip("{\"n\":1}\n") + gzip("{\"n\":2}\n") + std::string(700, '\0'))),
              ElementsAre("1 {\"n\":1}", "2 {\"n\":2}"));
}

TEST(Gzip, DamageIsFoundWhereItStands) {
  Scratch scratch;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "{\"n\":" + std::to_string(i * 7919 % 10007) + "}\n";
  const auto whole = gzip(text);
  const auto cut = read_all(scratch.write("cut.jsonl.gz", whole.substr(0, whole.size() / 2)));
  EXPECT_THAT(cut.back(), AllOf(HasSubstr("cut.jsonl.gz"), HasSubstr("truncated")));
  auto flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x55);
  EXPECT_THAT(read_all(scratch.write("flipped.jsonl.gz", flipped)).back(),
              HasSubstr("flipped.jsonl.gz"));
  auto sum = whole;
  sum[sum.size() - 6] = static_cast<char>(sum[sum.size() - 6] ^ 1);
  EXPECT_THAT(read_all(scratch.write("sum.jsonl.gz", sum)).back(),
              AllOf(HasSubstr("!"), HasSubstr("damage")));
  EXPECT_THAT(read_all(scratch.write("more.jsonl.gz", gzip("{\"n\":1}\n") + "garbage")).back(),
              HasSubstr("damage"));
}

TEST(Gzip, ATrapThatExpandsWithoutEndIsRefused) {
  Scratch scratch;
  std::string trap;
  const auto block = gzip(std::string(32u << 20, '\n'), 9);
  for (int i = 0; i < 4; ++i) trap += block;
  EXPECT_THAT(read_all(scratch.write("trap.jsonl.gz", trap)),
              ElementsAre(AllOf(HasSubstr("trap.jsonl.gz"), HasSubstr("beyond 300 to 1"))));
  EXPECT_THAT(read_all(scratch.write("trap.json.gz", gzip("[") + trap))[0],
              AllOf(HasSubstr("!!"), HasSubstr("trap.json.gz")));
}

TEST(EveryFormat, SeekGoesToTheExactRow) {
  Scratch scratch;
  const std::vector<std::string> paths = {
      scratch.write("a.csv", "n\n0\n1\n\"a\"b\n3\n"), scratch.write("a.tsv", "n\n0\n\n1\n2\n3\n"),
      scratch.write("a.txt", "0\n\n1\n2\n3\n"),
      scratch.write("a.jsonl.gz", gzip("{\"n\":\"0\"}\n{\"n\":\"1\"}\nbad\n{\"n\":\"3\"}\n"))};
  for (const auto& path : paths) {
    auto reader = value_or_throw(open_rows(path));
    for (const int n : {3, 0, 1, 3}) {
      ASSERT_TRUE(reader->seek(n));
      const auto row = value_or_throw(reader->next());
      ASSERT_TRUE(row) << path;
      EXPECT_EQ(row->index, n) << path;
      EXPECT_EQ(row->value.object()[0].second.string(), std::to_string(n)) << path;
    }
    ASSERT_TRUE(reader->seek(4));
    EXPECT_FALSE(value_or_throw(reader->next())) << path;
    ASSERT_TRUE(reader->seek(99));
    EXPECT_FALSE(value_or_throw(reader->next())) << path;
  }
}

TEST(EveryFormat, DamagedTextIsRefusedOrReadNeverTrusted) {
  Scratch scratch;
  const std::string table = "a,\"b\"\n1,\"x \"\"y\"\"\n\"\r\n,é\n";
  const auto packed = gzip(table);
  for (const auto& [name, text] :
       {std::pair{"a.csv", table}, {"a.tsv", table}, {"a.txt", table}, {"b.csv", packed}})
    expect_damage_refused(scratch, name, text, std::string_view("\",\n\0\xff", 5), 20);
}

TEST(DataFiles, APatternStandsForTheFilesThatItFits) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("x/y"));
  std::filesystem::create_directories(scratch.path(".hidden"));
  const auto a = scratch.write("a.jsonl", ""), b = scratch.write("b.jsonl", ""),
             c = scratch.write("c.csv.gz", ""), d = scratch.write("x/d.jsonl", ""),
             e = scratch.write("x/y/e.jsonl", "");
  scratch.write("README.md", "");
  scratch.write(".hidden/f.jsonl", "");
  const auto found = [&](const std::string& pattern) {
    return value_or_throw(list_data_files({scratch.path(pattern)}));
  };
  EXPECT_THAT(found("*.jsonl"), ElementsAre(a, b));
  EXPECT_THAT(found("[b-z]*"), ElementsAre(b, c));
  EXPECT_THAT(found("**/*.jsonl"), ElementsAre(a, b, d, e));
  EXPECT_THAT(found("**"), ElementsAre(a, b, c, d, e));
  EXPECT_THAT(found("?/*/e.jsonl"), ElementsAre(e));
  EXPECT_THAT(found("x/../a.json*"), ElementsAre(scratch.path("x/../a.jsonl")));
  EXPECT_THAT(list_data_files({scratch.path("*.parquet")}).error().what,
              HasSubstr("no data file fits this pattern"));
}

TEST(DataFiles, AHuggingFaceFolderNamesItsFilesItself) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("set/train"));
  std::filesystem::create_directories(scratch.path("set/test"));
  scratch.write("set/dataset_dict.json", R"({"splits": ["test", "train"]})");
  scratch.write("set/train/dataset_info.json", "{}");
  scratch.write("set/train/state.json",
                R"({"_data_files": [{"filename": "data-b.arrow"}, {"filename": "data-a.arrow"}]})");
  EXPECT_THAT(
      value_or_throw(list_data_files({scratch.path("set")})),
      ElementsAre(scratch.path("set/train/data-b.arrow"), scratch.path("set/train/data-a.arrow")));
  scratch.write("set/dataset_dict.json", R"({"splits": ["test", "validation"]})");
  EXPECT_THAT(list_data_files({scratch.path("set")}).error().what,
              HasSubstr("splits test, validation"));
  for (const auto& [state, words] : std::vector<std::pair<std::string, const char*>>{
           {R"({"_data_files": [{"filename": "../secret"}]})", "a file beside it"},
           {R"({"_data_files": []})", "names no file"},
           {R"({})", "found nothing"},
           {R"({"_data_files": [{"filename": "a"}], "_indices_data_files": [{"filename": "i"}]})",
            "flatten_indices"}}) {
    scratch.write("set/train/state.json", state);
    EXPECT_THAT(list_data_files({scratch.path("set/train")}).error().what, HasSubstr(words));
  }
}

TEST(DataFiles, OfAHuggingFaceCacheTheTrainingSplitIsMeant) {
  Scratch scratch;
  const auto train = scratch.write("gsm8k-train.arrow", "");
  scratch.write("gsm8k-test.arrow", "");
  scratch.write("dataset_info.json", R"({"splits": {"train": {}, "test": {}}})");
  EXPECT_THAT(value_or_throw(list_data_files({scratch.folder()})), ElementsAre(train));
}

TEST(Formats, LinesThatAreOneArrayAreReadAsTheArray) {
  Scratch scratch;
  const std::vector<std::string> expected = {"2 {\"a\":1}", "3 {\"a\":2}"};
  EXPECT_EQ(read_all(scratch.write("a.jsonl", "[\n{\"a\":1},\n{\"a\":2}]\n")), expected);
  EXPECT_EQ(read_all(scratch.write("b.jsonl", "[{\"a\":1},{\"a\":2}]\n")),
            (std::vector<std::string>{"1 {\"a\":1}", "2 {\"a\":2}"}));  // rows, not lines
  // An array that ends with its line is one malformed row among others.
  EXPECT_THAT(read_all(scratch.write("c.jsonl", "[1,2]\n{\"a\":1}\n")),
              ElementsAre(HasSubstr("c.jsonl:1: expected an object"), "2 {\"a\":1}"));
  EXPECT_THAT(read_all(scratch.write("d.jsonl", "[\n{\"a\":1},\n"))[0],
              HasSubstr("the end of the file (it may be truncated)"));
}

TEST(Formats, TextWhoseFirstLineIsAnObjectIsJsonLines) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("a.txt", "\n{\"a\":1}\nnot json\n")),
              ElementsAre("2 {\"a\":1}", HasSubstr("a.txt:3: not valid JSON")));
  EXPECT_THAT(read_all(scratch.write("b.txt", "[\n  {\"a\":1}\n]")), ElementsAre("2 {\"a\":1}"));
  // What only looks like it, and text that is not read by lines, stays text.
  for (const char* text : {"{not json}", "[1] is a footnote", "[", "{", "[]"})
    EXPECT_THAT(read_all(scratch.write("c.txt", text))[0], HasSubstr("{\"text\":")) << text;
  EXPECT_THAT(read_all(scratch.write("d.txt", "{\"a\":1}"), {.sample_by = SampleBy::document}),
              ElementsAre("1 {\"text\":\"{\\\"a\\\":1}\"}"));
}

TEST(Formats, SemicolonsSeparateColumnsWhereTheHeaderHasNoComma) {
  Scratch scratch;
  EXPECT_THAT(read_all(scratch.write("a.csv", "a;\"b;c\"\n1,5;2\n\"x;y\";z\n")),
              ElementsAre("2 {\"a\":\"1,5\",\"b;c\":\"2\"}", "3 {\"a\":\"x;y\",\"b;c\":\"z\"}"));
  EXPECT_THAT(read_all(scratch.write("b.csv", "a;x,b\n1,2\n")),
              ElementsAre("2 {\"a;x\":\"1\",\"b\":\"2\"}"));
  EXPECT_THAT(read_all(scratch.write("c.csv", "one, two;3\n"), {.column_names = {"a", "b"}}),
              ElementsAre("1 {\"a\":\"one\",\"b\":\" two;3\"}"));
  EXPECT_THAT(read_all(scratch.write("d.csv", "1, 2, 3;4\n"), {.column_names = {"a", "b"}}),
              ElementsAre("1 {\"a\":\"1, 2, 3\",\"b\":\"4\"}"));
}

}  // namespace
}  // namespace troupe::engine::data
