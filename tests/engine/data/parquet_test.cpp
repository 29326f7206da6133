#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/data/readers/row_reader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;

// Parquet is optional: without Arrow these tests are skipped by name, and the refusal is what is
// tested.
class Parquet : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto reader = open_rows(data_file("models/digit-completion/test.parquet"));
    if (reader) return;
    EXPECT_EQ(reader.error().code, Errc::unsupported);
    EXPECT_THAT(reader.error().what, HasSubstr("cmake/fetch_arrow.sh"));
    GTEST_SKIP() << reader.error().what;
  }
};

std::vector<Json> read_rows(const std::string& path) {
  auto reader = value_or_throw(open_rows(path));
  std::vector<Json> rows;
  while (auto row = value_or_throw(reader->next())) rows.push_back(std::move(row->value));
  return rows;
}

void expect_prompts(const std::string& parquet, const std::string& answers, std::size_t count) {
  const auto rows = read_rows(data_file("models/digit-completion/" + parquet)),
             expected = read_rows(data_file("models/digit-completion/" + answers));
  ASSERT_EQ(rows.size(), count);
  ASSERT_EQ(expected.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* prompt = rows[i].find("prompt");
    ASSERT_TRUE(prompt && prompt->is_array()) << rows[i].dump();
    ASSERT_EQ(prompt->array().size(), 1u);
    EXPECT_EQ(*prompt->array()[0].find("content"), *expected[i].find("prompt")) << i;
    EXPECT_EQ(*prompt->array()[0].find("role"), Json("user"));
  }
}

TEST_F(Parquet, DigitCompletionIsReadExactly) {
  expect_prompts("train.parquet", "train_answers.jsonl", 800);
  expect_prompts("test.parquet", "test_answers.jsonl", 200);
}

// Written by pyarrow, expected values by Python's json: integers, nulls, dictionaries, lists of
// structs, nested lists; three row groups.
TEST_F(Parquet, EveryKindOfColumnBecomesItsJsonValue) {
  const auto rows = read_rows(data_file("datasets/parquet/kinds.parquet"));
  ASSERT_EQ(rows.size(), 2500u);
  for (const auto& expected : read_rows(data_file("datasets/parquet/kinds_expected.jsonl"))) {
    const auto& row = rows[static_cast<std::size_t>(expected.find("row")->integer())];
    EXPECT_EQ(row.dump(), expected.find("value")->dump());
  }
}

TEST_F(Parquet, SeekGoesToTheExactRowAcrossGroupsAndBatches) {
  const auto path = data_file("datasets/parquet/kinds.parquet");
  auto reader = value_or_throw(open_rows(path));
  for (const std::int64_t n : {1199, 0, 1200, 1023, 1024, 2400, 2399, 2499, 7}) {
    ASSERT_TRUE(reader->seek(n));
    for (auto at = n; at < std::min<std::int64_t>(n + 3, 2500); ++at) {
      const auto row = value_or_throw(reader->next());
      ASSERT_TRUE(row);
      EXPECT_EQ(row->index, at);
      EXPECT_EQ(row->value.find("id")->integer(), at - 3);
      EXPECT_EQ(row->where(), path + ": row " + std::to_string(at + 1));
    }
  }
  ASSERT_TRUE(reader->seek(2500));
  EXPECT_FALSE(value_or_throw(reader->next()));
  EXPECT_FALSE(value_or_throw(reader->next()));
}

TEST_F(Parquet, ADamagedFileIsRefusedOrReadNeverTrusted) {
  const auto whole = value_or_throw(read_file(data_file("models/digit-completion/test.parquet")));
  Scratch scratch;
  for (std::size_t size = 4; size < whole.size(); size += 97) {
    const auto reader = open_rows(scratch.write("cut.parquet", whole.substr(0, size)));
    ASSERT_FALSE(reader) << size;
    EXPECT_THAT(reader.error().what, HasSubstr("cut.parquet"));
  }
  for (std::size_t at = 4; at < whole.size(); at += 13) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    auto reader = open_rows(scratch.write("flipped.parquet", bytes));
    for (int n = 0; reader && n < 1000; ++n) {
      const auto row = (*reader)->next();
      if (row ? !*row : row.error().code != Errc::bad_input) break;
    }
  }
}

}  // namespace
}  // namespace troupe::engine::data
