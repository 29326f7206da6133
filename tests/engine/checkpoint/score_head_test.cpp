// Models with score heads on disk: begun from a language model, written as transformers has them,
// and read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/models/head_config.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {
namespace {

using testing::Each;
using testing::HasSubstr;

const std::string tied_policy = TROUPE_TEST_DATA "/models/stories260k/hf",
                  untied_policy = TROUPE_TEST_DATA "/models/digit-completion";

struct ScoreHeads : testing::Test {
  Result<std::unique_ptr<models::Decoder>> begin(const std::string& folder, int labels, bool bias) {
    auto spec = value_or_throw(read_folder_spec(folder));
    spec.labels = labels;
    spec.score_bias = bias;
    return load_decoder(*device, folder, std::move(spec), false);
  }
  std::vector<float> values(models::Decoder& model, const char* name) {
    return ops::to_host(*device, model.parameters().at(name).value);
  }
  std::vector<float> all(models::Decoder& model) {
    return ops::to_host(*device, model.parameters().values());
  }
  Json save(models::Decoder& model, const std::string& source, const std::string& folder) {
    value_or_throw(
        save_parameters(folder, model.parameters(), {.source = source, .tied = model.spec().tied}));
    return value_or_throw(read_json(folder + "/config.json"));
  }

  std::unique_ptr<ops::Device> device = ops::make_cpu_device({.threads = 1});
  Scratch scratch;
};

TEST_F(ScoreHeads, BeginAsZerosOnTheBodyOfALanguageModel) {
  for (const auto& folder : {tied_policy, untied_policy}) {
    const auto policy = value_or_throw(load_decoder(*device, folder, false)),
               critic = value_or_throw(begin(folder, 1, true));
    EXPECT_EQ(critic->parameters().find("lm_head.weight"), nullptr);
    EXPECT_THAT(values(*critic, "score.weight"), Each(0.0f));
    EXPECT_THAT(values(*critic, "score.bias"), Each(0.0f));
    const ops::PreparedLayout layout = device->prepare({{0, 4}, {0, 1, 2, 3}});
    const std::vector<std::int32_t> tokens{3, 9, 5, 7};
    nn::Saved nothing = nn::Saved::nothing();
    EXPECT_EQ(ops::to_host(*device, critic->forward(tokens, {*device, layout}, nothing)),
              ops::to_host(*device, policy->forward(tokens, {*device, layout}, nothing)));
  }
}

TEST_F(ScoreHeads, MayBeDrawnFromASeed) {
  const auto model = value_or_throw(begin(tied_policy, 40, true));
  init_score_head(*model, 0.02, 7);
  const auto drawn = values(*model, "score.weight");
  double sum = 0, squares = 0;
  for (const float v : drawn) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const auto count = static_cast<double>(drawn.size());  // 40 x 64
  EXPECT_NEAR(sum / count, 0, 4 * 0.02 / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count), 0.02, 4 * 0.02 / std::sqrt(2 * count));
  EXPECT_THAT(values(*model, "score.bias"), Each(0.0f));
  init_score_head(*model, 0.02, 7);
  EXPECT_EQ(values(*model, "score.weight"), drawn);
  init_score_head(*model, 0.02, 8);
  EXPECT_NE(values(*model, "score.weight"), drawn);
}

TEST_F(ScoreHeads, OfAPolicyAreSavedAsTransformersHasThemAndComeBack) {
  for (const auto& [labels, bias, suffix] : {std::tuple(1, false, "LlamaForSequenceClassification"),
                                             std::tuple(3, true, "LlamaForTokenClassification")})
    for (const auto& source : {tied_policy, untied_policy}) {
      Scratch folder, again;
      const auto model = value_or_throw(begin(source, labels, bias));
      init_score_head(*model, 1, 5);
      const Json config = save(*model, source, folder.path());
      EXPECT_EQ(config.find("architectures")->dump(), cat("[\"", suffix, "\"]"));
      EXPECT_EQ(config.find("id2label")->object().size(), static_cast<std::size_t>(labels));
      EXPECT_EQ(*config.find("num_labels"), Json(labels));
      EXPECT_EQ(config.find("label2id")->find(cat("LABEL_", labels - 1))->integer(), labels - 1);
      const auto loaded = value_or_throw(load_decoder(*device, folder.path(), false));
      EXPECT_EQ(loaded->spec().labels, labels);
      EXPECT_EQ(all(*loaded), all(*model));
      EXPECT_EQ(save(*loaded, folder.path(), again.path()), config);
      EXPECT_EQ(slurp(again / "model.safetensors"), slurp(folder / "model.safetensors"));
    }
}

TEST_F(ScoreHeads, KeepTheNamesOfTheirLabels) {
  Json config =
      parse_json(
          R"({"architectures":["LlamaForCausalLM"],"id2label":{"0":"bad","1":"good"},"label2id":{"bad":0,"good":1}})",
          "x")
          .value();
  models::write_head(config, 2, true);
  EXPECT_EQ(config.find("id2label")->dump(), R"({"0":"bad","1":"good"})");
  config.set("problem_type", "single_label_classification");
  models::write_head(config, 1, false);
  EXPECT_EQ(config.find("id2label")->dump(), R"({"0":"LABEL_0"})");
  EXPECT_EQ(config.find("problem_type")->string(), "regression")
      << "one class is no classification";
  EXPECT_EQ(config.find("architectures")->dump(), R"(["LlamaForSequenceClassification"])");
}

TEST_F(ScoreHeads, OfAnOrmBeginACriticWithItsValues) {
  const auto orm = value_or_throw(begin(untied_policy, 1, false));
  init_score_head(*orm, 1, 5);
  save(*orm, untied_policy, scratch.path());
  const auto critic = value_or_throw(begin(scratch.path(), 1, false));
  EXPECT_EQ(all(*critic), all(*orm)) << "what is there is read, not begun anew";
}

TEST_F(ScoreHeads, StoredAsAClassifierAreRead) {
  const auto model = value_or_throw(begin(untied_policy, 2, true));
  init_score_head(*model, 1, 5);
  std::vector<nn::ParameterSpec> wanted;
  for (const auto& p : model->parameters().all())
    wanted.push_back({p.name.starts_with("score.") ? "classifier." + p.name.substr(6) : p.name,
                      p.value.shape()});
  nn::Parameters renamed(*device, wanted, false);
  device->copy(model->parameters().values(), renamed.values());
  value_or_throw(save_parameters(scratch.path(), renamed, {}));
  Json config = value_or_throw(read_json(untied_policy + "/config.json"));
  models::write_head(config, 2, true);
  put(scratch / "config.json", config.dump());
  EXPECT_EQ(all(*value_or_throw(load_decoder(*device, scratch.path(), false))), all(*model));
}

TEST_F(ScoreHeads, OfAnotherSizeOrMissingAreNamed) {
  const auto orm = value_or_throw(begin(untied_policy, 1, false));
  Json config = save(*orm, untied_policy, scratch.path());
  const auto three = begin(scratch.path(), 3, false), biased = begin(scratch.path(), 1, true),
             language = begin(scratch.path(), 0, false);
  ASSERT_FALSE(three || biased || language);
  EXPECT_THAT(three.error().what, HasSubstr("\"score.weight\": expected [3, "));
  EXPECT_THAT(biased.error().what, HasSubstr("expected tensor \"score.bias\""));
  EXPECT_THAT(language.error().what, HasSubstr("expected tensor \"lm_head.weight\""));
}

}  // namespace
}  // namespace troupe::engine::checkpoint
