// Scaled rotary positions: numbers from transformers 5.23's modeling_rope_utils, in float64 where
// it has them.
#include "engine/models/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

using ::testing::HasSubstr;

struct Read {
  nn::RotarySpec table;
  DecoderSpec spec;
  std::string problem;
};

Read read_rope(std::string_view rope, int head_size = 8, RopeStyle style = {}) {
  DecoderSpec spec;
  spec.head_size = head_size;
  spec.max_positions = 64;
  const Json config(Json::Object{{"rope_parameters", value_or_throw(parse_json(rope, "rope"))}});
  const std::string where = "config.json";
  ConfigReader in(config, where);
  read_rotary(in, spec, style);
  return {spec.rotary.at(0), spec, in.failed() ? in.result().error().what : ""};
}

TEST(Rope, YarnMixesSlowedAndPlainPairs) {
  const auto found = read_rope(
      R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32,"rope_theta":100.0})");
  EXPECT_EQ(found.problem, "");
  // Pairs turn by 100^(-i/4); low = floor(8 ln(32 / (32 2 pi)) / (2 ln 100)) < 0, high = ceil(8
  // ln(32 / (2 pi)) / (2 ln 100)) = 2.
  const auto& f = found.table.inverse_frequencies;
  EXPECT_DOUBLE_EQ(f[0], 1);
  EXPECT_DOUBLE_EQ(f[1], std::pow(100, -0.25) * (0.5 + 0.5 / 4));
  EXPECT_DOUBLE_EQ(f[2], 0.1 / 4);
  EXPECT_DOUBLE_EQ(f[3], std::pow(100, -0.75) / 4);
  EXPECT_DOUBLE_EQ(found.table.factor, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(found.spec.max_positions, 128) << "there is room for what it stretches to";
}

TEST(Rope, YarnTakesItsFactorFromTheFileOrFromMscales) {
  const auto factor = [](std::string_view more) {
    return read_rope(
               cat(R"({"rope_type":"yarn","factor":40.0,"original_max_position_embeddings":32)",
                   more, "}"))
        .table.factor;
  };
  EXPECT_DOUBLE_EQ(factor(R"(,"attention_factor":0.5)"), 0.5);
  EXPECT_DOUBLE_EQ(factor(R"(,"mscale":0.707,"mscale_all_dim":0.707)"), 1);
  EXPECT_DOUBLE_EQ(factor(R"(,"mscale":1.0,"mscale_all_dim":0.5)"),
                   (0.1 * std::log(40.0) + 1) / (0.05 * std::log(40.0) + 1));
}

TEST(Rope, DynamicStretchesTheBaseOfLongerSequences) {
  const auto found = read_rope(R"({"rope_type":"dynamic","factor":2.0,"rope_theta":100.0})");
  EXPECT_EQ(found.spec.max_positions, 128);
  EXPECT_EQ(found.table.frequency_set(64), 0);
  EXPECT_EQ(found.table.frequencies(0), found.table.inverse_frequencies);
  const double base = 100 * std::pow(2.0 * 96 / 64 - 1, 8.0 / 6);
  const auto long_inverse_frequencies = found.table.frequencies(found.table.frequency_set(96));
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(long_inverse_frequencies[i], std::pow(base, -2.0 * i / 8), 1e-12);
  EXPECT_TRUE(found.spec.keys_change_at(65) && found.spec.keys_change_at(66) &&
              !found.spec.keys_change_at(64));
}

TEST(Rope, LongRopeHasTwoSets) {
  const auto found =
      read_rope(R"({"rope_type":"longrope","rope_theta":100.0,"original_max_position_embeddings":16,
                              "short_factor":[1,1,2,2],"long_factor":[2,4,8,16]})");
  EXPECT_EQ(found.problem, "");
  EXPECT_DOUBLE_EQ(found.table.frequencies(found.table.frequency_set(16))[2], 0.05);
  EXPECT_DOUBLE_EQ(found.table.frequencies(found.table.frequency_set(17))[2], 0.0125);
  EXPECT_DOUBLE_EQ(found.table.factor, std::sqrt(1 + std::log(4.0) / std::log(16.0)));
  EXPECT_TRUE(found.spec.keys_change_at(17) && !found.spec.keys_change_at(18) &&
              !found.spec.keys_change_at(16));
}

TEST(Rope, OnlySomeChannelsTurn) {
  const auto found = read_rope(R"({"rope_theta":100.0})", 8,
                               {.partial = 0.5, .may_be_partial = true, .interleaved = true});
  EXPECT_THAT(found.table.inverse_frequencies, testing::ElementsAre(1, 0.1, 0, 0));
  EXPECT_EQ(found.spec.head_order.rotary_dim, 4);
  EXPECT_TRUE(found.spec.head_order.interleaved);
}

TEST(Rope, RefusesWhatItCannotRead) {
  EXPECT_THAT(
      read_rope(R"({"rope_type":"longrope","short_factor":[1,1],"long_factor":[1,1,1,1]})").problem,
      HasSubstr("\"short_factor\" must be a list of 4 numbers, found 2 values"));
  EXPECT_THAT(
      read_rope(R"({"rope_type":"longrope","long_factor":[1,1,1,0],"short_factor":[1,1,1,1]})")
          .problem,
      HasSubstr("above 0"));
  EXPECT_THAT(read_rope(R"({"rope_type":"dynamic","factor":0.5})").problem,
              HasSubstr("at least 1"));
  EXPECT_THAT(read_rope(R"({"rope_type":"dynamic"})").problem, HasSubstr("\"factor\""));
  EXPECT_THAT(read_rope(R"({"factor":2.0})").problem, HasSubstr("no type"));
  EXPECT_THAT(read_rope(R"({"partial_rotary_factor":0.3})", 8, {.may_be_partial = true}).problem,
              testing::IsEmpty());
  EXPECT_THAT(read_rope(R"({"partial_rotary_factor":0.4})", 8, {.may_be_partial = true}).problem,
              HasSubstr("even number"));
}

}  // namespace
}  // namespace troupe::engine::models
