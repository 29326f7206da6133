// Outputs of the heads, compared with loops in float64, and their backward pass, compared with
// finite differences.
#include "engine/train/output_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/scoring.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

using Doubles = std::vector<double>;

/// rows [M, D] times weight [V, D] transposed, in float64.
Doubles product(const Doubles& row, const std::vector<float>& weight) {
  Doubles out(weight.size() / row.size());
  for (std::size_t v = 0; v < out.size(); ++v)
    for (std::size_t i = 0; i < row.size(); ++i)
      out[v] += row[i] * static_cast<double>(weight[v * row.size() + i]);
  return out;
}

struct Row {
  Doubles log_p;
  double entropy = 0, collision = 0;
};
Row distribution(const Doubles& hidden, const std::vector<float>& weight, double temperature) {
  Row row{product(hidden, weight)};
  double sum = 0, squares = 0;
  for (double& z : row.log_p) sum += std::exp(z /= temperature);
  for (double& z : row.log_p) {
    z -= std::log(sum);
    row.entropy -= std::exp(z) * z;
    squares += std::exp(2 * z);
  }
  row.collision = std::log(squares);
  return row;
}

models::DecoderSpec scored(models::DecoderSpec spec, int labels, bool bias) {
  spec.labels = labels;
  spec.score_bias = bias;
  return spec;
}

/// Hidden states of a batch, and the outputs read from them.
struct Fixture {
  std::unique_ptr<ops::Device> device = ops::make_cpu_device({.threads = 1});
  data::Experience batch;
  std::unique_ptr<models::Decoder> model;

  Fixture(const models::DecoderSpec& spec, std::uint64_t seed)
      : batch(test::random_batch(seed, 6, 12, spec.vocabulary)),
        model(std::make_unique<models::Decoder>(*device, spec, true)) {
    test::randomize(model->parameters(), seed + 500, 0.5);
  }
  Tensor hidden() {
    const ops::PreparedLayout layout = device->prepare(layout_of(batch));
    nn::Saved nothing = nn::Saved::nothing();
    return model->forward(batch.tokens, {*device, layout}, nothing);
  }
  Doubles row(std::int64_t t) {
    const auto values = ops::to_host(*device, hidden().rows(t, t + 1));
    return {values.begin(), values.end()};
  }
  std::vector<float> weight(const char* name) {
    return ops::to_host(*device, model->parameters().at(name).value);
  }
};

models::DecoderSpec untied(std::uint64_t seed) {
  auto spec = test::random_spec(seed);
  spec.tied = false;
  return spec;
}

TEST(OutputHead, OfALanguageModelIsThatOfALoopOverTheVocabulary) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Fixture x(untied(seed), seed);
    const loss::Needs needs{.entropy = true,
                            .collision = true,
                            .scores = true,
                            .candidates = {3, 11, 3},
                            .temperature = 0.8};
    const HeadOutputs found = OutputHead(*x.model, x.batch, needs, {}).forward(x.hidden());
    const auto weight = x.weight("lm_head.weight");
    ASSERT_EQ(found.scores.size(), 3u);
    for (std::size_t t = 0; t < x.batch.tokens.size(); ++t) {
      if (x.batch.mask[t] == 0) {
        EXPECT_EQ(found.logp[t] + found.entropy[t] + found.collision[t] + found.scores[0][t], 0)
            << "token " << t;
        continue;
      }
      const Row before = distribution(x.row(static_cast<std::int64_t>(t) - 1), weight, 0.8);
      const Row at = distribution(x.row(static_cast<std::int64_t>(t)), weight, 0.8);
      EXPECT_NEAR(found.logp[t], before.log_p[static_cast<std::size_t>(x.batch.tokens[t])], 3e-6);
      EXPECT_NEAR(found.entropy[t], before.entropy, 3e-6);
      EXPECT_NEAR(found.collision[t], before.collision, 6e-6);
      EXPECT_NEAR(found.scores[0][t], at.log_p[3], 3e-6);
      EXPECT_NEAR(found.scores[1][t], at.log_p[11], 3e-6);
      EXPECT_EQ(found.scores[2][t], found.scores[0][t]);
    }
  }
}

TEST(OutputHead, OfAScoreHeadIsThatOfALoopAtTheTokenOrBeforeIt) {
  for (const bool bias : {false, true})
    for (const auto at : {loss::ReadAt::before, loss::ReadAt::token}) {
      Fixture x(scored(test::random_spec(2), 3, bias), 2);
      const HeadOutputs found =
          OutputHead(*x.model, x.batch, {.logp = false, .scores = true, .scores_at = at}, {})
              .forward(x.hidden());
      EXPECT_TRUE(found.logp.empty());
      ASSERT_EQ(found.scores.size(), 3u);
      const auto weight = x.weight("score.weight");
      const auto shift = bias ? x.weight("score.bias") : std::vector<float>(3);
      for (std::size_t t = 0; t < x.batch.tokens.size(); ++t) {
        if (x.batch.mask[t] == 0) continue;
        const auto expected = product(
            x.row(static_cast<std::int64_t>(t) - (at == loss::ReadAt::before ? 1 : 0)), weight);
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_NEAR(found.scores[c][t], expected[c] + static_cast<double>(shift[c]),
                      3e-6 * std::max(1.0, std::abs(expected[c])));
      }
    }
}

TEST(OutputHead, RefusesWhatAModelCannotSay) {
  const auto language = test::random_spec(1), reward_model = scored(language, 1, false);
  EXPECT_TRUE(check_needs(language, {}));
  EXPECT_TRUE(check_needs(reward_model, {.logp = false, .scores = true}));
  for (const auto& refused :
       {check_needs(language, {.scores = true}), check_needs(reward_model, {}),
        check_needs(reward_model, {.logp = false, .collision = true}),
        check_needs(reward_model, {.logp = false, .scores = true, .candidates = {1}}),
        check_needs(language, {.scores = true, .candidates = {64}})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::usage);
  }
}

/// A smooth function of all outputs.
template <bool Scored>
struct EveryReading {
  static constexpr std::string_view name = "every reading";
  loss::ReadAt at = loss::ReadAt::token;
  static void each_field(auto&, auto&&) {}
  loss::Needs needs() const {
    if (Scored) return {.logp = false, .scores = true, .scores_at = at};
    return {.entropy = true,
            .collision = true,
            .scores = true,
            .scores_at = at,
            .candidates = {5, 2},
            .temperature = 1.2};
  }
  loss::Expr operator()(const loss::TokenStats& now, const data::Experience& b,
                        loss::Report&) const {
    loss::Expr x = square(now.scores[0] - 0.4) - 0.7 * now.scores[1] * now.scores[0];
    if (!Scored) x = x + 0.3 * now.logp + 0.5 * square(now.entropy) + now.logp * now.scores[1];
    return sum(x * b.mask) / b.count;
  }
};

template <bool Scored>
void expect_true_slope(const models::DecoderSpec& spec, loss::ReadAt at) {
  Fixture x(spec, 7);
  ops::Device& device = *x.device;
  Trainer trainer(std::move(x.model), {});
  auto& parameters = trainer.model().parameters();
  const EveryReading<Scored> loss{at};
  for (auto& p : parameters.all()) {
    if (!p.name.starts_with("score") && !p.name.starts_with("lm_head") &&
        p.name != "model.norm.weight")
      continue;
    device.fill(parameters.grads(), 0);
    trainer.forward_backward(x.batch, loss);
    const Tensor gradient = ops::from_host(device, p.grad.shape(), ops::to_host(device, p.grad));
    const auto loss_of = [&] { return trainer.forward_backward(x.batch, loss).loss; };
    for (std::uint64_t trial = 0; trial < 3; ++trial)
      test::expect_slope(device, p.value, gradient, 3000 + trial, loss_of, p.name.c_str());
  }
}

TEST(OutputHead, BackwardIsTheGradientOfWhatWasRead) {
  for (const auto at : {loss::ReadAt::before, loss::ReadAt::token}) {
    expect_true_slope<false>(untied(3), at);
    expect_true_slope<true>(scored(test::random_spec(3), 2, false), at);
    expect_true_slope<true>(scored(test::random_spec(4), 3, true), at);
  }
}

TEST(OutputHead, IsTheSameWhenRanksShareTheModelAndTheBatch) {
  for (test::GridModel model : test::grid_models()) {
    const loss::Needs words{
        .entropy = true, .collision = true, .scores = true, .candidates = {36, 2}};
    const auto read = [&](const test::Mesh& mesh, const loss::Needs& needs) {
      const auto device = ops::make_cpu_device({.threads = 1});
      const auto decoder = test::grid_decoder(*device, model, 3, mesh, false);
      HeadOutputs found = head_outputs(*decoder, test::full_batch(5, 7, 1, model.spec.vocabulary),
                                       needs, {.micro_batch_tokens = 40}, &mesh.dp());
      std::vector<float> all;
      for (const auto* column : found.columns(needs, model.spec))
        all.insert(all.end(), column->begin(), column->end());
      return all;
    };
    for (const int labels : {0, 2}) {
      model.spec.labels = labels;
      model.spec.score_bias = true;
      const loss::Needs needs =
          labels ? loss::Needs{.logp = false, .scores = true, .scores_at = loss::ReadAt::before}
                 : words;
      const auto one = read(test::Mesh(), needs);
      for (const auto& rank : test::on_grid(
               {2, model.max_tp}, [&](const test::Mesh& mesh) { return read(mesh, needs); })) {
        ASSERT_EQ(rank.size(), one.size());
        for (std::size_t i = 0; i < one.size(); ++i)
          ASSERT_NEAR(rank[i], one[i], 1e-5) << model.title << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::engine::train
