// Resolution of adapter configurations: the layers, their ranks and scales, and rejected
// configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/adapter/lora_config.h"
#include "engine/adapter/peft_config.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::adapter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const models::DecoderSpec& spec() {
  static const auto model =
      test::grid_model("", 4, 2, 1, false, false);  // two layers, a head of its own
  return model.spec;
}

std::vector<std::string> modules(const LoraConfig& config) {
  std::vector<std::string> out;
  for (const auto& target : value_or_throw(resolve_targets(config, spec(), "lora.")).targets)
    out.push_back(target.module);
  return out;
}

std::string refusal(const LoraConfig& config, const models::DecoderSpec& of = spec()) {
  const auto resolved = resolve_targets(config, of, "lora.");
  return resolved ? "taken" : resolved.error().what;
}

TEST(ResolveTargets, NamesEndsOfNamesPatternsAndAllLinear) {
  EXPECT_EQ(modules({}).size(), 14u) << "all linear layers but the output head";
  EXPECT_THAT(modules({.targets = {"q_proj"}}),
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"));
  EXPECT_THAT(modules({.targets = {"layers.1.mlp.up_proj"}}),
              ElementsAre("model.layers.1.mlp.up_proj"));
  EXPECT_THAT(modules({.targets = {R"(.*\.1\..*(q|v)_proj)"}}),
              ElementsAre("model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj"));
  EXPECT_THAT(modules({.targets = {"all-linear", "lm_head"}, .exclude = {".*proj"}}),
              ElementsAre("lm_head"));
  EXPECT_THAT(modules({.targets = {"o_proj"}, .layers = {1}}),
              ElementsAre("model.layers.1.self_attn.o_proj"));
}

TEST(ResolveTargets, AModuleThatTheFamilyStoresOtherwiseIsRefusedInWords) {
  auto phi = spec();
  phi.architecture = "Phi3ForCausalLM";
  EXPECT_THAT(refusal({.targets = {"q_proj"}}, phi),
              HasSubstr("stores model.layers.0.self_attn.q_proj in another layout, as "
                        "model.layers.0.self_attn.qkv_proj.weight"));
  EXPECT_EQ(refusal({.targets = {"o_proj", "down_proj"}}, phi), "taken");
  auto intern = spec();
  intern.architecture = "InternLM2ForCausalLM";
  EXPECT_THAT(refusal({.targets = {"down_proj"}}, intern),
              HasSubstr("as model.layers.0.feed_forward.w2.weight"));
  auto cohere = spec();
  cohere.architecture = "CohereForCausalLM";
  cohere.head_order = {6, 6, true};
  EXPECT_EQ(refusal({.targets = {"k_proj"}}, cohere), "taken")
      << "only its rows are in another order";
}

TEST(ResolveTargets, ANameIsNoPartOfAWord) {
  EXPECT_THAT(refusal({.targets = {"proj"}}),
              HasSubstr("no linear layer of this model is named \"proj\""));
}

TEST(ResolveTargets, RankAndScaleFollowTheFirstPatternThatFits) {
  LoraConfig config{.targets = {"q_proj", "v_proj"}, .rank = 8, .alpha = 16};
  config.rank_pattern = {{"layers.1.self_attn.q_proj", 2}, {"q_proj", 4}};
  config.alpha_pattern = {{"v_proj", 24.0}};
  const auto plain = value_or_throw(resolve_targets(config, spec(), ""));
  EXPECT_EQ(plain.targets[0].rank, 4);
  EXPECT_EQ(plain.targets[0].scale, 4);
  EXPECT_EQ(plain.targets[1].rank, 8);
  EXPECT_EQ(plain.targets[1].scale, 3);
  EXPECT_EQ(plain.targets[2].rank, 2);
  config.rslora = true;
  EXPECT_EQ(value_or_throw(resolve_targets(config, spec(), "")).targets[1].scale,
            24 / std::sqrt(8.0));
}

TEST(ResolveTargets, RefusesInWords) {
  EXPECT_THAT(refusal({.targets = {"q_prj"}}), HasSubstr("the nearest name is \"q_proj\""));
  EXPECT_THAT(refusal({.exclude = {".*"}}), HasSubstr("nothing to adapt"));
  EXPECT_THAT(refusal({.targets = {"(q_proj"}}), HasSubstr("lora.targets"));
  EXPECT_THAT(refusal({.rank = 0}), HasSubstr("lora.rank must be from 1"));
  EXPECT_THAT(refusal({.alpha = 0}), HasSubstr("alpha must not be 0"));
  EXPECT_THAT(refusal({.dropout = 1}), HasSubstr("below 1"));
  EXPECT_THAT(refusal({.layers = {2}}), HasSubstr("layers 0 to 1, found 2"));
  EXPECT_THAT(refusal({.targets = {"lm_head"}, .dora = true}),
              HasSubstr("not one with magnitudes"));
  EXPECT_THAT(refusal({.saved = {"score"}}), HasSubstr("language model without one"));
  EXPECT_THAT(
      check_trainable(value_or_throw(resolve_targets({.dropout = 0.1, .dora = true}, spec(), "")))
          .error()
          .what,
      HasSubstr("without dropout"));
}

TEST(PeftConfig, WhatIsWrittenIsReadAgainAsTheSameAdapter) {
  LoraConfig config{.targets = {"all-linear"},
                    .exclude = {"layers.0.mlp.up_proj"},
                    .rank = 4,
                    .alpha = 8,
                    .rslora = true};
  config.rank_pattern = {{"q_proj", 2}};
  auto with = spec();
  with.lora = value_or_throw(resolve_targets(config, with, ""));
  const Json json = to_peft_config(config, with, "base");
  const auto again =
      value_or_throw(resolve_targets(value_or_throw(read_peft_config(json, "x")), spec(), ""));
  ASSERT_EQ(again.targets.size(), with.lora->targets.size());
  for (std::size_t i = 0; i < again.targets.size(); ++i) {
    EXPECT_EQ(again.targets[i].module, with.lora->targets[i].module);
    EXPECT_EQ(again.targets[i].rank, with.lora->targets[i].rank);
    EXPECT_EQ(again.targets[i].scale, with.lora->targets[i].scale);
  }
}

TEST(PeftConfig, RefusesByNameWhatWouldChangeTheNumbers) {
  const auto problem = [](const std::string& changes) {
    Json config =
        parse_json(
            R"({"peft_type":"LORA","r":4,"lora_alpha":8,"target_modules":["q_proj"],"bias":"none","use_qalora":false})",
            "")
            .value();
    const Json wanted = parse_json(changes, "").value();
    for (const auto& [key, value] : wanted.object()) config.set(key, value);
    const auto read = read_peft_config(config, "a.json");
    return read ? std::string("taken") : read.error().what;
  };
  EXPECT_EQ(problem("{}"), "taken");
  EXPECT_EQ(problem(R"({"a_new_option":null,"loftq_config":{},"task_type":"CAUSAL_LM"})"), "taken");
  for (const char* changes :
       {R"({"bias":"all"})", R"({"use_qalora":true})", R"({"lora_bias":true})",
        R"({"fan_in_fan_out":true})", R"({"layer_replication":[[0,2]]})", R"({"a_new_option":3})",
        R"({"trainable_token_indices":[1]})"})
    EXPECT_THAT(problem(changes), HasSubstr("would change the results")) << changes;
  EXPECT_THAT(problem(R"({"peft_type":"IA3"})"), HasSubstr("must be \"LORA\""));
  EXPECT_THAT(problem(R"({"init_lora_weights":"pissa_niter_4"})"),
              HasSubstr("changed the base's weights"));
  EXPECT_THAT(problem(R"({"r":1e9})"), HasSubstr("\"r\""));
  EXPECT_THAT(problem(R"({"r":1000000000})"), HasSubstr("from 1 to 65536"));
  EXPECT_THAT(problem(R"({"target_modules":[3]})"), HasSubstr("names of modules"));
  EXPECT_THAT(problem(R"({"target_modules":null})"), HasSubstr("names no module"));
  EXPECT_THAT(problem(R"({"lora_alpha":"x"})"), HasSubstr("lora_alpha"));
}

models::DecoderSpec mixture_spec() {
  models::DecoderSpec mixture = spec();
  mixture.experts = models::ExpertsSpec{.router = {.experts = 4, .chosen = 2}, .inner = 8};
  return mixture;
}

TEST(LoraTargets, OfExpertsAreModulesOrParameters) {
  const auto count = [&](const LoraConfig& config) {
    return value_or_throw(resolve_targets(config, mixture_spec(), "lora.")).targets.size();
  };
  EXPECT_EQ(count({.targets = {"all-linear"}}), 8u) << "attention only";
  EXPECT_EQ(count({.targets = {"gate_proj"}}), 8u) << "four experts in each of two layers";
  EXPECT_EQ(count({.targets = {"gate"}}), 2u) << "routers";
  EXPECT_EQ(count({.targets = {}, .parameters = {"mlp.experts.down_proj"}}), 2u);
  EXPECT_EQ(count({.targets = {"q_proj"}, .parameters = {"experts.gate_up_proj", "down_proj"}}),
            6u);
}

TEST(LoraTargets, OfExpertsHaveOneShape) {
  const auto problem = [&](LoraConfig config) {
    const auto found = resolve_targets(config, mixture_spec(), "lora.");
    return found ? "accepted" : found.error().what;
  };
  EXPECT_THAT(problem({.targets = {"experts.0.gate_proj"}}), HasSubstr("all 4 experts of a layer"));
  EXPECT_THAT(problem({.targets = {"up_proj"}, .rank_pattern = {{"experts.1.up_proj", 3}}}),
              HasSubstr("of one rank and alpha"));
  EXPECT_THAT(problem({.targets = {"up_proj"}, .dropout = 0.1}),
              HasSubstr("neither magnitudes nor dropout"));
  EXPECT_THAT(problem({.targets = {}, .parameters = {"down_proj"}, .dora = true}),
              HasSubstr("neither magnitudes nor dropout"));
  EXPECT_THAT(problem({.targets = {"down_proj"}, .parameters = {"down_proj"}}),
              HasSubstr("by lora.targets, too"));
  EXPECT_THAT(problem({.targets = {}, .parameters = {"mlp.experts.up_proj"}}),
              HasSubstr("expected mlp.experts.gate_up_proj or"));
  EXPECT_THAT(
      resolve_targets({.targets = {}, .parameters = {"down_proj"}}, spec(), "").error().what,
      HasSubstr("this model has no experts"));
}

TEST(PeftConfig, AStringOfTargetsIsARegularExpressionOverTheWholeName) {
  const auto resolved = [](const char* targets) {
    Json config = parse_json(R"({"peft_type":"LORA","r":4,"lora_alpha":8})", "").value();
    config.set("target_modules", targets);
    return resolve_targets(value_or_throw(read_peft_config(config, "x")), spec(), "");
  };
  EXPECT_EQ(value_or_throw(resolved(".*q_proj")).targets.size(), 2u);
  EXPECT_EQ(value_or_throw(resolved("all-linear")).targets.size(), 14u);
  EXPECT_FALSE(resolved("q_proj")) << "PEFT matches it with the whole name";
}

}  // namespace
}  // namespace troupe::engine::adapter
