// Every loss of the catalog, with every kind, over one table: neither a loss nor the update that
// follows it depends on how a batch is cut into micro-batches, on the order in which its units are
// packed, or on how many ranks share the batch and the model.
//
// To add a loss: put its settings into a family of tests/algorithms/losses/*_family.h, and if the
// family is new, one line into table() below with the batch for its test. A setting
// without a line here is not known to obey the laws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "algorithms/catalog.h"
#include "algorithms/losses/pairs.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/nn/gradients.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/algorithms/losses/policy_family.h"
#include "tests/algorithms/losses/preference_family.h"
#include "tests/algorithms/losses/scored_family.h"
#include "tests/support/training_run.h"

namespace troupe::test {
namespace {

using engine::loss::AnyLoss;
using engine::train::Trainer;

/// Form of a batch for a loss: which tokens are trained on, which sequences stay together, and the
/// unit of the mean.
enum class Shape {
  tokens,     ///< any token; count: tokens
  sequences,  ///< answers with a label each; count: sequences
  pairs,      ///< answers in pairs; count: pairs, scale: chosen tokens
  verdicts,   ///< pairs of which the last tokens are read; count: pairs
};

struct Line {
  AnyLoss loss;
  Shape shape;
  int labels;  ///< of the model's score head; 0: a language model
};

std::vector<Line> table() {
  std::vector<Line> lines;
  const auto add = [&](const std::vector<AnyLoss>& family, Shape shape, int labels = 0) {
    for (const AnyLoss& loss : family)
      lines.push_back({loss, shape, loss.needs().candidates.empty() ? labels : 0});
  };
  using algorithms::SftLoss;
  add({SftLoss{}, SftLoss{.kind = algorithms::SftLossKind::dft}}, Shape::tokens);
  for (const AnyLoss& loss : preference_family())
    add({loss}, loss.spec().name == "kto" ? Shape::sequences : Shape::pairs);
  add(policy_family(), Shape::tokens);
  add(value_family(), Shape::tokens, 1);
  add(orm_family(), Shape::verdicts, 1);
  add(prm_family(), Shape::tokens, 2);
  return lines;
}

GridModel model_of(const Line& line) {
  const GridModel body = grid_models()[1];
  return line.labels > 0 ? scored(body, line.labels, line.labels > 1) : body;
}

/// A large eps keeps the step a smooth function of the gradient, so that updates can be compared at
/// all.
TrainingRun run_of(const Line& line, const Experience& batch, std::int32_t micro_batch_tokens) {
  return {.model = model_of(line),
          .loss = line.loss,
          .batch = batch,
          .options = {.micro_batch_tokens = micro_batch_tokens, .optimizer = {.eps = 1e-3}},
          .updates = 2,
          .keeps_gradient = true};
}

Trained measure(const Line& line, const Experience& batch, std::int32_t micro_batch_tokens) {
  return run_of(line, batch, micro_batch_tokens).on(Mesh());
}

// Fills the columns with the model's own outputs plus small differences: ratios near 1, values near
// the critic's.
void fill_columns(const Line& line, Experience& b) {
  const auto draw = [&](std::uint64_t what, std::size_t t, double size) {
    return static_cast<float>(size * (2 * uniform(9, 70 + what, t) - 1));
  };
  const Mesh alone;
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  Trainer trainer(grid_decoder(*device, model_of(line), 3, alone, true), {});
  const auto said = line.labels > 0 ? trainer.scores(b, line.loss.needs().scores_at, {})
                                    : trainer.logprobs(b, line.loss.needs().temperature);
  const auto columns = static_cast<std::size_t>(std::max(1, line.labels));
  b.old_logp.clear();
  b.reference_logp.clear();
  b.advantage.clear();
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    const float now = said[t * columns];
    b.old_logp.push_back(now + draw(0, t, 0.4));
    b.rollout_logp.push_back(now + draw(1, t, 0.4));
    b.reference_logp.push_back(now + draw(2, t, 0.4));
    b.advantage.push_back(draw(3, t, 1));
    b.value.push_back(now + draw(4, t, 0.4));
    b.returns.push_back(now + draw(5, t, 1));
    b.classes.push_back(b.mask[t] == 0 ? -1 : static_cast<std::int32_t>(t % 2));
  }
  for (std::int32_t n = 0; n < b.sequences(); ++n) {
    b.label.push_back(static_cast<float>(n % 2));
    b.reward.push_back(draw(6, static_cast<std::size_t>(n), 1));
    b.version.push_back(static_cast<std::uint64_t>(n % 3));
    b.sample_id.push_back(static_cast<std::uint64_t>(n));
  }
}

Experience batch_of(const Line& line) {
  const bool pairs = line.shape == Shape::pairs || line.shape == Shape::verdicts;
  Experience b = full_batch(5, 8, pairs ? 2 : 1, model_of(line).spec.vocabulary);
  if (line.shape == Shape::sequences) b.count = b.sequences();
  if (line.shape == Shape::verdicts) {
    std::ranges::fill(b.mask, 0.0f);
    for (std::size_t n = 1; n < b.offsets.size(); ++n)
      b.mask[static_cast<std::size_t>(b.offsets[n]) - 1] = 1;
  }
  fill_columns(line, b);
  if (line.shape == Shape::pairs) algorithms::set_nll_tokens(b);
  return b;
}

void expect_near(const Trained& a, const Trained& b, double tolerance) {
  EXPECT_NEAR(a.losses[0], b.losses[0], tolerance * std::max(1.0, std::abs(b.losses[0])));
  ASSERT_EQ(a.gradient.size(), b.gradient.size());
  EXPECT_LT(distance(a.gradient, b.gradient), tolerance);
  EXPECT_LT(distance(a.weights, b.weights), tolerance);
  for (std::size_t i = 0; i < a.norms.size(); ++i)
    EXPECT_NEAR(a.norms[i], b.norms[i], tolerance * b.norms[i]);
  expect_near_reports(a, b);
}

void expect_equal(const Trained& a, const Trained& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.report, b.report);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.gradient, b.gradient);
  EXPECT_EQ(a.weights, b.weights);
}

// visit(line, its batch, what one rank finds with all of it at once) for every line.
template <class Visit>
void for_each_line(const Visit& visit) {
  for (const Line& line : table()) {
    SCOPED_TRACE(cat(line.loss.spec().name, " ", line.loss.spec().fields.dump()));
    const Experience batch = batch_of(line);
    const Trained whole = measure(line, batch, 1 << 20);
    EXPECT_GT(dot(whole.gradient, whole.gradient), 1e-8) << "this batch shows nothing";
    visit(line, batch, whole);
  }
}

TEST(Catalog, TheSizeOfMicroBatchesChangesNoBitOfALossOrAnUpdate) {
  for_each_line([](const Line& line, const Experience& batch, const Trained& whole) {
    for (const std::int32_t tokens : {1, 45}) expect_equal(measure(line, batch, tokens), whole);
  });
}

TEST(Catalog, TheOrderOfUnitsChangesNoLossAndNoUpdate) {
  for_each_line([](const Line& line, const Experience& batch, const Trained& whole) {
    const int units = batch.sequences() / batch.sequences_per_group;
    std::vector<std::int32_t> order;
    for (int i = 0; i < units; ++i)
      for (int j = 0; j < batch.sequences_per_group; ++j)
        order.push_back((i * 3 + 1) % units * batch.sequences_per_group + j);
    expect_near(measure(line, batch.select(order), 60), whole, 2e-6);
  });
}

TEST(Catalog, RanksThatShareBatchAndModelChangeNoLossAndNoUpdate) {
  for_each_line([](const Line& line, const Experience& batch, const Trained& whole) {
    for (const Grid grid : {Grid{2, 1}, Grid{2, 2}}) {
      const auto ranks = run_of(line, batch, 45).on_ranks_of(grid);
      expect_near(ranks[0], whole, 1e-5);
      for (const Trained& rank : ranks) {
        EXPECT_EQ(rank.losses, ranks[0].losses);
        EXPECT_EQ(rank.report, ranks[0].report);
      }
    }
  });
}

TEST(Catalog, EveryLossOfTheCatalogHasALine) {
  const auto lines = table();
  for (const auto& [name, make] : algorithms::losses())
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const Line& line) {
      return line.loss.spec().name == name;
    })) << name;
}

}  // namespace
}  // namespace troupe::test
