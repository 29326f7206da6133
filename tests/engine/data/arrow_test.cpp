// Arrow's own integration files and parquet-testing's, read exactly: expected rows come from
// Arrow's JSON form of the files, and from pyarrow (tests/data/README.md).
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/readers/row_reader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string format_file(const std::string& name) {
  return data_file("formats/" + name);
}

// Without Arrow these tests are skipped by name (parquet_test.cpp tests the refusal).
class Arrow : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto reader = open_rows(format_file("arrow/generated_null.stream"));
    if (!reader && reader.error().code == Errc::unsupported) GTEST_SKIP() << reader.error().what;
  }
};

std::vector<std::string> texts_of_rows(const std::string& path) {
  auto reader = value_or_throw(open_rows(path));
  std::vector<std::string> rows;
  while (auto row = value_or_throw(reader->next())) rows.push_back(row->value.dump());
  return rows;
}

std::vector<std::string> expected_rows(const std::string& name) {
  return texts_of_rows(format_file(name + "_rows.jsonl"));
}

TEST_F(Arrow, IntegrationFilesAndStreamsAreReadExactly) {
  for (const auto& [name, rows] : {std::pair{"dictionary", 17u},
                                   {"map", 17u},
                                   {"nested", 17u},
                                   {"null", 10u},
                                   {"primitive", 37u},
                                   {"primitive_no_batches", 0u},
                                   {"primitive_zerolength", 0u}}) {
    const std::string path = "arrow/generated_" + std::string(name);
    const auto expected = expected_rows(path);
    EXPECT_EQ(texts_of_rows(format_file(path + ".arrow_file")), expected) << name;
    EXPECT_EQ(texts_of_rows(format_file(path + ".stream")), expected) << name;
    EXPECT_EQ(expected.size(), rows) << name;
  }
}

TEST_F(Arrow, ViewsAreReadAsTheValuesTheyShow) {
  for (const auto& [file, rows] : {std::pair{"arrow/polars_views.arrow", "arrow/polars_views"},
                                   std::pair{"arrow/list_views.arrow_file", "arrow/list_views"}}) {
    const auto expected = expected_rows(rows);
    EXPECT_EQ(texts_of_rows(format_file(file)), expected) << file;
    EXPECT_GE(expected.size(), 4u);
  }
}

TEST_F(Arrow, FloatsThatAreWholeAreTokenIds) {
  const auto data = value_or_throw(
      load<SftExample>({.paths = {format_file("parquet/float_ids.parquet")}}, ByteEncoder()));
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(text_of_ids(data.examples[0].ids), "Hi<eos>");
  EXPECT_EQ(data.examples[1].weights, (std::vector<float>{0, 1, 1}));
}

TEST_F(Arrow, ParquetTestingIsReadExactly) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(format_file("parquet"))) {
    const auto path = entry.path().string();
    const auto expected = path.substr(0, path.size() - 8) + "_rows.jsonl";
    if (!path.ends_with(".parquet") || !std::filesystem::exists(expected)) continue;
    EXPECT_EQ(texts_of_rows(path), texts_of_rows(expected)) << path;
    ++files;
  }
  EXPECT_GE(files, 18u);
}

TEST_F(Arrow, WhatHuggingFaceAndVerlWroteBecomesRowsToTrainOn) {
  const auto gsm8k = value_or_throw(
      load<SftExample>({.paths = {format_file("arrow/gsm8k_train_head.arrow")}}, ByteEncoder()));
  const auto plain = value_or_throw(load<SftExample>(
      {.paths = {data_file("datasets/math/gsm8k_train_head.jsonl")}}, ByteEncoder()));
  ASSERT_EQ(gsm8k.examples.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(gsm8k.examples[i].ids, plain.examples[i].ids) << i;
  const auto prompts = value_or_throw(load<PromptRow>(
      {.paths = {format_file("parquet/gsm8k_rl_train_head.parquet")}}, ByteEncoder()));
  ASSERT_EQ(prompts.examples.size(), 12u);
  EXPECT_EQ(prompts.examples[0].answer, Json("72"));
  EXPECT_EQ(*prompts.examples[0].columns.find("data_source"), Json("openai/gsm8k"));
  EXPECT_EQ(*prompts.examples[3].columns.find("extra_info")->find("index"), Json(3));
  EXPECT_THAT(prompts.examples[0].text, testing::StartsWith("<user>Natalia sold clips"));
}

TEST_F(Arrow, SeekGoesToTheExactRowAcrossBatches) {
  const auto path = format_file("arrow/gsm8k_train_head.arrow");
  const auto all = texts_of_rows(path);
  auto reader = value_or_throw(open_rows(path));
  for (const std::int64_t n : {17, 0, 8, 7, 19, 3}) {
    ASSERT_TRUE(reader->seek(n));
    const auto row = value_or_throw(reader->next());
    ASSERT_TRUE(row);
    EXPECT_EQ(row->value.dump(), all[static_cast<std::size_t>(n)]);
    EXPECT_EQ(row->where(), path + ": row " + std::to_string(n + 1));
  }
  ASSERT_TRUE(reader->seek(20));
  EXPECT_FALSE(value_or_throw(reader->next()));
}

TEST_F(Arrow, ADamagedFileIsRefusedOrReadNeverTrusted) {
  Scratch scratch;
  for (const char* name :
       {"nested.arrow_file", "nested.stream", "dictionary.stream", "map.arrow_file"}) {
    const auto whole =
        value_or_throw(read_file(format_file("arrow/generated_" + std::string(name))));
    const auto read = [&](const std::string& bytes) {
      auto reader = open_rows(scratch.write("damaged.arrow", bytes));
      if (!reader) {
        EXPECT_THAT(reader.error().what, HasSubstr("damaged.arrow"));
        return;
      }
      for (int n = 0; n < 200; ++n) {
        const auto row = (*reader)->next();
        if (row ? !*row : row.error().code != Errc::bad_input) break;
      }
    };
    for (std::size_t size = 0; size < whole.size(); size += 31) read(whole.substr(0, size));
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      auto bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
      read(bytes);
    }
  }
}

TEST_F(Arrow, ACutFileSaysThatItIsNotWhole) {
  Scratch scratch;
  const auto whole = value_or_throw(read_file(format_file("arrow/generated_nested.arrow_file")));
  const auto cut = open_rows(scratch.write("cut.arrow", whole.substr(0, whole.size() / 2)));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::corrupt);
  EXPECT_THAT(cut.error().what,
              AllOf(HasSubstr("cut.arrow"), HasSubstr("a whole Arrow IPC file or stream")));
}

}  // namespace
}  // namespace troupe::engine::data
