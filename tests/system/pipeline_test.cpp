// Pipeline stages: threads of one process and ranks of mpirun write the same bytes; losses and
// unclipped weights are those of one rank; a run may change its grid.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/child.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using testing::HasSubstr;

class Pipelines : public SystemRuns {
 protected:
  std::string run_of(const char* algorithm, const std::string& output, const std::string& grid,
                     const std::string& more = "") const {
    return arguments(algorithm, output,
                     cat("--set train.steps=6 --set train.save_every=2 --set train.keep_last=0 "
                         "--set train.threads=1 ",
                         "--set train.micro_batch_tokens=256 ", grid, " ", more));
  }

  void expect_near(const std::string& output, const std::string& one) const {
    const auto found = losses(output), expected = losses(one);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 4e-6 * std::max(1.0, std::abs(expected[i])))
          << output << ", step " << i + 1;
  }

  // The tensors of the last checkpoint. The norms of gradients are sums over stages, so their last
  // bits differ.
  void expect_same_files(const std::string& output, const std::string& one) const {
    EXPECT_EQ(losses(output), losses(one));
    for (const char* file : {"model.safetensors", "training/optimizer.safetensors"}) {
      const std::string at = cat("/checkpoint-6/", file);
      EXPECT_TRUE(value_or_throw(read_file(path(output + at))) ==
                  value_or_throw(read_file(path(one + at))))
          << output << at;
    }
  }

  // Continues a copy of `from` after step `step`.
  void continue_at(const std::string& from, const std::string& to, int step,
                   const std::string& grid) const {
    std::filesystem::copy(
        path(from), path(to),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    for (int later = step + 1; later <= 15; ++later)
      std::filesystem::remove_all(path(cat(to, "/checkpoint-", later)));
    run(run_of("sft", to, grid, cat("--set resume='", path(cat(to, "/checkpoint-", step)), "'")));
  }
};

class PipelinesOf : public Pipelines, public testing::WithParamInterface<const char*> {};

TEST_P(PipelinesOf, AMethodHasTheLossesOfOneRank) {
  const std::string algorithm = GetParam();
  std::string more = "--set train.steps=3 --set train.save_every=0";
  if (algorithm == "prm") more += step_rows();
  run(run_of(GetParam(), "one", "", more));
  run(run_of(GetParam(), "stages", "--set parallel.pp=2", more));
  ASSERT_EQ(losses("one").size(), 3u);
  expect_near("stages", "one");
}
INSTANTIATE_TEST_SUITE_P(All, PipelinesOf,
                         testing::Values("pretrain", "sft", "dpo", "simpo", "cpo", "orpo", "kto",
                                         "orm", "prm", "ppo", "grpo"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_F(Pipelines, WithoutClippingTheTensorsAreThoseOfOneRank) {
  const std::string free = "--set train.max_grad_norm=0";
  run(run_of("sft", "one", "", free));
  run(run_of("sft", "stages", "--set parallel.pp=2 --set parallel.layers='[4, 1]'", free));
  expect_same_files("stages", "one");
}

TEST_F(Pipelines, VirtualStagesAreThoseOfOneRankAndMayChange) {
  const std::string free = "--set train.max_grad_norm=0";
  run(run_of("sft", "one", "", free));
  run(run_of("sft", "stages",
             "--set parallel.pp=2 --set parallel.vpp=2 --set parallel.layers='[1, 1, 1, 2]'",
             free));
  expect_same_files("stages", "one");
  continue_at("stages", "even", 2,
              "--set parallel.pp=2 --set parallel.vpp=2 --set train.max_grad_norm=0");
  expect_same_files("even", "one");
}

TEST_F(Pipelines, NoopLayersAndTheOrderOfRanksAreInNoCheckpoint) {
  const std::string grid = "--set parallel.pp=2 --set parallel.dp=2 ";
  run(run_of("sft", "layers", grid + "--set parallel.layers='[2, 3]'"));
  run(run_of("sft", "noop", grid + "--set parallel.noop_layers='[0]'"));
  run(run_of("sft", "order",
             grid + "--set parallel.layers='[2, 3]' --set parallel.order=tp-cp-pp-dp"));
  for (const char* other : {"noop", "order"}) expect_same_files(other, "layers");
}

TEST_F(Pipelines, AdaptersAndRoundedWeightsAreThoseOfOneRank) {
  for (const char* more : {"--set lora.rank=4 --set lora.dropout=0.1",
                           "--set train.dtype=bf16 --set train.weights=bf16"}) {
    SCOPED_TRACE(more);
    const std::string name = std::string(more).substr(6, 4), set = " --set train.max_grad_norm=0";
    run(run_of("sft", "one-" + name, "", more + set));
    run(run_of("sft", "stages-" + name, "--set parallel.pp=2", more + set));
    EXPECT_EQ(losses("stages-" + name), losses("one-" + name));
  }
}

TEST_F(Pipelines, ThreadsAndMpirunWriteTheSameBytes) {
  if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  const std::string grid =
      "--set parallel.pp=2 --set parallel.vpp=2 --set parallel.dp=2 --set parallel.zero=1 "
      "--set parallel.overlap=all";
  run(run_of("sft", "threads", grid));
  // OpenMPI does not free its memory at exit, which AddressSanitizer reports as leaks.
  Child mpirun(cat("env ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe ",
                   "-n 4 ", command(run_of("sft", "mpi", grid))),
               log());
  ASSERT_EQ(mpirun.wait(), 0) << "see " << log();
  expect_same_bytes("threads", "mpi");
}

// Five steps on each grid.
TEST_F(Pipelines, ARunMayChangeItsGridTwice) {
  const std::string long_run = " --set train.steps=15 --set train.save_every=5";
  run(run_of("sft", "one", "", long_run));
  run(run_of("sft", "tp", "--set parallel.tp=2", long_run));
  continue_at("tp", "stages", 5,
              "--set parallel.pp=2 --set parallel.dp=2 --set parallel.zero=1" + long_run);
  continue_at("stages", "alone", 10, long_run);
  ASSERT_EQ(losses("alone").size(), 15u);
  expect_near("alone", "one");
  EXPECT_NE(losses("alone"), losses("one")) << "the grids changed nothing";
}

TEST_F(Pipelines, WhatHasNoStagesIsRefusedBeforeItStarts) {
  const auto refused = [&](const std::string& grid, const std::string& more = "") {
    const auto said = launch::run_program(run_of("sft", "refused", grid, more));
    EXPECT_EQ(said.code, 2) << said.err;
    EXPECT_FALSE(std::filesystem::exists(path("refused/metrics.jsonl")));
    return said.err;
  };
  EXPECT_THAT(refused("--set parallel.pp=6"), HasSubstr("allowed: 1 to 5"));
  EXPECT_THAT(refused("--set parallel.pp=2 --set parallel.layers='[3, 3]'"),
              HasSubstr("expected 5 layers in all"));
  EXPECT_THAT(refused("--set parallel.pp=2 --set parallel.layers=5"),
              HasSubstr("expected 2 numbers"));
  EXPECT_THAT(refused("--set parallel.pp=2 --set parallel.noop_layers='[6]'"),
              HasSubstr("expected 0 to 5"));
  EXPECT_THAT(refused("--set parallel.pp=2 --set parallel.vpp=3"), HasSubstr("allowed: 1 to 2"));
  EXPECT_THAT(refused("--set parallel.vpp=2"), HasSubstr("of at least 2, whose stages it divides"));
}

TEST_F(Pipelines, ExplainStatesHowLongAStageWaits) {
  const auto explained = [&](const std::string& grid) {
    std::string words = run_of("sft", "never", grid, "--set train.micro_batch_tokens=8192");
    words.replace(0, words.find(' '), "explain");
    const auto said = launch::run_program(words);
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out;
  };
  // 4 rows of at most 192 tokens are one micro-batch.
  EXPECT_THAT(explained("--set parallel.pp=2"), HasSubstr("waits for about 50.0 % of the time"));
  EXPECT_THAT(explained("--set parallel.pp=2 --set parallel.vpp=2"),
              testing::AllOf(HasSubstr("waits for about 33.3 % of the time"),
                             HasSubstr("(pp - 1) / (m vpp + pp - 1) with m = 1 micro-batch")));
  EXPECT_THAT(explained(""), testing::Not(HasSubstr("pipeline")));
}

}  // namespace
}  // namespace troupe::test
