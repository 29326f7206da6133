#include "engine/models/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>

#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view plain =
    R"({"architectures":["LlamaForCausalLM"],"vocab_size":16,"hidden_size":8,"intermediate_size":12,
  "num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"rms_norm_eps":1e-5,"eos_token_id":[1,2]})";

Json config(std::string_view changes = "{}") {
  Json base = parse_json(plain, "base").value();
  const Json wanted = parse_json(changes, "changes").value();
  for (const auto& [key, value] : wanted.object()) base.set(key, value);
  return base;
}

std::string problem(std::string_view changes) {
  const auto spec = read_spec(config(changes), "config.json");
  return spec ? "accepted" : spec.error().what;
}

TEST(Spec, ReadsALlama) {
  const auto spec = read_spec(config(), "config.json");
  ASSERT_TRUE(spec) << spec.error().what;
  EXPECT_EQ(spec->head_size, 4);
  EXPECT_EQ(spec->kv_heads, 1);
  EXPECT_EQ(spec->eos_ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(spec->bos_id, -1);
  EXPECT_FALSE(spec->tied);
  EXPECT_EQ(spec->rotary[0].inverse_frequencies, (std::vector<double>{1.0, 0.01}));
}

TEST(Spec, CountsTheParametersThatItLists) {
  for (const char* changes : {"{}", R"({"tie_word_embeddings":true})",
                              R"({"attention_bias":true,"mlp_bias":true})", R"({"head_dim":6})"}) {
    const auto spec = read_spec(config(changes), "config.json");
    ASSERT_TRUE(spec);
    const auto list = parameter_list(*spec);
    EXPECT_EQ(spec->parameter_count(),
              std::accumulate(list.begin(), list.end(), std::int64_t{0},
                              [](auto sum, const auto& w) { return sum + w.shape.count(); }));
  }
}

TEST(Spec, ReadsTheScoreHeadsOfTransformers) {
  const auto head = [](std::string_view changes) {
    const auto spec = value_or_throw(read_spec(config(changes), "config.json"));
    return std::tuple(spec.architecture, spec.labels, spec.score_bias);
  };
  EXPECT_EQ(head("{}"), std::tuple("LlamaForCausalLM", 0, false));
  EXPECT_EQ(head(R"({"id2label":{"0":"a"}})"), std::tuple("LlamaForCausalLM", 0, false))
      << "a language model's labels mean nothing";
  EXPECT_EQ(head(R"({"architectures":["LlamaForSequenceClassification"]})"),
            std::tuple("LlamaForSequenceClassification", 2, false))
      << "transformers writes nothing where there are two labels";
  EXPECT_EQ(
      head(
          R"({"architectures":["LlamaForSequenceClassification"],"id2label":{"0":"LABEL_0"},"problem_type":"regression"})"),
      std::tuple("LlamaForSequenceClassification", 1, false));
  EXPECT_EQ(head(R"({"architectures":["LlamaForTokenClassification"],"num_labels":3})"),
            std::tuple("LlamaForTokenClassification", 3, true));
}

TEST(Spec, EveryFamilyMayHaveAScoreHead) {
  for (const char* family : {"Llama", "Qwen2", "Qwen3"})
    for (const bool tokens : {false, true}) {
      const std::string architecture =
          cat(family, tokens ? "ForTokenClassification" : "ForSequenceClassification");
      const auto spec = value_or_throw(
          read_spec(config(cat(R"({"architectures":[")", architecture, R"("],"num_labels":3})")),
                    "config.json"));
      EXPECT_EQ(spec.architecture, architecture);
      EXPECT_EQ(spec.labels, 3);
      EXPECT_EQ(spec.score_bias, tokens);
    }
}

TEST(Spec, AScoreHeadStandsInTheLanguageHeadsPlace) {
  for (const char* architecture : {"LlamaForSequenceClassification", "LlamaForTokenClassification"})
    for (const char* tied : {"true", "false"}) {
      const auto spec = value_or_throw(
          read_spec(config(cat(R"({"architectures":[")", architecture,
                               R"("],"num_labels":3,"tie_word_embeddings":)", tied, "}")),
                    "x"));
      std::int64_t counted = 0;
      std::vector<std::string> names;
      for (const auto& wanted : parameter_list(spec)) {
        counted += wanted.shape.count();
        names.push_back(wanted.name);
      }
      EXPECT_EQ(spec.parameter_count(), counted);
      EXPECT_THAT(names, testing::Not(testing::Contains("lm_head.weight")));
      EXPECT_EQ(parameter_list(spec)[names.size() - (spec.score_bias ? 2 : 1)].name,
                "score.weight");
    }
}

TEST(Spec, RefusesAScoreHeadThatContradictsItself) {
  const auto wrong = [](std::string_view changes) {
    Json wanted = parse_json(changes, "changes").value();
    wanted.set("architectures", Json::Array{"LlamaForSequenceClassification"});
    return problem(wanted.dump());
  };
  EXPECT_THAT(wrong(R"({"num_labels":3,"id2label":{"0":"a"}})"),
              HasSubstr("\"num_labels\" is 3, but \"id2label\" names 1"));
  EXPECT_THAT(wrong(R"({"num_labels":0})"), HasSubstr("between 1 and 65536, found 0"));
  EXPECT_THAT(wrong(R"({"id2label":{}})"), HasSubstr("names no label"));
  EXPECT_THAT(wrong(R"({"id2label":["a"]})"), HasSubstr("must be an object"));
  EXPECT_THAT(wrong(R"({"problem_type":"ranking"})"), HasSubstr("must be regression"));
  EXPECT_THAT(problem(R"({"architectures":["LlamaForQuestionAnswering"]})"),
              HasSubstr("ForSequenceClassification"));
}

TEST(Spec, BothLayoutsOfRopeGiveTheSameFrequencies) {
  const auto four = read_spec(
      config(R"({"rope_theta":500.0,"rope_scaling":{"type":"linear","factor":2.0}})"), "x");
  const auto five = read_spec(
      config(R"({"rope_parameters":{"rope_theta":500.0,"rope_type":"linear","factor":2.0}})"), "x");
  ASSERT_TRUE(four && five);
  EXPECT_EQ(four->rotary[0].inverse_frequencies, five->rotary[0].inverse_frequencies);
  EXPECT_EQ(four->rotary[0].inverse_frequencies[0], 0.5);
  EXPECT_DOUBLE_EQ(four->rotary[0].inverse_frequencies[1], 0.5 / std::sqrt(500.0));
}

TEST(Spec, RefusesByNameWhatItCannotHonour) {
  EXPECT_THAT(problem(R"({"architectures":["MambaForCausalLM"]})"),
              HasSubstr("\"MambaForCausalLM\" is not supported; "));
  EXPECT_THAT(problem(R"({"rope_scaling":{"rope_type":"mrope","factor":2.0}})"),
              HasSubstr("rope type \"mrope\""));
  EXPECT_THAT(problem(R"({"hidden_act":"quick_gelu"})"), HasSubstr("hidden_act"));
  EXPECT_THAT(problem(R"({"quantization_config":{"bits":4}})"),
              HasSubstr("\"quantization_config\""));
  EXPECT_THAT(problem(R"({"partial_rotary_factor":0.5})"), HasSubstr("\"partial_rotary_factor\""));
  EXPECT_THAT(problem(R"({"attention_dropout":0.1})"), HasSubstr("\"attention_dropout\""));
}

TEST(Spec, RefusesSizesThatDoNotFit) {
  EXPECT_THAT(problem(R"({"num_attention_heads":0})"),
              HasSubstr("\"num_attention_heads\" must be between 1"));
  EXPECT_THAT(problem(R"({"num_attention_heads":3,"num_key_value_heads":2})"),
              HasSubstr("not a multiple"));
  EXPECT_THAT(problem(R"({"num_hidden_layers":1000000000})"),
              HasSubstr("\"num_hidden_layers\" must be between"));
  EXPECT_THAT(problem(R"({"hidden_size":2147483648})"), HasSubstr("\"hidden_size\""));
  EXPECT_THAT(problem(R"({"hidden_size":"8"})"), HasSubstr("must be an integer"));
  EXPECT_THAT(problem(R"({"head_dim":3})"), HasSubstr("even"));
  EXPECT_THAT(problem(R"({"eos_token_id":16})"), HasSubstr("\"eos_token_id\""));
  EXPECT_THAT(problem(R"({"rope_theta":0})"), HasSubstr("\"rope_theta\" must be above 0"));
  EXPECT_THAT(problem(R"({"rms_norm_eps":-1})"), HasSubstr("rms_norm_eps"));
}

}  // namespace
}  // namespace troupe::engine::models
