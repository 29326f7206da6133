// No bit of a loss, its report or an update depends on where a batch is split into micro-batches.
#include <gtest/gtest.h>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/grpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::train {
namespace {

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, double> report;
  std::vector<float> weights;
};

class MicroBatches : public testing::TestWithParam<test::GridModel> {
 protected:
  static Outcome outcome(ops::Precision precision, const loss::AnyLoss& loss, int unit,
                         std::int32_t tokens, const test::Mesh& mesh) {
    const auto device = ops::make_cpu_device({.threads = 1});
    Trainer trainer(test::grid_decoder(*device, GetParam(), 3, mesh, true),
                    {.dtype = precision, .micro_batch_tokens = tokens}, &mesh);
    const auto batch = test::full_batch(5, 12, unit, GetParam().spec.vocabulary);
    Outcome out;
    for (int update = 0; update < 2; ++update) {
      const BatchLoss all = trainer.forward_backward(batch, loss);
      out.losses.push_back(all.loss);
      out.report = all.report.values();
      out.norms.push_back(value_or_throw(trainer.update(1e-2)).grad_norm);
    }
    out.weights = nn::gather_logical(trainer.model().parameters(), mesh);
    return out;
  }

  // Compares the outcomes on rank 0.
  static void expect_equal_bits(ops::Precision precision, const loss::AnyLoss& loss, int unit,
                                test::Grid grid) {
    const auto on_first_rank = [&](std::int32_t tokens) {
      return test::on_grid(grid, [&](const test::Mesh& mesh) {
        return outcome(precision, loss, unit, tokens, mesh);
      })[0];
    };
    const Outcome whole = on_first_rank(1 << 20);
    EXPECT_GT(whole.norms[0], 1e-3) << "this batch shows nothing";
    for (const std::int32_t tokens : {1, 30, 70}) {
      const Outcome parts = on_first_rank(tokens);
      EXPECT_EQ(parts.losses, whole.losses) << tokens;
      EXPECT_EQ(parts.norms, whole.norms) << tokens;
      EXPECT_EQ(parts.report, whole.report) << tokens;
      EXPECT_EQ(parts.weights, whole.weights) << tokens;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Families, MicroBatches, testing::ValuesIn(test::grid_models()),
                         [](const auto& each) { return each.param.title; });
INSTANTIATE_TEST_SUITE_P(Mixtures, MicroBatches, testing::Values(test::mixture_model()),
                         [](const auto& each) { return each.param.title; });

TEST_P(MicroBatches, ChangeNoBitOfAnUpdate) {
  for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
    SCOPED_TRACE(precision == ops::Precision::bf16 ? "bf16" : "f32");
    for (const test::Grid grid : {test::Grid{1, 1}, test::Grid{2, 1}, test::Grid{2, 2}}) {
      expect_equal_bits(precision, algorithms::SftLoss{}, 1, grid);
      expect_equal_bits(precision, algorithms::DpoLoss{}, 2, grid);
    }
    algorithms::GrpoLoss grpo;
    grpo.beta = 0.1;
    grpo.entropy_coef = 0.01;
    expect_equal_bits(precision, grpo, 1, {1, 1});
  }
}

}  // namespace
}  // namespace troupe::engine::train
