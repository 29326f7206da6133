// Data files that are cut, lie about their size, or hold no rows; read by `troupe info` as rows, by
// `troupe train` as examples.
#include <string>

#include "engine/base/text/text.h"
#include "tests/hostile/case.h"

namespace troupe::hostile {

namespace row_files {
namespace {

const std::string lines = "rows.jsonl", list = "rows.json";
constexpr const char* look = "info @/rows.jsonl";
constexpr const char* look_list = "info @/rows.json";
constexpr const char* train =
    "train --algorithm sft --set model=@ --set data.path=@/rows.jsonl --set output=@/out --set "
    "train.steps=1";
constexpr const char* train_list =
    "train --algorithm sft --set model=@ --set data.path=@/rows.json --set output=@/out --set "
    "train.steps=1";
const std::string good = "{\"prompt\":\"a\",\"response\":\"b\"}\n";

auto rows(std::string text) {
  return [text = std::move(text)](const Folder& folder) { folder.model().write(lines, text); };
}
auto list_of(std::string text) {
  return [text = std::move(text)](const Folder& folder) { folder.model().write(list, text); };
}
auto file(std::string name, std::string text) {
  return [name = std::move(name), text = std::move(text)](const Folder& folder) {
    folder.write(name, text);
  };
}

const std::vector<Case> cases = {
    {"RowsNone", rows(""), train, 3, "@/rows.jsonl: expected rows, found none (the file is empty)"},
    {"RowsOfBlankLines", rows("\n\n \n"), train, 3,
     "@/rows.jsonl: expected rows, found none (the file is empty)"},
    {"RowGarbage", rows(good + "garbage\n"), train, 3,
     "@/rows.jsonl:2: not valid JSON at column 1: syntax error while parsing value - invalid "
     "literal"},
    {"RowCutAtTheEnd", rows(good + "{\"prompt\":\"a\",\"resp"), train, 3,
     "@/rows.jsonl:2: not valid JSON at column 19: syntax error while parsing object key - invalid "
     "string: missing closing quote"},
    {"RowOfZeros", rows(good + std::string(64, '\0') + "\n"), train, 3,
     "@/rows.jsonl:2: not valid JSON at column 1: syntax error while parsing value - unexpected "
     "end of input; expected '[', '{', or a "
     "literal"},
    {"RowNotUtf8", rows(good + "{\"prompt\":\"\xe4\",\"response\":\"b\"}\n"), train, 3,
     "@/rows.jsonl:2: not UTF-8 at column 11"},
    {"RowInUtf16", rows(std::string("\xff\xfe{\0}\0\n\0", 8)), train, 6,
     "@/rows.jsonl: UTF-16 text; save it as UTF-8"},
    {"RowWithAKeyTwice", rows("{\"prompt\":\"a\",\"prompt\":\"c\",\"response\":\"b\"}\n"), train, 3,
     "@/rows.jsonl:1: not valid JSON at column 22: the key \"prompt\" occurs twice in one object"},
    {"RowAList", rows("[1,2]\n"), train, 3,
     "@/rows.jsonl: row 1: expected an object ({\"key\": value, ...}), found: integer"},
    {"RowNestedDeeply", rows("{\"prompt\":" + std::string(1'000'000, '[') + "\n"), train, 3,
     "@/rows.jsonl:1: not valid JSON at column 42: nested deeper than 32 levels"},
    {"RowWithANumberBeyondDoubles", rows("{\"prompt\":1e999,\"response\":\"b\"}\n"), train, 3,
     "@/rows.jsonl:1: not valid JSON at column 15: number overflow parsing '1e999'"},
    {"RowOf100Megabytes",
     [](const Folder& f) {
       f.model().repeat(lines, "{\"prompt\":\"", std::string(1024, 'x'), 100 * 1024, "\"}\n");
     },
     train, 3, "@/rows.jsonl:1: expected a row of at most 8 MiB, found 104857613 bytes"},
    {"RowOf100MegabytesInspected",
     [](const Folder& f) {
       f.repeat(lines, "{\"prompt\":\"", std::string(1024, 'x'), 100 * 1024, "\"}\n");
     },
     look, 3, "@/rows.jsonl:1: expected a row of at most 8 MiB, found 104857613 bytes"},
    {"RowOf7Megabytes",
     [](const Folder& f) {
       f.repeat(lines, "{\"prompt\":\"", std::string(1024, 'x'), 7 * 1024, "\"}\n");
     },
     look, 0, "1 row"},
    {"RowOfMillionsOfValues",
     [](const Folder& f) { f.repeat(lines, "{\"prompt\":[0", ",0", 3'000'000, "]}\n"); }, look, 3,
     "@/rows.jsonl:1: not valid JSON at column 2097162: more than 1048576 values"},
    {"RowsOfMillionsOfBrackets", [](const Folder& f) { f.repeat(lines, "", "{}\n", 500'000, ""); },
     look, 3, "500000 rows"},
    {"RowIdsOutsideTheVocabulary", rows("{\"input_ids\":[1,99999],\"labels\":[1,2]}\n"), train, 3,
     "@/rows.jsonl:1: \"input_ids\", item 1: expected a token id from 0 to 511, found 99999"},
    {"RowIdsNegative", rows("{\"input_ids\":[1,-3],\"labels\":[1,2]}\n"), train, 3,
     "@/rows.jsonl:1: \"input_ids\", item 1: expected a token id from 0 to 511, found -3"},
    {"RowIdsOfTwoLengths", rows("{\"input_ids\":[1,2,3],\"labels\":[1,2]}\n"), train, 3,
     "@/rows.jsonl:1: expected as many labels as token ids, found 2 under \"labels\" and 3 under "
     "\"input_ids\""},
    {"RowOfNoKnownForm", rows("{\"x\":1}\n"), train, 3,
     "@/rows.jsonl:1: the row's columns fit no known layout. Known: "},
    {"RowWithoutTheMappedColumn", rows("{\"prompt\":\"a\",\"completion\":\"b\"}\n"),
     cat(train, " --set data.columns.prompt=question"), 2,
     "@/rows.jsonl:1: data.columns maps prompt to \"question\", which this row lacks. It has: "
     "\"prompt\", \"completion\""},
    {"RowWithANumberForText", rows("{\"prompt\":1,\"response\":\"b\"}\n"), train, 3,
     "@/rows.jsonl:1: expected text or a list of messages under \"prompt\", found integer"},
    {"DialogueAText", rows("{\"messages\":\"hello\"}\n"), train, 3,
     "@/rows.jsonl:1: \"messages\": expected a list of messages, found string"},
    {"DialogueOfNobody", rows("{\"messages\":[]}\n"), train, 3,
     "@/rows.jsonl:1: \"messages\": expected a list of messages, found an empty one"},
    {"DialogueOfAnUnknownRole", rows("{\"messages\":[{\"role\":\"ghost\",\"content\":\"boo\"}]}\n"),
     train, 3,
     "@/rows.jsonl:1: \"messages\": the conversation has no assistant message to train on"},
    {"DialogueWithoutContent", rows("{\"messages\":[{\"role\":\"user\"}]}\n"), train, 3,
     "@/rows.jsonl:1: \"messages\": message 1: a message of role \"user\" has no content"},
    {"ListNotClosed", list_of("[{\"prompt\":\"a\",\"response\":\"b\"}"), train_list, 5,
     "@/rows.json:1: expected ',' or ']' after a row, found the end of the file (it may be "
     "truncated)"},
    {"ListWithTextBehind", list_of("[{\"prompt\":\"a\",\"response\":\"b\"}] x"), train_list, 5,
     "@/rows.json:1: expected the end of the file after the list of rows, found \"x\""},
    {"ListWithTwoCommas", list_of("[{},,{}]"), look_list, 5,
     "@/rows.json:1: expected a value, found \",{}]\""},
    {"ListOfBrackets", list_of("[" + std::string(1'000'000, '[')), look_list, 5,
     "@/rows.json:1: expected at most 32 levels of brackets, found \"[[[[[[[[[[[[[[[[[[[[\""},
    {"ListOfTextNotClosed", list_of("[\"" + std::string(1'000'000, 'x')), look_list, 5,
     "@/rows.json:1: expected '\"', found the end of the file (it may be truncated)"},
    {"ListOfNumbers", list_of("[1,2,3]"), look_list, 3,
     "@/rows.json: row 1: expected an object ({\"key\": value, ...}), found: integer"},
    {"ListOfNothing", list_of("[]"), train_list, 3,
     "@/rows.json: expected rows, found none (the file is empty)"},
    {"ListsOfRowsTwice", list_of(R"({"a":[{"x":1}],"b":[{"x":1}]})"), look_list, 6,
     "@/rows.json: two lists of rows, \"a\" and \"b\": keep the one that is meant"},
    {"ListOfMillionsOfRows", [](const Folder& f) { f.repeat(list, "[{}", ",{}", 500'000, "]"); },
     look_list, 3, "500001 rows"},
    {"ParquetOfFourBytes", file("rows.parquet", "PAR1"), "info @/rows.parquet", 5,
     "@/rows.parquet: expected a whole parquet file, found: \"Invalid: Parquet file size is 4 "
     "bytes, smaller than the minimum file footer "
     "(8 bytes)\""},
    {"ParquetOfText", file("rows.parquet", "a,b\n"), "info @/rows.parquet", 5,
     "@/rows.parquet: expected a parquet file (PAR1 at its start), found \"a,b\\n\""},
    {"ParquetCut",
     [](const Folder& f) {
       f.copy("models/digit-completion/train.parquet", "rows.parquet").cut("rows.parquet", -100);
     },
     "info @/rows.parquet", 5,
     "@/rows.parquet: expected a whole parquet file, found: \"Invalid: Parquet magic bytes not "
     "found in footer. Either the file is "
     "corrupted or this is not"},
    {"ParquetWithALyingFooter",
     [](const Folder& f) {
       f.copy("models/digit-completion/train.parquet", "rows.parquet")
           .patch("rows.parquet", -8, "\xff\xff\xff\x7f");
     },
     "info @/rows.parquet", 5,
     "@/rows.parquet: expected a whole parquet file, found: \"Invalid: Parquet file size is 6225 "
     "bytes, smaller than the size reported by "
     "footer's"},
    {"ParquetWithADamagedFooter",
     [](const Folder& f) {
       f.copy("models/digit-completion/train.parquet", "rows.parquet")
           .patch("rows.parquet", -300, std::string(64, '\xff'));
     },
     "info @/rows.parquet", 5,
     "@/rows.parquet: expected a whole parquet file, found: \"Invalid: Expected to read 744 "
     "metadata bytes, but only read 559\""},
    {"ParquetWithDamagedPages",
     [](const Folder& f) {
       f.copy("models/digit-completion/train.parquet", "rows.parquet")
           .patch("rows.parquet", 40, std::string(2000, '\xff'));
     },
     "info @/rows.parquet", 5,
     "@/rows.parquet: expected a whole parquet file, found: \"IOError: Corrupt snappy compressed "
     "data.\""},
    {"ZipOfRows", file("rows.zip", "PK\x03\x04xxxx"), "info @/rows.zip", 6,
     "cannot be used: unknown file type"},
};

}  // namespace
}  // namespace row_files

const std::vector<Case>& row_cases() {
  return row_files::cases;
}

}  // namespace troupe::hostile
