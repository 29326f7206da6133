// Values in place of those of config.json.
#include "engine/models/overrides.h"

#include <gmock/gmock.h>

#include <cmath>

#include "engine/models/spec.h"

namespace troupe::engine::models {
namespace {

using testing::HasSubstr;

constexpr std::string_view plain_config =
    R"({"architectures":["LlamaForCausalLM"],"vocab_size":16,"hidden_size":8,"intermediate_size":12,
  "num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"rms_norm_eps":1e-5,
  "max_position_embeddings":64,"rope_theta":10000.0})";

Json json_value(std::string_view text) {
  return value_or_throw(parse_json(text, "test"));
}

Json with(std::string_view overrides, std::string_view config = plain_config) {
  return value_or_throw(with_overrides(json_value(config), json_value(overrides), "config.json"));
}

std::string override_problem(std::string_view overrides) {
  const auto out = with_overrides(json_value(plain_config), json_value(overrides), "config.json");
  return out ? "accepted" : out.error().what;
}

TEST(Overrides, NoneLeaveTheFileAsItIs) {
  EXPECT_EQ(with("{}").dump(), json_value(plain_config).dump());
  EXPECT_EQ(value_or_throw(with_overrides(json_value(plain_config), Json(), "config.json")).dump(),
            json_value(plain_config).dump());
}

TEST(Overrides, GiveTheModelOfAFileThatHasThem) {
  const Json out = with(
      R"({"rope_theta":500.0,"max_position_embeddings":128,
          "rope_scaling":{"rope_type":"linear","factor":4.0}})");
  const auto spec = value_or_throw(read_spec(out, "config.json"));
  EXPECT_EQ(spec.max_positions, 128);
  // Channels of size 4: frequencies 1 and 500^(-1/2), divided by the factor.
  EXPECT_DOUBLE_EQ(spec.rotary.at(0).inverse_frequencies.at(0), 0.25);
  EXPECT_NEAR(spec.rotary.at(0).inverse_frequencies.at(1), 0.25 / std::sqrt(500.0), 1e-12);
  const Json again = with(R"({"rope_scaling":null})", out.dump());
  EXPECT_DOUBLE_EQ(
      value_or_throw(read_spec(again, "config.json")).rotary.at(0).inverse_frequencies.at(0), 1);
}

TEST(Overrides, ReachTheObjectOfTransformersFive) {
  Json five = json_value(plain_config);
  five.set("rope_parameters", json_value(R"({"rope_type":"default","rope_theta":10000.0})"));
  const auto frequency = [](const Json& config, std::size_t i) {
    return value_or_throw(read_spec(config, "config.json")).rotary.at(0).inverse_frequencies.at(i);
  };
  EXPECT_NEAR(frequency(with(R"({"rope_theta":100.0})", five.dump()), 1), 0.1, 1e-12);
  const Json scaled = with(R"({"rope_scaling":{"rope_type":"linear","factor":2.0}})", five.dump());
  EXPECT_NEAR(frequency(scaled, 1), 0.005, 1e-12) << "theta stays";
  EXPECT_NEAR(frequency(with(R"({"rope_scaling":null})", scaled.dump()), 1), 0.01, 1e-12);
}

TEST(Overrides, RefuseUnknownKeysAndOtherWeights) {
  EXPECT_THAT(override_problem(R"({"rope_teta":1.0})"), HasSubstr("did you mean rope_theta?"));
  EXPECT_THAT(override_problem(R"({"model_type":"qwen2"})"), HasSubstr("describes the weights"));
  EXPECT_THAT(override_problem(R"({"hidden_size":16})"),
              HasSubstr("model.embed_tokens.weight would have the shape [16, 16], in the files it "
                        "has [16, 8]"));
  EXPECT_THAT(override_problem(R"({"num_hidden_layers":3})"), HasSubstr("is not in the files"));
  EXPECT_THAT(override_problem(R"({"num_hidden_layers":1})"), HasSubstr("would be left out"));
  EXPECT_THAT(override_problem(R"({"rope_scaling":{"rope_type":"spiral","factor":2}})"),
              HasSubstr("model_overrides.rope_scaling: rope type \"spiral\""));
  EXPECT_THAT(override_problem("[1]"), HasSubstr("expected a map"));
}

}  // namespace
}  // namespace troupe::engine::models
