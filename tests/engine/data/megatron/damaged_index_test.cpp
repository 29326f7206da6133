// Index files that lie about themselves.
#include <gmock/gmock.h>

#include <random>

#include "engine/base/text/text.h"
#include "tests/engine/data/megatron/indexed_files.h"

namespace troupe::engine::data::megatron {
namespace {

using ::testing::HasSubstr;

// Opens the example with other bytes from `at` on.
Result<IndexedDataset> patched(const Scratch& scratch, std::size_t at, std::string_view bytes) {
  std::string index = example_index();
  index.replace(at, bytes.size(), bytes);
  scratch.write("two.bin", example_data());
  scratch.write("two.idx", index);
  return IndexedDataset::open(scratch.path("two"));
}

template <class T>
Result<IndexedDataset> patched(const Scratch& scratch, std::size_t at, T value) {
  std::string bytes;
  put(bytes, value);
  return patched(scratch, at, std::string_view(bytes));
}

struct Damage {
  const char* name;
  std::size_t at;
  std::int64_t value;  // of 8 bytes; at < 0 for one byte
  int bytes;
  Errc code;
  const char* says;
};

constexpr Damage damages[] = {
    {"Magic", 0, 0, 1, Errc::corrupt, "expected the index of a Megatron dataset"},
    {"Version", 9, 2, 8, Errc::unsupported, "expected version 1, found 2"},
    {"TypeZero", 17, 0, 1, Errc::corrupt, "expected a data type from 1 to 8, found 0"},
    {"TypeNine", 17, 9, 1, Errc::corrupt, "expected a data type from 1 to 8, found 9"},
    {"TypeTooWide", 17, 5, 1, Errc::corrupt, "the two files do not belong together"},
    {"SequencesHuge", 18, -1, 8, Errc::corrupt, "the file is truncated or its header is damaged"},
    {"SequencesOverflow", 18, 0x1555555555555556, 8, Errc::corrupt, "is truncated or"},
    {"SequencesFewer", 18, 1, 8, Errc::corrupt, "12 bytes too many"},
    {"DocumentsNone", 26, 0, 8, Errc::corrupt, "the file is truncated or its header is damaged"},
    {"DocumentsOverflow", 26, 0x2000000000000003, 8, Errc::corrupt, "is truncated or"},
    {"DocumentsFewer", 26, 2, 8, Errc::corrupt, "8 bytes too many"},
    {"LengthNegative", 34, -1, 4, Errc::corrupt, "sequence 0 has -1 tokens"},
    {"LengthBeyondTheData", 38, 3, 4, Errc::corrupt,
     "sequence 1 has 3 tokens of 4 bytes at byte 12"},
    {"LengthHuge", 34, 0x7fffffff, 4, Errc::corrupt, "sequence 0 has 2147483647 tokens"},
    {"OffsetNegative", 42, -4, 8, Errc::corrupt, "at byte -4"},
    {"OffsetHuge", 50, 0x7fffffffffffffff, 8, Errc::corrupt, "at byte 9223372036854775807"},
    {"FirstDocument", 58, 1, 8, Errc::corrupt, "document 0 begins at sequence 1"},
    {"DocumentsDescend", 66, -1, 8, Errc::corrupt, "document 1 begins at sequence -1"},
    {"DocumentBeyondTheEnd", 66, 3, 8, Errc::corrupt, "document 1 begins at sequence 3"},
    {"LastDocument", 74, 1, 8, Errc::corrupt,
     "the last document ends at sequence 1, but there are 2"},
};

class DamagedIndex : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedIndex, IsRefused) {
  const Scratch scratch;
  const Damage& damage = GetParam();
  std::string bytes;
  put(bytes, damage.value);
  const auto data =
      patched(scratch, damage.at,
              std::string_view(bytes).substr(0, static_cast<std::size_t>(damage.bytes)));
  ASSERT_FALSE(data.has_value());
  EXPECT_EQ(data.error().code, damage.code);
  EXPECT_THAT(data.error().what, HasSubstr("two.idx: "));
  EXPECT_THAT(data.error().what, HasSubstr(damage.says));
}

INSTANTIATE_TEST_SUITE_P(Fields, DamagedIndex, ::testing::ValuesIn(damages),
                         [](const auto& info) { return info.param.name; });

TEST(DamagedIndex, OfEveryLengthIsRefused) {
  const Scratch scratch;
  const std::string index = example_index();
  scratch.write("two.bin", example_data());
  for (std::size_t size = 0; size < index.size(); ++size) {
    scratch.write("two.idx", index.substr(0, size));
    const auto data = IndexedDataset::open(scratch.path("two"));
    ASSERT_FALSE(data.has_value()) << size;
    EXPECT_EQ(data.error().code, Errc::corrupt) << size;
  }
}

TEST(DamagedIndex, WithModesIsMultimodal) {
  const Scratch scratch;
  scratch.write("two.bin", example_data());
  scratch.write("two.idx", example_index() + std::string(2, '\0'));
  EXPECT_THAT(IndexedDataset::open(scratch.path("two")).error().what,
              HasSubstr("the modes of a multimodal dataset, which is not supported"));
}

TEST(DamagedIndex, OfAShorterDataFileIsRefused) {
  const Scratch scratch;
  scratch.write("two.bin", example_data().substr(0, 19));
  scratch.write("two.idx", example_index());
  EXPECT_THAT(IndexedDataset::open(scratch.path("two")).error().what,
              HasSubstr("two.bin has 19 bytes; the two files do not belong together"));
}

TEST(DamagedIndex, OfFloatingPointDataHasNoTokens) {
  const Scratch scratch;
  const auto data = value_or_throw(patched(scratch, 17, std::uint8_t{7}));
  EXPECT_EQ(data.sequence(0).error().code, Errc::unsupported);
}

TEST(DamagedIndex, WithRandomBytesIsReadWithinItsFile) {
  const Scratch scratch;
  std::mt19937 random(7);
  int opened = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t at = random() % example_index().size();
    const auto data = patched(scratch, at, static_cast<std::uint8_t>(random()));
    if (!data) continue;
    ++opened;
    for (std::int64_t i = 0; i < data->sequences(); ++i) (void)data->sequence(i);
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace troupe::engine::data::megatron
