// Losses that need the whole batch: two passes give the result of one, for any micro-batches and
// replicas.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/nn/gradients.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

/// Depends on each token alone; `Whole` only claims otherwise.
template <bool Whole>
struct Separate {
  static constexpr std::string_view name = "separate";
  static void each_field(auto&, auto&&) {}
  loss::Needs needs() const { return {.entropy = true, .whole_batch = Whole}; }
  loss::Expr operator()(const loss::TokenStats& now, const data::Experience& b,
                        loss::Report& report) const {
    report.mean("entropy", now.entropy, b.mask);
    return -sum((now.logp * b.advantage + 0.1 * now.entropy) * b.mask) / b.count;
  }
};

/// The spread of the log-probabilities over the batch: every token's derivative depends on all the
/// others.
struct Spread {
  static constexpr std::string_view name = "spread";
  static void each_field(auto&, auto&&) {}
  loss::Needs needs() const { return {.whole_batch = true}; }
  loss::Expr operator()(const loss::TokenStats& now, const data::Experience& b,
                        loss::Report& report) const {
    const loss::Expr mean = sum(now.logp * b.mask) / b.count;
    report.mean("mean", mean.value(), 1);
    return sum(square(now.logp - mean) * b.mask) / b.count;
  }
};

/// A loss of only the token with the highest log-probability of the batch.
struct Highest {
  static constexpr std::string_view name = "highest";
  static void each_field(auto&, auto&&) {}
  loss::Needs needs() const { return {.whole_batch = true}; }
  loss::Expr operator()(const loss::TokenStats& now, const data::Experience& b,
                        loss::Report&) const {
    const auto order = sorted(where(b.mask, now.logp, -1e9));
    return -sum(gather(order, {static_cast<std::int32_t>(b.tokens.size()) - 1}));
  }
};

struct StepResult {
  double loss = 0;
  std::int64_t tokens = 0;
  std::map<std::string, double> report;
  std::vector<float> gradient;
};

StepResult measure(const test::Mesh& mesh, const loss::AnyLoss& loss,
                   std::int32_t micro_batch_tokens) {
  const test::GridModel model = test::grid_models()[0];
  const auto device = ops::make_cpu_device({.threads = 1});
  Trainer trainer(test::grid_decoder(*device, model, 3, mesh, true),
                  {.micro_batch_tokens = micro_batch_tokens}, &mesh);
  const auto batch = test::full_batch(5, 10, 1, model.spec.vocabulary);
  const BatchLoss all = trainer.forward_backward(batch, loss);
  auto& parameters = trainer.model().parameters();
  nn::all_reduce_gradients(parameters, trainer.model().tp(),
                           mesh.grid().dp > 1 ? &mesh.dp() : nullptr);
  return {all.loss, all.tokens, all.report.values(),
          nn::gather_logical(parameters, parameters.grads(), mesh)};
}

void expect_near(const StepResult& a, const StepResult& b) {
  EXPECT_NEAR(a.loss, b.loss, 2e-6 * std::max(1.0, std::abs(b.loss)));
  EXPECT_EQ(a.tokens, b.tokens);
  for (const auto& [name, value] : b.report)
    EXPECT_NEAR(a.report.at(name), value, 1e-5 * std::max(1.0, std::abs(value))) << name;
  ASSERT_EQ(a.gradient.size(), b.gradient.size());
  std::vector<float> difference;
  for (std::size_t i = 0; i < a.gradient.size(); ++i)
    difference.push_back(a.gradient[i] - b.gradient[i]);
  const double size = test::dot(b.gradient, b.gradient);
  EXPECT_GT(size, 1e-6) << "this batch shows nothing";
  EXPECT_LT(test::dot(difference, difference), 1e-10 * size);
}

void expect_equal(const StepResult& a, const StepResult& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.report, b.report);
  EXPECT_EQ(a.gradient, b.gradient);
}

TEST(WholeBatch, TwoPassesGiveTheBitsOfOneWhereALossNeedsOnlyOne) {
  for (const std::int32_t tokens : {1, 30, 70, 1 << 20}) {
    const StepResult one = measure(test::Mesh(), Separate<false>{}, tokens),
                     two = measure(test::Mesh(), Separate<true>{}, tokens);
    expect_equal(one, two);
  }
}

TEST(WholeBatch, TwoPassesGiveTheBitsOfOneOnReplicas) {
  const auto one = test::on_grid(
      {2, 2}, [](const test::Mesh& mesh) { return measure(mesh, Separate<false>{}, 40); });
  const auto two = test::on_grid(
      {2, 2}, [](const test::Mesh& mesh) { return measure(mesh, Separate<true>{}, 40); });
  EXPECT_EQ(one[0].gradient, two[0].gradient);
}

TEST(WholeBatch, MicroBatchesAndReplicasChangeNothing) {
  for (const loss::AnyLoss& loss : {loss::AnyLoss(Spread{}), loss::AnyLoss(Highest{})}) {
    SCOPED_TRACE(loss.spec().name);
    const StepResult whole = measure(test::Mesh(), loss, 1 << 20);
    for (const std::int32_t tokens : {1, 30, 70})
      expect_equal(measure(test::Mesh(), loss, tokens), whole);
    for (const test::Grid grid : {test::Grid{2, 1}, test::Grid{1, 2}, test::Grid{3, 2}}) {
      const auto ranks =
          test::on_grid(grid, [&](const test::Mesh& mesh) { return measure(mesh, loss, 30); });
      expect_near(ranks[0], whole);
      for (const StepResult& rank : ranks) {
        EXPECT_EQ(rank.loss, ranks[0].loss) << "every replica evaluated the same batch";
        EXPECT_EQ(rank.report, ranks[0].report);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::engine::train
