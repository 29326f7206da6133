// Reading and writing .bin and .idx. Oracles: the format's worked example, and files that Megatron
// core wrote (golden/megatron, or those of TROUPE_GOLDEN).
#include <gmock/gmock.h>

#include <filesystem>
#include <limits>

#include "engine/base/text/text.h"
#include "tests/engine/data/megatron/indexed_files.h"
#include "tests/support/golden.h"

namespace troupe::engine::data::megatron {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;

std::vector<std::string> golden_prefixes() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden_folder() + "/megatron"))
    if (entry.path().extension() == ".idx")
      out.push_back(entry.path().string().substr(0, entry.path().string().size() - 4));
  std::ranges::sort(out);
  return out;
}

TEST(IndexedDataset, WritesTheBytesOfTheExample) {
  const Scratch scratch;
  const auto prefix = write_documents(scratch, "two", TokenType::i32, {{5, 6, 7}, {8, 9}});
  EXPECT_EQ(content(prefix + ".bin"), example_data());
  EXPECT_EQ(content(prefix + ".idx"), example_index());
  EXPECT_FALSE(std::filesystem::exists(prefix + ".idx.partial"));
}

TEST(IndexedDataset, ReadsTheExample) {
  const Scratch scratch;
  scratch.write("two.bin", example_data());
  scratch.write("two.idx", example_index());
  const auto data = value_or_throw(IndexedDataset::open(scratch.path("two")));
  EXPECT_EQ(data.type(), TokenType::i32);
  EXPECT_EQ(data.documents(), 2);
  EXPECT_EQ(data.tokens(), 5);
  EXPECT_THAT(value_or_throw(data.sequence(0)), ElementsAre(5, 6, 7));
  Tokens part;
  value_or_throw(data.append(1, 1, 1, part));
  EXPECT_THAT(part, ElementsAre(9));
}

TEST(IndexedDataset, WritesFilesOfMegatronAgainByteForByte) {
  SKIP_WITHOUT_GOLDEN("megatron");
  const auto prefixes = golden_prefixes();
  ASSERT_FALSE(prefixes.empty());
  const Scratch scratch;
  for (const auto& prefix : prefixes) {
    const auto data = value_or_throw(IndexedDataset::open(prefix));
    EXPECT_GT(data.tokens(), 0) << prefix;
    auto writer = value_or_throw(IndexedDatasetWriter::create(scratch.path("copy"), data.type()));
    for (std::int64_t document = 0; document < data.documents(); ++document) {
      for (auto i = data.first_sequence(document); i < data.first_sequence(document + 1); ++i)
        value_or_throw(writer.add_sequence(value_or_throw(data.sequence(i))));
      value_or_throw(writer.end_document());
    }
    value_or_throw(writer.finish());
    EXPECT_TRUE(content(scratch.path("copy.bin")) == content(prefix + ".bin")) << prefix;
    EXPECT_TRUE(content(scratch.path("copy.idx")) == content(prefix + ".idx")) << prefix;
  }
}

TEST(IndexedDataset, KeepsTheTokensOfEveryIntegerType) {
  const Scratch scratch;
  const auto kept = [&](TokenType type, const Tokens& tokens) {
    const auto prefix = write_documents(scratch, to_string(type), type, {tokens, {}});
    const auto data = value_or_throw(IndexedDataset::open(prefix));
    EXPECT_EQ(data.type(), type);
    EXPECT_EQ(data.documents(), 2);
    EXPECT_EQ(value_or_throw(data.sequence(0)), tokens) << to_string(type);
    EXPECT_EQ(content(prefix + ".bin").size(), tokens.size() * bytes_of(type));
  };
  constexpr auto smallest = std::numeric_limits<std::int32_t>::min();
  constexpr auto largest = std::numeric_limits<std::int32_t>::max();
  kept(TokenType::u8, {0, 255});
  kept(TokenType::i8, {-128, 127});
  kept(TokenType::i16, {-32768, 32767});
  kept(TokenType::u16, {0, 65535});
  kept(TokenType::i32, {smallest, -100, largest});
  kept(TokenType::i64, {smallest, -100, largest});
}

TEST(IndexedDataset, RefusesATokenOutsideItsType) {
  const Scratch scratch;
  auto writer = value_or_throw(IndexedDatasetWriter::create(scratch.path("a"), TokenType::u16));
  EXPECT_EQ(writer.add_sequence(Tokens{65536}).error().what,
            "token 65536 does not fit into 16 unsigned bits");
  EXPECT_FALSE(writer.add_sequence(Tokens{-100}).has_value());
  EXPECT_EQ(IndexedDatasetWriter::create(scratch.path("b"), TokenType::f32).error().code,
            Errc::unsupported);
}

TEST(IndexedDataset, RefusesATokenBeyond32Bits) {
  const Scratch scratch;
  const auto prefix = write_documents(scratch, "wide", TokenType::i64, {{1, 2}});
  std::string bytes;
  for (const std::int64_t token : {std::int64_t{1}, std::int64_t{1} << 40}) put(bytes, token);
  scratch.write("wide.bin", bytes);
  const auto data = value_or_throw(IndexedDataset::open(prefix));
  EXPECT_THAT(
      data.sequence(0).error().what,
      HasSubstr("wide.bin: sequence 0: expected token ids of 32 bits, found 1099511627776"));
}

TEST(IndexedDataset, HasTheWidthThatMegatronChooses) {
  EXPECT_EQ(token_type_for(512), TokenType::u16);
  EXPECT_EQ(token_type_for(65499), TokenType::u16);
  EXPECT_EQ(token_type_for(65500), TokenType::i32);
}

// What a killed program leaves behind its last sync() is removed.
TEST(IndexedDataset, ContinuesAtTheLastSync) {
  const Scratch scratch;
  const std::string prefix = scratch.path("part");
  IndexedDatasetWriter::Position position;
  {
    auto writer = value_or_throw(IndexedDatasetWriter::create(prefix, TokenType::u16));
    value_or_throw(writer.add_sequence(Tokens{1, 2, 3}));
    value_or_throw(writer.end_document());
    value_or_throw(writer.add_sequence(Tokens{4}));
    position = value_or_throw(writer.sync());
    value_or_throw(writer.add_sequence(Tokens{100, 100}));
    value_or_throw(writer.sync());
  }
  EXPECT_FALSE(std::filesystem::exists(prefix + ".idx"));
  auto writer = value_or_throw(IndexedDatasetWriter::open(prefix, TokenType::u16, position));
  EXPECT_EQ(writer.tokens(), 4);
  EXPECT_EQ(writer.documents(), 1);
  value_or_throw(writer.add_sequence(Tokens{5}));
  value_or_throw(writer.end_document());
  value_or_throw(writer.finish());

  auto whole = value_or_throw(IndexedDatasetWriter::create(scratch.path("whole"), TokenType::u16));
  value_or_throw(whole.add_sequence(Tokens{1, 2, 3}));
  value_or_throw(whole.end_document());
  value_or_throw(whole.add_sequence(Tokens{4}));
  value_or_throw(whole.add_sequence(Tokens{5}));
  value_or_throw(whole.end_document());
  value_or_throw(whole.finish());
  EXPECT_EQ(content(prefix + ".bin"), content(scratch.path("whole.bin")));
  EXPECT_EQ(content(prefix + ".idx"), content(scratch.path("whole.idx")));
}

TEST(IndexedDataset, DoesNotContinueFilesThatLostBytes) {
  const Scratch scratch;
  const std::string prefix = scratch.path("part");
  IndexedDatasetWriter::Position position;
  {
    auto writer = value_or_throw(IndexedDatasetWriter::create(prefix, TokenType::u16));
    value_or_throw(writer.add_sequence(Tokens{1, 2, 3}));
    position = value_or_throw(writer.sync());
  }
  std::filesystem::resize_file(prefix + ".bin", 5);
  EXPECT_THAT(IndexedDatasetWriter::open(prefix, TokenType::u16, position).error().what,
              HasSubstr("part.bin: expected at least the 6 bytes that were written before, found "
                        "5; remove it to start over"));
  scratch.write("part.bin", "123456");
  position.entries = 0;
  EXPECT_THAT(IndexedDatasetWriter::open(prefix, TokenType::u16, position).error().what,
              HasSubstr("its lengths are 0 tokens, but "));
}

TEST(IndexedDataset, IsNotWrittenThroughASymbolicLink) {
  const Scratch scratch;
  scratch.write("other", "kept");
  std::filesystem::create_symlink(scratch.path("other"), scratch.path("a.bin"));
  EXPECT_FALSE(IndexedDatasetWriter::create(scratch.path("a"), TokenType::u16).has_value());
  EXPECT_EQ(content(scratch.path("other")), "kept");
}

TEST(IndexedDataset, HasOneWriter) {
  const Scratch scratch;
  const auto first =
      value_or_throw(IndexedDatasetWriter::create(scratch.path("a"), TokenType::u16));
  EXPECT_THAT(IndexedDatasetWriter::create(scratch.path("a"), TokenType::u16).error().what,
              HasSubstr("a.bin: another process writes this file"));
}

TEST(IndexedDataset, MergesDatasetsOfOneType) {
  const Scratch scratch;
  const auto first = write_documents(scratch, "first", TokenType::u16, {{1, 2}, {3}});
  const auto second = write_documents(scratch, "second", TokenType::u16, {{4}, {}});
  const auto other = write_documents(scratch, "other", TokenType::i32, {{4}});
  const auto both = write_documents(scratch, "both", TokenType::u16, {{1, 2}, {3}, {4}, {}});
  auto writer = value_or_throw(IndexedDatasetWriter::create(scratch.path("m"), TokenType::u16));
  for (const auto& prefix : {first, second})
    value_or_throw(writer.add_dataset(value_or_throw(IndexedDataset::open(prefix))));
  EXPECT_THAT(writer.add_dataset(value_or_throw(IndexedDataset::open(other))).error().what,
              HasSubstr("expected the type of the datasets before, uint16, found int32"));
  value_or_throw(writer.finish());
  EXPECT_EQ(content(scratch.path("m.bin")), content(both + ".bin"));
  EXPECT_EQ(content(scratch.path("m.idx")), content(both + ".idx"));
}

}  // namespace
}  // namespace troupe::engine::data::megatron
