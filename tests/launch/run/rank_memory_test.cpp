// What explain states of weights, gradients and moments is what each rank of a grid allocates.
#include "launch/memory/rank_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "launch/recipes/model_spec.h"
#include "launch/run/settings.h"
#include "launch/run/trained_model.h"
#include "tests/launch/run/config_with.h"
#include "tests/support/grid_decoder.h"

namespace troupe::launch::rank_memory_test {
namespace {

using engine::parallel::Mesh;

/// Bytes that a rank allocated.
struct Held {
  std::uint64_t weights = 0, gradients = 0, moments = 0, average = 0;
};

Held held_by(const config::RunConfig& config, const Mesh& mesh) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const std::string no_checkpoint;
  const auto trainer = run::load_trainer({config, no_checkpoint, *device, &mesh});
  auto& parameters = trainer->model().parameters();
  Held out{parameters.values().bytes(), parameters.gradient_arena().bytes(),
           trainer->optimizer().exp_avg().bytes() + trainer->optimizer().exp_avg_sq().bytes(),
           trainer->optimizer().average() ? trainer->optimizer().average().bytes() : 0};
  for (const auto& parameter : parameters.all())
    if (parameter.state && parameter.state->lookup)
      out.gradients += sizeof(float) * static_cast<std::size_t>(parameter.value.count());
  return out;
}

void expect_exact(std::vector<std::string> sets, const std::string& algorithm = "sft") {
  SCOPED_TRACE(join(sets, " "));
  const config::RunConfig config = config_with(std::move(sets), algorithm);
  const auto predicted =
      memory::memory_of_ranks(config, value_or_throw(recipes::spec_of(config, config.model)));
  ASSERT_EQ(predicted.size(), static_cast<std::size_t>(config.parallel.pp * config.parallel.tp));
  const auto replicas = static_cast<std::uint64_t>(config.parallel.dp * config.parallel.cp);
  std::vector<Held> sums(predicted.size());  // over the replicas
  const auto held = test::on_grid(config.parallel, [&](const Mesh& mesh) {
    const auto at = mesh.coordinates();
    return std::pair(static_cast<std::size_t>(at.pp * config.parallel.tp + at.tp),
                     held_by(config, mesh));
  });
  for (const auto& [place, of] : held) {
    EXPECT_EQ(of.weights, predicted[place].weights + predicted[place].adapter);
    EXPECT_EQ(of.gradients, predicted[place].gradients);
    sums[place].moments += of.moments;
    sums[place].average += of.average;
  }
  for (std::size_t place = 0; place < predicted.size(); ++place) {
    // A shard's bytes are rounded up.
    EXPECT_NEAR(static_cast<double>(sums[place].moments),
                static_cast<double>(replicas * predicted[place].moments), 8);
    EXPECT_NEAR(static_cast<double>(sums[place].average),
                static_cast<double>(replicas * predicted[place].average), 8);
  }
}

TEST(RankMemory, IsWhatEachRankAllocates) {
  expect_exact({});
  expect_exact({"parallel.dp=2"});
  expect_exact({"parallel.dp=4", "parallel.zero=1", "train.ema_decay=0.5"});
  expect_exact({"parallel.tp=2"});
  expect_exact({"parallel.tp=4"});
  expect_exact({"parallel.cp=2", "parallel.zero=1"});
  expect_exact({"parallel.pp=2", "parallel.vpp=2"});
  expect_exact({"parallel.pp=2", "parallel.layers=[4,1]", "parallel.tp=2", "parallel.dp=2",
                "parallel.zero=1"});
}

TEST(RankMemory, IsThatOfTheTypes) {
  expect_exact({"train.weights=bf16", "parallel.tp=2"});
  expect_exact({"train.gradients=bf16", "parallel.pp=2"});
  expect_exact({"train.moments=bf16", "parallel.dp=2", "parallel.zero=1"});
  expect_exact(
      {"train.dtype=bf16", "train.weights=bf16", "train.gradients=bf16", "train.moments=bf16"});
}

TEST(RankMemory, IsThatOfAdaptersAndScoreHeads) {
  expect_exact({"lora.rank=4", "parallel.tp=2"});
  expect_exact({"lora.rank=4", "parallel.pp=2", "train.weights=bf16"});
  expect_exact({"parallel.tp=2"}, "orm");
}

}  // namespace
}  // namespace troupe::launch::rank_memory_test
