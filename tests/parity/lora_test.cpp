// A model with an adapter: trained by a group as by one rank, in micro-batches as whole, merged as
// unmerged, and sent to rollouts without its base.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "actors/roles/rollout.h"
#include "actors/roles/weights.h"
#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/adapter/adapter.h"
#include "engine/adapter/lora_config.h"
#include "engine/nn/gradients.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

namespace protocol = actors::protocol;
using engine::adapter::LoraConfig;
using engine::models::Decoder;
using engine::train::Trainer;
using testing::HasSubstr;

// Every kind of a layer, in several ranks.
LoraConfig plain() {
  LoraConfig config;
  config.rank = 3;
  config.alpha = 6;
  config.rank_pattern = {{"v_proj", 2}};
  return config;
}
LoraConfig with_dropout() {
  LoraConfig config = plain();
  config.dropout = 0.3;
  return config;
}
LoraConfig with_magnitudes() {
  LoraConfig config = plain();
  config.dora = true;
  config.rslora = true;
  return config;
}
LoraConfig of_the_head() {
  LoraConfig config = plain();
  config.targets = {"lm_head", "o_proj"};
  return config;
}

GridModel adapted(GridModel model, const LoraConfig& config) {
  // A head with a bias has no adapter.
  if (config.targets.front() == "lm_head") model.spec.head_bias = false;
  model.spec.lora = value_or_throw(engine::adapter::resolve_targets(config, model.spec, "lora."));
  return model;
}

double lora_distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b.at(i));
  return std::sqrt(dot(difference, difference) / dot(b, b));
}

struct LoraResult {
  double loss = 0;
  std::vector<float> gradient, logp, base_logp, weights;
  std::vector<double> norms;
};

LoraResult measure_lora(const GridModel& model, const Mesh& mesh, const engine::loss::AnyLoss& loss,
                        const Experience& batch, int micro_batch_tokens,
                        bool divides_rows = false) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  // A large eps keeps the step a smooth function of the gradient, so that updates can be compared
  // at all.
  Trainer trainer(
      grid_decoder(*device, model, 3, mesh, true, {}, 1, divides_rows),
      {.micro_batch_tokens = micro_batch_tokens, .optimizer = {.eps = 1e-3}, .adapter_seed = 9},
      &mesh);
  auto& parameters = trainer.model().parameters();
  LoraResult found;
  found.logp = trainer.logprobs(batch, 1);
  found.base_logp = trainer.logprobs(batch, 1, true);
  for (int step = 0; step < 3; ++step) {
    const auto all = trainer.forward_backward(batch, loss);
    if (step == 0) {
      found.loss = all.loss;
      engine::nn::all_reduce_gradients(parameters, trainer.model().tp(),
                                       mesh.replicas().size() > 1 ? &mesh.replicas() : nullptr);
      found.gradient = engine::nn::gather_logical(parameters.trained(), parameters.grads(), mesh);
      trainer.optimizer().zero_grad();
      trainer.forward_backward(batch, loss);
    }
    found.norms.push_back(value_or_throw(trainer.update(1e-2)).grad_norm);
  }
  found.weights = engine::nn::gather_logical(parameters.trained(), mesh);
  return found;
}

void expect_near_lora(const LoraResult& a, const LoraResult& b) {
  EXPECT_NEAR(a.loss, b.loss, 2e-6 * std::max(1.0, std::abs(b.loss)));
  ASSERT_EQ(a.gradient.size(), b.gradient.size());
  EXPECT_GT(dot(b.gradient, b.gradient), 1e-6) << "this batch shows nothing";
  EXPECT_LT(lora_distance(a.gradient, b.gradient), 1e-5);
  EXPECT_LT(lora_distance(a.logp, b.logp), 1e-6);
  EXPECT_LT(lora_distance(a.base_logp, b.base_logp), 1e-6);
  EXPECT_LT(lora_distance(a.weights, b.weights), 1e-5);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a.norms[i], b.norms[i], 1e-5 * b.norms[i]);
}

TEST(LoraParity, AGroupTrainsTheAdapterThatOneRankTrains) {
  for (const auto& base : grid_models())
    for (const auto& config : {plain(), with_dropout(), with_magnitudes(), of_the_head()}) {
      const GridModel model = adapted(base, config);
      const Experience batch = full_batch(5, 8, 1, model.spec.vocabulary);
      const LoraResult one = measure_lora(model, Mesh(), algorithms::SftLoss{}, batch, 60);
      EXPECT_GT(lora_distance(one.logp, one.base_logp), 1e-3);
      for (const Grid grid : {Grid{1, 2}, Grid{2, 1}, Grid{2, 2}, Grid{1, 4}, Grid{.cp = 3}}) {
        if (grid.tp > model.max_tp) continue;
        SCOPED_TRACE(cat(model.title, " ", to_string(grid), " dropout ", config.dropout,
                         config.dora ? " dora " : " ", config.targets[0]));
        for (const LoraResult& rank : on_grid(grid, [&](const Mesh& mesh) {
               return measure_lora(model, mesh, algorithms::SftLoss{}, batch, 60);
             })) {
          if (!rank.weights.empty()) expect_near_lora(rank, one);
          EXPECT_EQ(rank.loss > 0, true);
        }
      }
    }
}

// Sequence parallelism: the same sums in another order.
TEST(LoraParity, RowsThatTensorRanksDivideTrainTheSameAdapter) {
  for (const auto& base : grid_models())
    for (const auto& config : {plain(), with_dropout(), of_the_head()}) {
      const GridModel model = adapted(base, config);
      const Experience batch = full_batch(5, 8, 1, model.spec.vocabulary);
      for (const Grid grid : {Grid{1, 2}, Grid{1, 4}, Grid{.tp = 2, .pp = 2}}) {
        if (grid.tp > model.max_tp) continue;
        SCOPED_TRACE(cat(model.title, " ", to_string(grid), " dropout ", config.dropout, " ",
                         config.targets[0]));
        const auto measure = [&](bool divides_rows) {
          return on_grid(grid, [&](const Mesh& mesh) {
            return measure_lora(model, mesh, algorithms::SftLoss{}, batch, 60, divides_rows);
          });
        };
        const auto whole = measure(false), divided = measure(true);
        for (std::size_t rank = 0; rank < whole.size(); ++rank) {
          if (whole[rank].weights.empty()) continue;
          EXPECT_LT(lora_distance(divided[rank].gradient, whole[rank].gradient), 2e-6);
          EXPECT_LT(lora_distance(divided[rank].weights, whole[rank].weights), 2e-6);
          EXPECT_LT(lora_distance(divided[rank].logp, whole[rank].logp), 2e-6);
        }
      }
    }
}

TEST(LoraParity, MicroBatchesChangeNoBitOfAnyAdapter) {
  for (const auto& config : {plain(), with_dropout(), with_magnitudes(), of_the_head()}) {
    const GridModel model = adapted(grid_models()[1], config);
    const Experience batch = full_batch(5, 10, 2, model.spec.vocabulary);
    const LoraResult whole = measure_lora(model, Mesh(), algorithms::DpoLoss{}, batch, 100000);
    for (const int tokens : {1, 40}) {
      const LoraResult parts = measure_lora(model, Mesh(), algorithms::DpoLoss{}, batch, tokens);
      EXPECT_EQ(parts.loss, whole.loss);
      EXPECT_EQ(parts.gradient, whole.gradient);
      EXPECT_EQ(parts.norms, whole.norms);
      EXPECT_EQ(parts.weights, whole.weights);
    }
  }
}

TEST(LoraParity, DropoutIsAnotherDrawInEachUpdateAndTheSameInEachRun) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const GridModel model = adapted(grid_models()[0], with_dropout());
  const Experience batch = full_batch(5, 6, 1, model.spec.vocabulary);
  const auto losses = [&](std::uint64_t seed) {
    Trainer trainer(grid_decoder(*device, model, 3, Mesh(), true), {.adapter_seed = seed});
    std::vector<double> out;
    for (int i = 0; i < 2; ++i) {
      out.push_back(trainer.forward_backward(batch, algorithms::SftLoss{}).loss);
      value_or_throw(trainer.update(0));
    }
    return out;
  };
  const auto first = losses(1);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, losses(1));
  EXPECT_NE(first, losses(2));
}

TEST(Lora, AFreshAdapterAnswersAsItsBaseToTheBitAndStartsAlikeOnEveryGrid) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  for (const auto& config : {plain(), of_the_head()}) {
    const GridModel model = adapted(grid_models()[1], config);
    const Experience batch = full_batch(5, 6, 1, model.spec.vocabulary);
    const auto started = [&](const Mesh& mesh) {
      const auto own = engine::ops::make_cpu_device({.threads = 1});
      Trainer trainer(grid_decoder(*own, model, 3, mesh, true), {}, &mesh);
      engine::adapter::init_adapter(trainer.model(), 4);
      EXPECT_EQ(trainer.logprobs(batch, 1), trainer.logprobs(batch, 1, true));
      return engine::nn::gather_logical(trainer.model().parameters().trained(), mesh);
    };
    const auto one = started(Mesh());
    EXPECT_EQ(on_grid({1, 4}, started)[0], one);
    EXPECT_GT(dot(one, one), 0.1);
  }
}

TEST(Lora, AFreshAdapterWithMagnitudesAnswersAsItsBase) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const GridModel model = adapted(grid_models()[1], with_magnitudes());
  const Experience batch = full_batch(5, 6, 1, model.spec.vocabulary);
  Trainer trainer(grid_decoder(*device, model, 3, Mesh(), true), {});
  engine::adapter::init_adapter(trainer.model(), 4);
  EXPECT_LT(lora_distance(trainer.logprobs(batch, 1), trainer.logprobs(batch, 1, true)), 1e-6);
}

struct SentAdapter : testing::Test {
  GridModel model = adapted(grid_models()[1], of_the_head());
  std::unique_ptr<engine::ops::Device> device = engine::ops::make_cpu_device({.threads = 1});
  Trainer trainer{grid_decoder(*device, model, 3, Mesh(), true), {}};
  Experience batch = full_batch(5, 6, 1, model.spec.vocabulary);

  // A rollout with the same base and another adapter.
  actors::roles::Rollout rollout() {
    auto decoder = grid_decoder(*device, model, 3, Mesh(), false);
    auto& adapter = decoder->parameters().trained();
    device->fill(adapter.values(), 0);
    return value_or_throw(
        actors::roles::Rollout::create(std::move(decoder), nullptr, {.pages = 20}));
  }
  std::vector<protocol::Completion> draw(actors::roles::Rollout& from) {
    protocol::Generate message{{{{1, 2, 3}, 7}, {{4, 5}, 8}}, {}};
    message.sampling.max_new_tokens = 12;
    return value_or_throw(from.on(message));
  }
};

TEST_F(SentAdapter, IsAllThatIsSentAndDrawsWhatTheTrainerScoresToTheBit) {
  value_or_throw((trainer.forward_backward(batch, algorithms::SftLoss{}), trainer.update(1e-2)));
  const auto sent = actors::roles::publish(trainer, nullptr);
  EXPECT_EQ(std::ssize(*sent.values), trainer.model().parameters().trained().count());
  EXPECT_LT(std::ssize(*sent.values), model.spec.parameter_count() / 4);

  auto other = rollout();
  const auto before = draw(other);
  EXPECT_EQ(value_or_throw(other.on(protocol::PrepareWeights{sent})), sent.probe.logp);
  EXPECT_EQ(draw(other)[0].logp, before[0].logp) << "what was prepared is not in use yet";
  value_or_throw(other.on(protocol::CommitWeights{sent.version}));
  for (const auto& drawn : draw(other)) {
    Experience sample;
    std::vector<std::int32_t> ids =
        drawn.sample_id == 7 ? std::vector<std::int32_t>{1, 2, 3} : std::vector<std::int32_t>{4, 5};
    const std::size_t prompt = ids.size();
    ids.insert(ids.end(), drawn.ids.begin(), drawn.ids.end());
    std::vector<float> mask(ids.size(), 1.0f);
    sample.append(ids, mask);
    const auto logp = trainer.logprobs(sample, 1);
    EXPECT_EQ(std::vector<float>(logp.begin() + static_cast<std::ptrdiff_t>(prompt), logp.end()),
              drawn.logp);
  }
}

TEST_F(SentAdapter, ThatIsDamagedIsNamedAndNotTaken) {
  auto sent = actors::roles::publish(trainer, nullptr);
  std::vector<float> values(sent.values->begin(), sent.values->end());
  values.back() += 1;
  sent.values = std::make_shared<const std::vector<float>>(values);
  auto other = rollout();
  const auto before = draw(other);
  EXPECT_THAT(other.on(protocol::PrepareWeights{sent}).error().what,
              HasSubstr("lm_head.lora_B.weight"));
  EXPECT_EQ(draw(other)[0].logp, before[0].logp);
}

}  // namespace
}  // namespace troupe::test
