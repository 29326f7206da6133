// Losses that balance routers, updates of choice biases and capacities: against float64 loops over
// the logits of the routers, finite differences, and one rank without micro-batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/observed_device.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

using ::testing::HasSubstr;

constexpr auto each_loss = {BalanceLoss::all_layers, BalanceLoss::batch, BalanceLoss::micro_batch,
                            BalanceLoss::sequence};

ExpertOptions one_loss(BalanceLoss loss, double coefficient) {
  return {.losses = {loss}, .coefficients = {coefficient}};
}

test::GridModel model_of(ops::RouterScore score) {
  test::GridModel model = test::mixture_model();
  model.spec.experts->router.score = score;
  return model;
}

/// Keeps the logits of routers, as they are computed.
struct LogitsOfRouters : ops::CallObserver {
  std::vector<std::vector<double>> calls;
  void computed(const ops::ObservedCall& call, ops::Device& device) override {
    if (call.op != "route") return;
    const auto values = ops::to_host(device, *call.input);
    calls.emplace_back(values.begin(), values.end());
  }
};

// Counts of favourites times sums of shares over some rows of some layers, and the number of rows.
struct LoopSums {
  std::vector<double> counts, shares;
  double rows = 0, squares = 0;
  double dot() const {
    return std::inner_product(counts.begin(), counts.end(), shares.begin(), 0.0);
  }
};

LoopSums loop_sums(const ops::Router& how, const std::vector<double>& logits, std::int64_t begin,
                   std::int64_t end) {
  const auto width = static_cast<std::size_t>(how.experts);
  LoopSums out{std::vector<double>(width), std::vector<double>(width)};
  for (std::int64_t t = begin; t < end; ++t) {
    const double* z = logits.data() + t * how.experts;
    std::vector<double> score;
    double sum = 0, exponentials = 0;
    for (std::size_t e = 0; e < width; ++e) {
      exponentials += std::exp(z[e]);
      score.push_back(how.score == ops::RouterScore::sigmoid ? 1 / (1 + std::exp(-z[e]))
                                                             : std::exp(z[e]));
      sum += score.back();
    }
    std::vector<std::size_t> order(width);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return z[a] > z[b]; });
    for (std::int64_t i = 0; i < how.chosen; ++i) ++out.counts[order[static_cast<std::size_t>(i)]];
    for (std::size_t e = 0; e < width; ++e) out.shares[e] += score[e] / sum;
    out.squares += std::pow(std::log(exponentials), 2);
    ++out.rows;
  }
  return out;
}

class ExpertLosses : public testing::TestWithParam<ops::RouterScore> {
 protected:
  const test::GridModel model_ = model_of(GetParam());
  const ops::Router& router_ = model_.spec.experts->router;
  const double experts_ = static_cast<double>(router_.experts),
               chosen_ = static_cast<double>(router_.chosen);

  static data::Experience batch(bool trained = true) {
    auto out = test::full_batch(5, 12, 1, test::mixture_model().spec.vocabulary);
    if (!trained) std::ranges::fill(out.mask, 0.0F);
    return out;
  }
  std::unique_ptr<Trainer> trainer(ops::Device& device, const TrainerOptions& options) const {
    auto model = std::make_unique<models::Decoder>(device, model_.spec, true);
    test::randomize(model->parameters(), 4, 0.5);
    return std::make_unique<Trainer>(std::move(model), options);
  }
  // By the formulas, from the logits of a batch in one micro-batch.
  double expected(BalanceLoss loss, const std::vector<std::vector<double>>& layers,
                  const data::Experience& batch) const {
    const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
    const auto value = [&](const LoopSums& sums) {
      return experts_ / (chosen_ * sums.rows * sums.rows) * sums.dot();
    };
    LoopSums all{std::vector<double>(static_cast<std::size_t>(router_.experts)),
                 std::vector<double>(static_cast<std::size_t>(router_.experts))};
    double sum = 0;
    for (const auto& logits : layers) {
      const LoopSums own = loop_sums(router_, logits, 0, tokens);
      for (std::size_t e = 0; e < own.counts.size(); ++e) {
        all.counts[e] += own.counts[e];
        all.shares[e] += own.shares[e];
      }
      all.rows += own.rows;
      if (loss == BalanceLoss::sequence)
        for (std::size_t n = 0; n + 1 < batch.offsets.size(); ++n)
          sum += value(loop_sums(router_, logits, batch.offsets[n], batch.offsets[n + 1])) /
                 static_cast<double>(batch.sequences());
      else
        sum += value(own);
    }
    if (loss == BalanceLoss::all_layers) return experts_ * all.dot() / (all.rows * all.rows);
    return sum / static_cast<double>(layers.size());
  }
};
INSTANTIATE_TEST_SUITE_P(Scores, ExpertLosses,
                         testing::Values(ops::RouterScore::softmax, ops::RouterScore::sigmoid),
                         [](const auto& each) {
                           return each.param == ops::RouterScore::sigmoid ? "Logistic" : "Softmax";
                         });

TEST_P(ExpertLosses, AreThoseOfLoops) {
  for (const BalanceLoss loss : each_loss) {
    LogitsOfRouters logits;
    const auto device = ops::make_observed_device(ops::make_cpu_device({.threads = 2}), logits);
    ExpertOptions how = one_loss(loss, 0.1);
    how.z_loss = 0.01;
    const auto trained = trainer(*device, {.experts = how});
    const auto found = trained->forward_backward(batch(), algorithms::SftLoss{});
    ASSERT_EQ(logits.calls.size(), 2U) << "one forward pass of two layers";
    const std::string name = cat("moe/", names_of(loss)[static_cast<std::size_t>(loss)], "_loss");
    EXPECT_NEAR(found.report.find(name).value_or(-1), expected(loss, logits.calls, batch()), 1e-9)
        << name;
    double squares = 0;
    for (const auto& layer : logits.calls)
      squares +=
          loop_sums(router_, layer, 0, static_cast<std::int64_t>(batch().tokens.size())).squares;
    EXPECT_NEAR(found.report.find("moe/z_loss").value_or(-1),
                squares / 2 / static_cast<double>(batch().tokens.size()), 1e-9);
  }
}

// Without trained tokens the gradients are those of the routers' losses alone, which passes through
// all layers. Differences of weights of the second router and of the first layer's attention.
TEST_P(ExpertLosses, HaveTheGradientsOfFiniteDifferences) {
  const auto device = ops::make_reference_device();
  const double layers = 2;
  for (const BalanceLoss loss : each_loss) {
    ExpertOptions how = one_loss(loss, 0.7);
    how.z_loss = 0.2;
    const TrainerOptions options{.micro_batch_tokens = 60, .experts = how};
    const auto trained = trainer(*device, options);
    auto& parameters = trained->model().parameters();
    trained->forward_backward(batch(false), algorithms::SftLoss{});
    parameters.complete_gradients();
    std::map<std::string, std::vector<float>> gradients;  // before others are added to them
    for (const auto& each : parameters.all())
      gradients[each.name] = ops::to_host(*device, each.grad);
    const auto objective = [&] {
      const auto report =
          trained->forward_backward(batch(false), algorithms::SftLoss{}).report.values();
      const double times = loss == BalanceLoss::all_layers ? 1 : layers;
      return 0.7 * times *
                 report.at(cat("moe/", names_of(loss)[static_cast<std::size_t>(loss)], "_loss")) +
             0.2 * layers * report.at("moe/z_loss");
    };
    for (const char* name : {"model.layers.1.mlp.gate.weight", "model.layers.0.mlp.gate.weight",
                             "model.layers.0.self_attn.v_proj.weight"}) {
      nn::Parameter& parameter = parameters.at(name);
      const std::vector<float>& gradient = gradients.at(name);
      const auto values = ops::to_host(*device, parameter.value);
      double largest = 0;
      for (const float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
      EXPECT_GT(largest, 1e-4) << "this batch shows nothing";
      int jumps = 0;
      for (std::size_t i = 0; i < 12; ++i) {
        const auto at = i * 7 % values.size();
        const auto at_distance = [&](float step) {
          auto changed = values;
          changed[at] += step;
          device->upload(parameter.value, changed);
          return objective();
        };
        const double difference = (at_distance(0x1p-9F) - at_distance(-0x1p-9F)) / 0x1p-8,
                     narrower = (at_distance(0x1p-10F) - at_distance(-0x1p-10F)) / 0x1p-9;
        device->upload(parameter.value, values);
        // Where a step changes a choice, the loss is not continuous.
        if (std::abs(difference - narrower) > 2e-2 * largest) {
          ++jumps;
        } else {
          EXPECT_NEAR(static_cast<double>(gradient[at]), difference, 3e-3 * largest)
              << name << " " << i;
        }
      }
      EXPECT_LE(jumps, 1) << name;
    }
  }
}

struct BalancedRun {
  std::vector<double> norms;
  std::map<std::string, double> report;
  std::vector<float> weights;
  std::vector<std::int64_t> loads;
};

BalancedRun balanced_run(const TrainerOptions& options, const test::Mesh& mesh) {
  const auto device = ops::make_cpu_device({.threads = 1});
  Trainer trainer(test::grid_decoder(*device, test::mixture_model(), 3, mesh, true), options,
                  &mesh);
  const auto batch = test::full_batch(5, 12, 1, test::mixture_model().spec.vocabulary);
  BalancedRun out;
  for (int update = 0; update < 3; ++update) {
    const BatchLoss all = trainer.forward_backward(batch, algorithms::SftLoss{});
    out.report = all.report.values();
    out.loads = all.experts.counts;
    out.norms.push_back(value_or_throw(trainer.update(1e-2)).grad_norm);
  }
  out.weights = test::gather_model(trainer.model(), mesh);
  return out;
}

BalancedRun first_balanced_run(const TrainerOptions& options, test::Grid grid) {
  return test::on_grid(grid,
                       [&](const test::Mesh& mesh) { return balanced_run(options, mesh); })[0];
}

TrainerOptions everything() {
  TrainerOptions options;
  options.experts = {.losses = {BalanceLoss::all_layers, BalanceLoss::batch, BalanceLoss::sequence},
                     .coefficients = {0.1, 0.2, 0.3},
                     .z_loss = 0.1,
                     .bias_rate = 0.05};
  return options;
}

TEST(ExpertTraining, MicroBatchesChangeNoBit) {
  for (const test::Grid grid :
       {test::Grid{1, 1}, test::Grid{2, 1}, test::Grid{1, 1, 2}, test::Grid{1, 2}}) {
    TrainerOptions options = everything();
    options.micro_batch_tokens = 1 << 20;
    const BalancedRun whole = first_balanced_run(options, grid);
    for (const std::int32_t tokens : {1, 30, 70}) {
      options.micro_batch_tokens = tokens;
      const BalancedRun parts = first_balanced_run(options, grid);
      EXPECT_EQ(parts.norms, whole.norms) << tokens;
      EXPECT_EQ(parts.report, whole.report) << tokens;
      EXPECT_EQ(parts.weights, whole.weights) << tokens;
    }
  }
}

TEST(ExpertTraining, RecomputationChangesNoBit) {
  TrainerOptions options = everything();
  options.micro_batch_tokens = 60;
  options.recomputed.kinds = {};
  const BalancedRun kept = first_balanced_run(options, {1, 1});
  for (const auto kind : {nn::Recompute::full, nn::Recompute::activation, nn::Recompute::norm}) {
    options.recomputed.kinds = {kind};
    const BalancedRun again = first_balanced_run(options, {1, 1});
    EXPECT_EQ(again.weights, kept.weights);
    EXPECT_EQ(again.report, kept.report);
  }
}

TEST(ExpertTraining, ReplicasAndStagesHaveTheLossesOfOneRank) {
  TrainerOptions options = everything();
  const BalancedRun one = first_balanced_run(options, {1, 1});
  const std::vector<std::pair<test::Grid, bool>> grids{
      {{2, 1}, false}, {{2, 1}, true}, {{1, 1, 2}, false}, {{2, 1, 2}, true},
      {{1, 2}, false}, {{2, 2}, true}, {{1, 2, 2}, false}};
  for (const auto& [grid, zero] : grids) {
    options.shard_optimizer = zero;
    const BalancedRun two = first_balanced_run(options, grid);
    EXPECT_EQ(two.loads, one.loads) << "no margin between scores";
    for (const auto& [name, value] : one.report)
      EXPECT_NEAR(two.report.at(name), value, 2e-6 * std::max(1.0, std::abs(value))) << name;
    for (std::size_t i = 0; i < one.norms.size(); ++i)
      EXPECT_NEAR(two.norms[i], one.norms[i], 1e-6 * one.norms[i]);
    double largest = 0, distance = 0;
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(one.weights[i])));
      distance = std::max(distance, std::abs(static_cast<double>(one.weights[i] - two.weights[i])));
    }
    EXPECT_LT(distance, 1e-5 * largest);
  }
}

// Of DeepSeek-V3: each bias moves by the rate towards fewer tokens than the mean.
TEST(ExpertTraining, BiasesFollowTheLoads) {
  const auto results = test::on_grid({2, 1}, [&](const test::Mesh& mesh) {
    const auto device = ops::make_cpu_device({.threads = 1});
    Trainer trainer(test::grid_decoder(*device, test::mixture_model(), 3, mesh, true),
                    {.shard_optimizer = true, .experts = {.bias_rate = 0.001}}, &mesh);
    const auto read = [&] {
      std::vector<std::vector<float>> all;
      for (const int layer : {0, 1})
        all.push_back(ops::to_host(
            *device, trainer.model()
                         .parameters()
                         .at(cat("model.layers.", layer, ".mlp.gate.e_score_correction_bias"))
                         .value));
      return all;
    };
    auto wanted = read();
    for (std::uint64_t update = 0; update < 50; ++update) {
      const auto batch = test::full_batch(update, 6, 1, test::mixture_model().spec.vocabulary);
      const auto loads = trainer.forward_backward(batch, algorithms::SftLoss{}).experts;
      value_or_throw(trainer.update(1e-3));
      for (std::size_t layer = 0; layer < 2; ++layer) {
        const auto own = std::span(loads.counts).subspan(6 * layer, 6);
        const double mean = std::accumulate(own.begin(), own.end(), 0.0) / 6;
        EXPECT_EQ(6 * mean, 2 * static_cast<double>(batch.tokens.size())) << "all tokens count";
        for (std::size_t e = 0; e < 6; ++e) {
          const auto count = static_cast<double>(own[e]);
          wanted[layer][e] += count < mean ? 0.001F : count > mean ? -0.001F : 0.0F;
        }
      }
    }
    EXPECT_EQ(read(), wanted);
    const auto& bias =
        trainer.model().parameters().at("model.layers.0.mlp.gate.e_score_correction_bias");
    EXPECT_EQ(device->sum_of_squares(bias.grad), 0);
    return wanted;
  });
  EXPECT_EQ(results[0], results[1]);
}

// Capacities act in training passes only.
TEST(ExpertTraining, CapacitiesDropTokensOfTraining) {
  const auto device = ops::make_cpu_device({.threads = 1});
  const auto batch = test::full_batch(5, 12, 1, test::mixture_model().spec.vocabulary);
  const auto run = [&](const ExpertOptions& how) {
    auto model = std::make_unique<models::Decoder>(*device, test::mixture_model().spec, true);
    test::randomize(model->parameters(), 4, 0.5);
    Trainer trainer(std::move(model), {.experts = how});
    const auto before = trainer.logprobs(batch, 1);
    const auto found = trainer.forward_backward(batch, algorithms::SftLoss{});
    EXPECT_EQ(trainer.logprobs(batch, 1), before);
    return std::pair(found.loss, found.report.find("moe/dropped_tokens").value_or(-1));
  };
  const auto [plain, none] = run({});
  EXPECT_EQ(none, 0);
  EXPECT_EQ(run({.capacity = 6}), std::pair(plain, 0.0)) << "all tokens may have one expert";
  for (const auto policy : {ops::DropPolicy::weight, ops::DropPolicy::position}) {
    const auto [loss, dropped] = run({.capacity = 1, .drop = policy});
    EXPECT_GT(dropped, 0);
    EXPECT_NE(loss, plain);
  }
}

TEST(ExpertTraining, OptionsThatContradictAreRefused) {
  models::DecoderSpec spec = test::mixture_model().spec;
  const auto problem = [&](const ExpertOptions& how, bool exact = true, bool shares = false) {
    const auto found = check_expert_options(spec, how, exact, shares);
    return found ? "accepted" : found.error().what;
  };
  EXPECT_EQ(problem({}), "accepted");
  EXPECT_EQ(problem({}, false, true), "accepted");
  EXPECT_THAT(problem({.losses = {BalanceLoss::batch}, .coefficients = {1, 2}}),
              HasSubstr("has 2 numbers, but train.experts.losses 1"));
  EXPECT_THAT(problem(one_loss(BalanceLoss::batch, -1)), HasSubstr("at least 0, found -1"));
  EXPECT_THAT(problem({.bias_rate = 1}, false), HasSubstr("needs train.weights: f32"));
  EXPECT_THAT(problem(one_loss(BalanceLoss::batch, 1), true, true),
              HasSubstr("train.share_prefixes"));
  spec.experts->choice_bias = false;
  EXPECT_THAT(problem({.bias_rate = 1}), HasSubstr("has no choice bias"));
}

TEST(ExpertTraining, WhatTensorParallelismDoesNotHaveIsRefusedByName) {
  const auto problems = [](test::GridModel model, bool divides_rows) {
    return test::on_grid({1, 2}, [&](const test::Mesh& mesh) -> std::string {
      const auto device = ops::make_cpu_device({.threads = 1});
      try {
        test::grid_decoder(*device, model, 3, mesh, true, {}, 1, divides_rows);
      } catch (const Failure& failure) {
        return failure.error().what;
      }
      return "accepted";
    });
  };
  test::GridModel model = test::mixture_model();
  EXPECT_THAT(problems(model, true), testing::Each(HasSubstr("parallel.sp is not possible")));
  model.spec.lora =
      models::LoraSpec{.targets = {{"model.layers.0.mlp.experts.down_proj", 2, 1}}, .saved = {}};
  EXPECT_THAT(problems(model, false),
              testing::Each(HasSubstr("not possible with an adapter of experts")));
}

TEST(ExpertTraining, ConfigAsksForTheLossOfTransformers) {
  models::ExpertsSpec spec = *test::mixture_model().spec.experts;
  spec.auxiliary_coefficient = 0.02;
  EXPECT_TRUE(balance_terms(spec, {}).empty()) << "output_router_logits is false";
  EXPECT_EQ(balance_terms(spec, {.losses = {BalanceLoss::batch}})[0].coefficient, 0.02);
  spec.auxiliary_loss = true;
  EXPECT_TRUE(balance_terms(spec, {.samples = true}).empty());
  EXPECT_EQ(balance_terms(spec, {.coefficients = {0.5}, .samples = true})[0].coefficient, 0.5);
  ASSERT_EQ(balance_terms(spec, {}).size(), 1U);
  EXPECT_EQ(balance_terms(spec, {})[0].loss, BalanceLoss::all_layers);
  EXPECT_EQ(balance_terms(spec, {})[0].coefficient, 0.02);
}

}  // namespace
}  // namespace troupe::engine::train
