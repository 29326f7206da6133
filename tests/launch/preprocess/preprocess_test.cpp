// `troupe preprocess`. Oracle: the files that Megatron core wrote of the same documents
// (golden/megatron).
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/megatron/indexed_dataset.h"
#include "tests/launch/program.h"
#include "tests/support/golden.h"

namespace troupe::launch {
namespace {

using engine::data::megatron::IndexedDataset;
using engine::data::megatron::TokenType;
using ::testing::HasSubstr;

std::string preprocess_content(const std::string& path) {
  return value_or_throw(read_file(path));
}

std::string stories_tokenizer() {
  return data("models/stories260k/hf");
}

// Runs the command with the tokenizer of stories260k; it must succeed.
ProgramOutput preprocess_ok(const std::string& arguments) {
  const ProgramOutput said =
      run_program(cat("preprocess --tokenizer-name-or-path ", stories_tokenizer(), " ", arguments));
  EXPECT_EQ(said.code, 0) << said.err;
  return said;
}

void expect_equal_files(const std::string& prefix, const std::string& other) {
  for (const char* ending : {".bin", ".idx"})
    EXPECT_TRUE(preprocess_content(prefix + ending) == preprocess_content(other + ending))
        << prefix << ending;
}

// The documents of the golden files as rows.
std::string golden_rows(const std::string& name) {
  const Json all = value_or_throw(read_json(test::golden_folder() + "/megatron/golden.json"));
  std::string out;
  for (const Json& text : all.find("documents")->find(name)->array())
    out += Json(Json::Object{{"id", 1}, {"text", text}}).dump() + "\n";
  return out;
}

std::string csv_of(const std::string& rows) {
  std::string out = "text,id\n";
  for (const Json& row : json_lines(rows)) {
    out += '"';
    for (const char c : row.find("text")->string()) out += c == '"' ? "\"\"" : std::string(1, c);
    out += "\",1\n";
  }
  return out;
}

TEST(Preprocess, WritesTheBytesOfMegatron) {
  SKIP_WITHOUT_GOLDEN("megatron/golden.json");
  const std::string folder = scratch_folder();
  for (const char* name : {"a", "b"}) {
    value_or_throw(write_file_durably(cat(folder, "/", name, ".jsonl"), golden_rows(name)));
    preprocess_ok(cat("--no-special-tokens --append-eod --input ", folder, "/", name,
                      ".jsonl --output-prefix ", folder, "/", name));
    expect_equal_files(cat(folder, "/", name, "_text_document"),
                       cat(test::golden_folder(), "/megatron/", name, "_text_document"));
  }
  preprocess_ok(cat("--no-special-tokens --append-eod --token-type int32 --input ", folder,
                    "/a.jsonl --output-prefix ", folder, "/a_int32"));
  expect_equal_files(folder + "/a_int32_text_document",
                     test::golden_folder() + "/megatron/a_int32_text_document");
}

TEST(Preprocess, ReadsJsonAndCsvAlike) {
  const std::string folder = scratch_folder(), rows = golden_rows("a");
  std::string list = rows;
  std::replace(list.begin(), list.end(), '\n', ',');
  list.back() = ']';
  value_or_throw(write_file_durably(folder + "/rows.jsonl", rows));
  value_or_throw(write_file_durably(folder + "/rows.json", "[" + list));
  value_or_throw(write_file_durably(folder + "/rows.csv", csv_of(rows)));
  for (const char* format : {"jsonl", "json", "csv"})
    preprocess_ok(
        cat("--input ", folder, "/rows.", format, " --output-prefix ", folder, "/", format));
  expect_equal_files(folder + "/json_text_document", folder + "/jsonl_text_document");
  expect_equal_files(folder + "/csv_text_document", folder + "/jsonl_text_document");
}

TEST(Preprocess, ReadsTablesAndTextAlike) {
  const std::string folder = scratch_folder();
  preprocess_ok(cat("--json-keys prompt answer --input ", TROUPE_QUICKSTART,
                    "/train.jsonl --output-prefix ", folder, "/lines"));
  if (std::filesystem::exists(TROUPE_QUICKSTART "/train.parquet")) {
    const ProgramOutput said = run_program(cat(
        "preprocess --tokenizer-name-or-path ", stories_tokenizer(), " --json-keys answer --input ",
        TROUPE_QUICKSTART, "/train.parquet --output-prefix ", folder, "/table"));
    if (said.code == 0) {
      expect_equal_files(folder + "/table_answer_document", folder + "/lines_answer_document");
    } else {
      EXPECT_THAT(said.err, HasSubstr("Arrow"));
    }
  }
  value_or_throw(write_file_durably(folder + "/a.txt", "One day.\n\nTwo days.\n"));
  value_or_throw(write_file_durably(folder + "/a.jsonl",
                                    "{\"text\":\"One day.\"}\n{\"text\":\"Two days.\"}\n"));
  for (const char* format : {"txt", "jsonl"})
    preprocess_ok(
        cat("--input ", folder, "/a.", format, " --output-prefix ", folder, "/a_", format));
  expect_equal_files(folder + "/a_txt_text_document", folder + "/a_jsonl_text_document");
}

TEST(Preprocess, MakesADatasetOfEachKey) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/a.jsonl",
                                    "{\"instruction\":\"Say it.\",\"output\":\"It.\"}\n"
                                    "{\"instruction\":\"\",\"output\":\"Once more\"}\n"));
  const ProgramOutput said =
      preprocess_ok(cat("--json-keys instruction output --append-eod --input ", folder,
                        "/a.jsonl --output-prefix ", folder, "/sub/a"));
  EXPECT_EQ(said.out,
            cat(folder, "/sub/a_instruction_document\n", folder, "/sub/a_output_document\n"));
  const auto first = value_or_throw(IndexedDataset::open(folder + "/sub/a_instruction_document"));
  const auto second = value_or_throw(IndexedDataset::open(folder + "/sub/a_output_document"));
  EXPECT_EQ(first.type(), TokenType::u16);
  // An empty text is a document without sequences, as in Megatron.
  EXPECT_EQ(first.documents(), 2);
  EXPECT_EQ(first.sequences(), 1);
  EXPECT_EQ(second.sequences(), 2);
  const auto tokens = value_or_throw(second.sequence(0));
  EXPECT_EQ(tokens.front(), 1) << "the tokenizer's BOS";
  EXPECT_EQ(tokens.back(), 2) << "its end token";
}

TEST(Preprocess, DoesNotDependOnTheNumberOfThreads) {
  const std::string folder = scratch_folder();
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += golden_rows(i % 2 ? "a" : "b");
  value_or_throw(write_file_durably(folder + "/a.jsonl", rows));
  const std::string input = cat("--input ", folder, "/a.jsonl --output-prefix ", folder);
  preprocess_ok(input + "/one");
  preprocess_ok(input + "/sixteen --workers 16");
  preprocess_ok(input + "/subs --workers 2 --n-subs 5");
  expect_equal_files(folder + "/sixteen_text_document", folder + "/one_text_document");
  expect_equal_files(folder + "/subs_text_document", folder + "/one_text_document");
}

TEST(Preprocess, MergesTheGroupsOfAFolder) {
  const std::string folder = scratch_folder(), rows = golden_rows("a");
  const std::size_t half = rows.find('\n', rows.size() / 2) + 1;
  value_or_throw(write_file_durably(folder + "/all.jsonl", rows));
  value_or_throw(write_file_durably(folder + "/1.jsonl", rows.substr(0, half)));
  value_or_throw(write_file_durably(folder + "/2.jsonl", rows.substr(half)));
  preprocess_ok(cat("--input ", folder, "/all.jsonl --output-prefix ", folder, "/whole/all"));
  for (const char* part : {"1", "2"})
    preprocess_ok(
        cat("--input ", folder, "/", part, ".jsonl --output-prefix ", folder, "/parts/00", part));
  const std::string merge = cat("preprocess --input ", folder, "/parts --output-prefix ", folder,
                                "/merged --merge-group-keys ");
  EXPECT_EQ(run_program(merge + "text_document").code, 0);
  expect_equal_files(folder + "/merged_text_document", folder + "/whole/all_text_document");
  const ProgramOutput none = run_program(merge + "labels");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("no .idx file has \"labels\" in its name"));
}

TEST(Preprocess, StopsAfterMaxSamples) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/a.jsonl", golden_rows("a")));
  preprocess_ok(cat("--max-samples 7 --input ", folder, "/a.jsonl --output-prefix ", folder, "/a"));
  EXPECT_EQ(value_or_throw(IndexedDataset::open(folder + "/a_text_document")).documents(), 7);
}

TEST(Preprocess, StatesWhatIsWrong) {
  const std::string folder = scratch_folder();
  value_or_throw(write_file_durably(folder + "/a.jsonl", "{\"body\":\"x\"}\n"));
  value_or_throw(write_file_durably(folder + "/b.jsonl", "{\"text\":3}\n"));
  const auto said = [&](const std::string& arguments) {
    return run_program(
        cat("preprocess --output-prefix ", folder, "/o --input ", folder, arguments));
  };
  const std::string tokenizer = " --tokenizer-name-or-path " + stories_tokenizer();
  EXPECT_THAT(said("/a.jsonl" + tokenizer).err,
              HasSubstr("a.jsonl:1: no column \"text\"; its columns: \"body\"; --json-keys names "
                        "those to tokenize"));
  EXPECT_EQ(said("/a.jsonl" + tokenizer).code, 3);
  EXPECT_THAT(said("/b.jsonl" + tokenizer).err,
              HasSubstr("b.jsonl:1: column \"text\": expected text, found integer"));
  EXPECT_EQ(said("/none.jsonl" + tokenizer).code, 4);
  EXPECT_EQ(said("/a.jsonl").code, 2);
  EXPECT_THAT(said("/a.jsonl --json-keys a a" + tokenizer).err, HasSubstr("\"a\" is given twice"));
  EXPECT_THAT(said("/a.jsonl --json-keys ../a" + tokenizer).err,
              HasSubstr("expected a name that can be part of a file's name"));
  EXPECT_EQ(said("/a.jsonl --token-type float" + tokenizer).code, 2);
}

}  // namespace
}  // namespace troupe::launch
