#include "engine/checkpoint/load_parameters.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::HasSubstr;

// Parameters under the names and shapes of a folder's own tensors.
std::vector<nn::ParameterSpec> wanted_of(const std::string& folder) {
  std::vector<nn::ParameterSpec> out;
  const auto weights = SafetensorsFolder::open(folder);
  for (const auto& place : weights->all()) {
    const auto& s = place.tensor->shape;
    out.push_back({place.tensor->name, s.size() == 1 ? Shape{s[0]} : Shape{s[0], s[1]}});
  }
  return out;
}

struct HfModel : ::testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  Scratch scratch;

  std::string load(std::vector<nn::ParameterSpec> wanted, bool tied = false,
                   bool allow_nonfinite = false) {
    nn::Parameters parameters(*device, wanted, false);
    const auto loaded = load_parameters(scratch.path(), parameters, {tied, allow_nonfinite});
    if (!loaded) return loaded.error().what;
    values = ops::to_host(*device, parameters.values());
    return "";
  }
  void store(std::string_view header, const std::vector<float>& data) {
    put(scratch / "model.safetensors", safetensors_bytes(header, bytes_of_floats(data)));
  }

  std::vector<float> values;
};

TEST_F(HfModel, EveryBundledModelLoadsBitForBit) {
  for (const std::string name :
       {"digit-completion", "stories260k/hf", "stories260k/hf-bf16-sharded", "tinystories-656k"}) {
    const auto wanted = wanted_of(data_folder + name);
    ASSERT_FALSE(wanted.empty()) << name;
    nn::Parameters parameters(*device, wanted, false);
    const auto loaded = load_parameters(data_folder + name, parameters);
    ASSERT_TRUE(loaded) << loaded.error().what;
    const auto weights = SafetensorsFolder::open(data_folder + name);
    for (const auto& parameter : parameters.all()) {
      std::vector<float> stored(static_cast<std::size_t>(parameter.value.count()));
      ASSERT_TRUE(weights->find(parameter.name)->file->read_f32(parameter.name, stored));
      EXPECT_EQ(ops::to_host(*device, parameter.value), stored) << parameter.name;
    }
  }
}

TEST_F(HfModel, ATiedModelThatStoresOnlyItsHeadLoads) {
  auto wanted = wanted_of(data_folder + "tinystories-656k");
  for (auto& w : wanted)
    if (w.name == "lm_head.weight") w.name = "model.embed_tokens.weight";
  nn::Parameters parameters(*device, wanted, false);
  const auto loaded = load_parameters(data_folder + "tinystories-656k", parameters, {.tied = true});
  ASSERT_TRUE(loaded) << loaded.error().what;
  std::vector<float> head(2048 * 128);
  ASSERT_TRUE(SafetensorsFolder::open(data_folder + "tinystories-656k")
                  ->files()[0]
                  .read_f32("lm_head.weight", head));
  EXPECT_EQ(ops::to_host(*device, parameters.at("model.embed_tokens.weight").value), head);
}

const char* const two_ends =
    R"({"lm_head.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("model.embed_tokens.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}})";

TEST_F(HfModel, ATiedModelMayStoreBothEndsIfTheyAreEqual) {
  store(two_ends, {1, 2, 1, 2});
  EXPECT_EQ(load({{"model.embed_tokens.weight", {2, 1}}}, true), "");
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  store(two_ends, {1, 3, 1, 2});
  EXPECT_THAT(load({{"model.embed_tokens.weight", {2, 1}}}, true),
              HasSubstr("\"lm_head.weight\" differs from the embedding"));
  EXPECT_EQ(load({{"model.embed_tokens.weight", {2, 1}}, {"lm_head.weight", {2, 1}}}, false), "");
  EXPECT_EQ(values, (std::vector<float>{1, 2, 1, 3}));
}

TEST_F(HfModel, AnUntiedModelWithoutItsHeadIsRefused) {
  store(R"({"model.embed_tokens.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})",
        {1, 2});
  EXPECT_THAT(load({{"model.embed_tokens.weight", {2, 1}}, {"lm_head.weight", {2, 1}}}),
              HasSubstr("expected tensor \"lm_head.weight\""));
}

TEST_F(HfModel, StatesWhichTensorIsMissingMisshapenOrUnwanted) {
  store(R"({"a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", {1, 2});
  EXPECT_THAT(
      load({{"a.weigth", {2, 1}}}),
      HasSubstr(
          "expected tensor \"a.weigth\" (1 tensors found); the nearest name is \"a.weight\""));
  EXPECT_THAT(load({{"a.weight", {1, 2}}}),
              HasSubstr("tensor \"a.weight\": expected [1, 2] (from config.json), found [2, 1]"));
  EXPECT_THAT(load({{"a.weight", {2}}}),
              HasSubstr("expected [2] (from config.json), found [2, 1]"));
  EXPECT_THAT(load({}), HasSubstr("unexpected tensor \"a.weight\" [2, 1]"));
}

TEST_F(HfModel, BuffersThatAreRecomputedAreLeftAside) {
  store(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("model.layers.0.self_attn.rotary_emb.inv_freq":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      {1, 2});
  EXPECT_EQ(load({{"a", {1}}}), "");
}

TEST_F(HfModel, WeightsThatAreNotFiniteAreRefusedByNameUnlessAllowed) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    store(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", {1, 2, bad});
    EXPECT_THAT(load({{"a", {3}}}), HasSubstr("tensor \"a\": element 2 is "));
    EXPECT_EQ(load({{"a", {3}}}, false, true), "");
  }
}

TEST_F(HfModel, IntegersAreNotWeights) {
  put(scratch / "model.safetensors",
      safetensors_bytes(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "1234"));
  EXPECT_THAT(load({{"a", {1}}}), HasSubstr("found I32"));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
