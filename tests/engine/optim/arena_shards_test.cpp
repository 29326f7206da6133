#include "engine/nn/arena_shards.h"

#include <gmock/gmock.h>

#include <limits>

#include "engine/base/random/random.h"
#include "engine/nn/gradient_sums.h"
#include "engine/nn/gradients.h"
#include "engine/nn/weight_gather.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/optim/adamw.h"
#include "tests/support/on_ranks.h"

namespace troupe::engine::nn {
namespace {

using parallel::Communicator;

/// Tensors of 100001, 7, 40000 and 33000 values: more than a block, less, not a multiple.
std::vector<ParameterSpec> specs() {
  return {{"a", Shape{100001}}, {"b", Shape{7}}, {"c", Shape{200, 200}}, {"d", Shape{100, 330}}};
}
constexpr std::int64_t count = 100001 + 7 + 40000 + 33000;

std::vector<float> random_floats(std::uint64_t seed, std::uint64_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(uniform(seed, stream, i) - 0.5);
  return values;
}

/// The model on one rank, with weights that are equal on all and gradients of the rank.
struct Rank {
  explicit Rank(int rank) {
    device->upload(parameters.values(), random_floats(1, 0));
    device->upload(parameters.grads(), random_floats(2, static_cast<std::uint64_t>(rank)));
  }
  std::vector<float> weights() { return ops::to_host(*device, parameters.values()); }
  std::vector<float> gradients() { return ops::to_host(*device, parameters.grads()); }

  std::unique_ptr<ops::Device> device = ops::make_cpu_device({.threads = 1});
  Parameters parameters{*device, specs(), true};
};

constexpr std::int64_t buckets[] = {1, 20000, 50000, ArenaShards::bucket_values};

TEST(ArenaShards, CoverTheArenaOnceAndFillEveryShardInOrder) {
  for (const int ranks : {1, 2, 3, 5})
    for (const std::int64_t bucket : buckets)
      for (const bool by_tensor : {false, true})
        test::on_ranks(ranks, [&](Communicator& dp) {
          Rank mine(0);
          const ArenaShards shards(mine.parameters, dp, by_tensor, bucket);
          std::int64_t at = 0;
          std::vector<std::int64_t> filled(static_cast<std::size_t>(ranks));
          for (const auto& piece : shards.pieces()) {
            EXPECT_EQ(piece.begin, at);
            EXPECT_EQ(piece.at, filled[static_cast<std::size_t>(piece.rank)]);
            filled[static_cast<std::size_t>(piece.rank)] += piece.size();
            at = piece.end;
          }
          EXPECT_EQ(at, count);
          EXPECT_EQ(shards.count(), filled[static_cast<std::size_t>(dp.rank())]);
          // Every bucket gives a rank its share to within one block.
          const auto share = count / ranks;
          EXPECT_LE(std::abs(shards.count() - share),
                    16384 * static_cast<std::int64_t>(shards.buckets()));
          std::int64_t within = 0;
          for (int r = 0; r < ranks; ++r)
            for (const auto& piece : shards.within(99000, 150000, r)) within += piece.size();
          EXPECT_EQ(within, 51000);
        });
}

/// The loop over the ranks in their order.
std::vector<float> summed_gradients(int ranks) {
  auto sums = random_floats(2, 0);
  for (int r = 1; r < ranks; ++r) {
    const auto next = random_floats(2, static_cast<std::uint64_t>(r));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += next[i];
  }
  return sums;
}

TEST(ArenaShards, SumTheirPiecesInTheOrderOfTheRanksAndGatherWeights) {
  for (const std::int64_t bucket : buckets)
    test::on_ranks(3, [&](Communicator& dp) {
      Rank mine(dp.rank());
      const ArenaShards shards(mine.parameters, dp, false, bucket);
      reduce_scatter_gradients(mine.parameters, shards);
      const auto found = mine.gradients(), expected = summed_gradients(3);
      for (const auto& piece : shards.mine(0, count))
        for (std::int64_t i = piece.begin; i < piece.end; ++i)
          ASSERT_EQ(found[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i)]);
      WeightGather(shards, mine.parameters.grads()).finish();
      EXPECT_EQ(mine.gradients(), expected);
    });
}

TEST(ArenaShards, NormHasTheBitsOfUndividedGradients) {
  for (const std::int64_t bucket : buckets)
    test::on_ranks(4, [&](Communicator& world) {
      const auto dp = world.split(world.rank() % 2, world.rank()),
                 tp = world.split(world.rank() / 2, world.rank());
      for (Communicator* of_tensors : {static_cast<Communicator*>(nullptr), tp.get()}) {
        Rank whole(dp->rank()), divided(dp->rank());
        all_reduce_gradients(whole.parameters, nullptr, dp.get());
        const ArenaShards shards(divided.parameters, *dp, of_tensors != nullptr, bucket);
        reduce_scatter_gradients(divided.parameters, shards);
        EXPECT_EQ(sum_of_squares(divided.parameters, shards, of_tensors),
                  sum_of_squares(whole.parameters, of_tensors));
      }
    });
}

TEST(ArenaShards, NameTheTensorsThatAreNotFiniteOrHaveNoGradient) {
  test::on_ranks(3, [&](Communicator& dp) {
    Rank mine(dp.rank());
    const ArenaShards shards(mine.parameters, dp, false, 20000);
    Tensor b = mine.parameters.at("b").grad, d = mine.parameters.at("d").grad;
    mine.device->fill(b, 0);
    reduce_scatter_gradients(mine.parameters, shards);
    EXPECT_EQ(nonzero_gradients(mine.parameters, shards),
              (std::vector<bool>{true, false, true, true}));
    EXPECT_EQ(first_nonfinite_parameter(mine.parameters, shards, nullptr), "");
    // In the last value only, which one rank has.
    std::vector<float> values(33000, 1);
    values.back() = std::numeric_limits<float>::quiet_NaN();
    mine.device->upload(d, values);
    EXPECT_EQ(first_nonfinite_parameter(mine.parameters, shards, nullptr), "d");
  });
}

/// Three updates on every rank of dp: weights, norms, and the moments of this rank.
struct Updated {
  std::vector<float> weights;
  std::vector<double> norms;
  std::vector<float> exp_avg;
};

Updated updates(Communicator& dp, std::shared_ptr<const ArenaShards> shards, Rank& mine,
                bool rounded) {
  optim::AdamW optimizer(mine.parameters, nullptr, shards, nullptr,
                         rounded ? DType::bf16 : DType::f32);
  const optim::AdamWConfig config{.weight_decay = 0.1,
                                  .weights = rounded ? nn::WeightType::bf16 : nn::WeightType::f32,
                                  .seed = 3};
  Updated found;
  for (std::uint64_t step = 0; step < 3; ++step) {
    mine.device->upload(mine.parameters.grads(),
                        random_floats(step + 7, static_cast<std::uint64_t>(dp.rank())));
    if (shards)
      reduce_scatter_gradients(mine.parameters, *shards);
    else
      all_reduce_gradients(mine.parameters, nullptr, &dp);
    const auto report =
        value_or_throw(optimizer.step(1e-2, config, optim::AdamW::Gradients::cleared));
    found.norms.push_back(report.grad_norm);
    EXPECT_EQ(mine.gradients(), std::vector<float>(count, 0));
  }
  found.weights = mine.weights();
  found.exp_avg = ops::to_host(*mine.device, optimizer.exp_avg());
  return found;
}

TEST(ArenaShards, UpdatesHaveTheBitsOfAnUndividedOptimizer) {
  for (const std::int64_t bucket : buckets)
    for (const bool rounded : {false, true})
      test::on_ranks(3, [&](Communicator& dp) {
        Rank whole(dp.rank()), divided(dp.rank());
        const auto shards =
            std::make_shared<const ArenaShards>(divided.parameters, dp, false, bucket);
        const Updated a = updates(dp, nullptr, whole, rounded),
                      b = updates(dp, shards, divided, rounded);
        EXPECT_EQ(a.weights, b.weights);
        EXPECT_EQ(a.norms, b.norms);
        ASSERT_EQ(std::ssize(b.exp_avg), shards->count());
        for (const auto& piece : shards->mine(0, count))
          for (std::int64_t i = 0; i < piece.size(); ++i)
            ASSERT_EQ(b.exp_avg[static_cast<std::size_t>(piece.at + i)],
                      a.exp_avg[static_cast<std::size_t>(piece.begin + i)]);
      });
}

TEST(ArenaShards, AnUpdateWithAGradientThatIsNotFiniteChangesNothing) {
  test::on_ranks(2, [&](Communicator& dp) {
    Rank mine(dp.rank());
    const auto shards = std::make_shared<const ArenaShards>(mine.parameters, dp, false, 20000);
    optim::AdamW optimizer(mine.parameters, nullptr, shards);
    const auto before = mine.weights();
    auto gradients = mine.gradients();
    if (dp.rank() == 1) gradients[100003] = std::numeric_limits<float>::infinity();
    mine.device->upload(mine.parameters.grads(), gradients);
    reduce_scatter_gradients(mine.parameters, *shards);
    const auto updated = optimizer.step(1e-2, {}, optim::AdamW::Gradients::cleared);
    ASSERT_FALSE(updated);
    EXPECT_THAT(updated.error().what, ::testing::HasSubstr("the gradient of b is not finite"));
    EXPECT_EQ(mine.weights(), before);
    EXPECT_EQ(optimizer.steps(), 0);
  });
}

}  // namespace
}  // namespace troupe::engine::nn
