// --split and --data-path of Megatron.
#include <gmock/gmock.h>

#include "engine/data/megatron/pretraining_data.h"
#include "tests/engine/data/megatron/indexed_files.h"

namespace troupe::engine::data::megatron {
namespace {

using ::testing::HasSubstr;

std::vector<std::int64_t> places(std::string_view text, std::int64_t sequences) {
  std::vector<std::int64_t> out;
  for (const auto& range : split_ranges(value_or_throw(parse_split(text)), sequences)) {
    out.push_back(range ? range->begin : -1);
    out.push_back(range ? range->end : -1);
  }
  return out;
}

TEST(MegatronSplit, RoundsCumulativeSharesHalfToEven) {
  using Places = std::vector<std::int64_t>;
  EXPECT_EQ(places("90,8,2", 59), (Places{0, 53, 53, 58, 58, 59}));
  EXPECT_EQ(places("1,1,0", 5), (Places{0, 2, 2, 5, -1, -1}));
  EXPECT_EQ(places("1,1", 7), (Places{0, 4, 4, 7, -1, -1}));
  EXPECT_EQ(places("969, 30, 1", 1000), (Places{0, 969, 969, 999, 999, 1000}));
  EXPECT_EQ(places("0,0,1", 3), (Places{-1, -1, -1, -1, 0, 3}));
}

TEST(MegatronSplit, RefusesAnythingButOneToThreeWeights) {
  for (const char* text : {"", "a", "1,", "1,2,3,4", "-1,2", "0,0,0", "nan", "inf", "1 2", "1,,2"})
    EXPECT_FALSE(parse_split(text).has_value()) << text;
  EXPECT_THAT(parse_split("x").error().what,
              HasSubstr("split \"x\": expected one to three weights"));
}

TEST(MegatronDataPath, HasWeightsBeforeThePathsOrNone) {
  const auto plain = value_or_throw(parse_data_path({"a", "b"}));
  EXPECT_FALSE(plain.has_weights);
  EXPECT_EQ(plain.parts.size(), 2u);
  const auto weighted = value_or_throw(parse_data_path({"0.7", "a", "3e-1", "b"}));
  EXPECT_TRUE(weighted.has_weights);
  EXPECT_EQ(weighted.parts[1].prefix, "b");
  EXPECT_EQ(weighted.parts[1].weight, 0.3);
  EXPECT_FALSE(parse_data_path({"0.7", "a", "b"}).has_value());
  EXPECT_FALSE(parse_data_path({"0.7", "a", "b", "c"}).has_value());
  EXPECT_FALSE(parse_data_path({}).has_value());
}

TEST(MegatronDataPath, NeedsNumbersOfSamplesForWeights) {
  const Scratch scratch;
  PretrainingOptions options;
  options.parts = {{write_documents(scratch, "a", TokenType::u16, {{1, 2, 3}}), 1}};
  options.has_weights = true;
  options.split = "1";
  options.sample.sequence_length = 2;
  EXPECT_THAT(PretrainingData::open(options).error().what,
              HasSubstr("weights of datasets need a number of samples of each split"));
  options.parts[0].weight = 0;
  EXPECT_THAT(PretrainingData::open(options).error().what,
              HasSubstr("expected a positive number, found 0"));
}

}  // namespace
}  // namespace troupe::engine::data::megatron
