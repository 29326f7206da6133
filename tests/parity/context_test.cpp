// A context-parallel group trains what a single rank trains: the rows of a micro-batch are divided
// over ranks whatever its sequences, shared prefixes and heads are. grid_test.cpp compares
// gradients for all families and with the other axes. Sequence parallelism divides rows over tp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "algorithms/losses/dpo_loss.h"
#include "algorithms/losses/sft_loss.h"
#include "algorithms/losses/value_loss.h"
#include "engine/nn/head_exchange.h"
#include "engine/nn/ring_attention.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/training_run.h"

namespace troupe::test {
namespace {

using engine::nn::ContextPart;
using engine::train::Trainer;
using engine::train::TrainerOptions;

// Every rank's results are those of rank 0.
Trained on_all(const TrainingRun& run, Grid grid) {
  const auto ranks = run.on_ranks_of(grid);
  for (const Trained& rank : ranks) {
    EXPECT_EQ(rank.losses, ranks[0].losses);
    EXPECT_EQ(rank.norms, ranks[0].norms);
    EXPECT_EQ(rank.logp, ranks[0].logp);
  }
  return ranks[0];
}

void expect_what_one_rank_trains(TrainingRun run, Grid grid) {
  run.options.optimizer.eps = 1e-3;  // updates are a smooth function of the gradient
  run.updates = run.scored_after = 7;
  SCOPED_TRACE(cat(run.model.title, " ", to_string(grid), ", ulysses ", run.ulysses));
  const Trained one = run.on(Mesh()), found = on_all(run, grid);
  const bool only_ulysses = grid.cp == run.ulysses && grid.cp * grid.pp == grid.ranks();
  if (grid.cp > 1 && only_ulysses) {  // no ring, equal bits
    EXPECT_EQ(found.losses[0], one.losses[0]);
  }
  EXPECT_NEAR(found.losses[0], one.losses[0], 2e-6 * std::max(1.0, std::abs(one.losses[0])));
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], one.losses[i], 4e-6 * std::max(1.0, std::abs(one.losses[i])));
    EXPECT_NEAR(found.norms[i], one.norms[i], 1e-5 * one.norms[i]);
  }
  EXPECT_LT(distance(found.weights, one.weights), 1e-5);
  if (!one.logp.empty()) {
    EXPECT_LT(distance(found.logp, one.logp), 1e-5);
  }
}

TEST(Context, MoreRanksThanHeadsOrRowsTrainTheSame) {
  const GridModel model = grid_models()[2];  // 4 heads, one of keys
  for (const int ulysses : {1, 5})
    expect_what_one_rank_trains(
        {.model = model, .batch = full_batch(5, 6, 1, 37), .ulysses = ulysses}, {.cp = 5});
  // Micro-batches of one sequence each, some of them shorter than the group.
  for (const int ulysses : {1, 7})
    expect_what_one_rank_trains({.model = model,
                                 .batch = full_batch(6, 8, 1, 37),
                                 .options = {.micro_batch_tokens = 1},
                                 .ulysses = ulysses},
                                {.cp = 7});
}

TEST(Context, AllFamiliesTrainTheSameWithBothAlgorithms) {
  for (const auto& model : grid_models())
    for (const int ulysses : {1, 2, 4})
      expect_what_one_rank_trains({.model = model,
                                   .batch = full_batch(7, 8, 1, 37),
                                   .options = {.micro_batch_tokens = 60},
                                   .ulysses = ulysses},
                                  {.cp = 4});
}

TEST(Context, InnerRingsTrainTheSame) {
  for (const auto& model : {grid_models()[0], grid_models()[4]})
    for (const auto& [ranks, ulysses, inner] :
         {std::array{4, 1, 2}, std::array{6, 1, 2}, std::array{6, 1, 3}, std::array{8, 2, 2}})
      expect_what_one_rank_trains({.model = model,
                                   .batch = full_batch(7, 8, 1, 37),
                                   .options = {.micro_batch_tokens = 60},
                                   .ulysses = ulysses,
                                   .inner_ring = inner},
                                  {.cp = ranks});
}

TEST(Context, SharedPrefixesAreDividedOnceOrNotShared) {
  const Experience batch = full_batch(7, 12, 2, 37);
  for (const int ulysses : {1, 3})
    expect_what_one_rank_trains({.model = grid_models()[1],
                                 .loss = algorithms::DpoLoss{},
                                 .batch = batch,
                                 .options = {.micro_batch_tokens = 60, .share_prefixes = true},
                                 .ulysses = ulysses},
                                {.cp = 3});
}

TEST(Context, ScoresAreReadOnTheRankThatHasTheirRow) {
  Experience batch = full_batch(7, 12, 1, 37);
  batch.value = batch.returns = batch.advantage;
  expect_what_one_rank_trains({.model = scored(grid_models()[0], 1, true),
                               .loss = algorithms::ValueLoss{},
                               .batch = batch,
                               .options = {.micro_batch_tokens = 60}},
                              {.cp = 2});
}

TEST(Context, StagesAndReplicasTrainTheSame) {
  const Experience batch = full_batch(8, 12, 1, 37);
  for (const Grid grid : {Grid{.pp = 2, .cp = 2}, Grid{.dp = 2, .cp = 2}, Grid{.tp = 2, .cp = 2}})
    for (const int ulysses : {1, 2})
      expect_what_one_rank_trains({.model = grid_models()[0],
                                   .batch = batch,
                                   .options = {.micro_batch_tokens = 60},
                                   .ulysses = ulysses},
                                  grid);
}

TEST(Context, RecomputationAndADividedOptimizerChangeNoBit) {
  for (const int ulysses : {1, 2}) {
    TrainingRun run{.model = grid_models()[4],
                    .batch = full_batch(9, 10, 1, 37),
                    .options = {.micro_batch_tokens = 60},
                    .ulysses = ulysses};
    const Grid grid{.dp = 2, .cp = 2};
    const Trained plain = on_all(run, grid);
    const auto expect_same = [&] {
      const Trained other = on_all(run, grid);
      EXPECT_EQ(other.losses, plain.losses);
      EXPECT_EQ(other.weights, plain.weights);
      EXPECT_EQ(other.exp_avg, plain.exp_avg);
    };
    run.options.recomputed = {.kinds = {engine::nn::Recompute::attention,
                                        engine::nn::Recompute::activation,
                                        engine::nn::Recompute::norm}};
    expect_same();
    run.options.recomputed = {.kinds = {engine::nn::Recompute::full}};
    expect_same();
    run.options.shard_optimizer = true;
    expect_same();
  }
}

TEST(SequenceParallelism, HasTheLossesOfTensorParallelismAndOfOneRank) {
  for (const auto& model : grid_models()) {
    TrainingRun run{
        .model = model, .batch = full_batch(7, 8, 1, 37), .options = {.micro_batch_tokens = 60}};
    const Grid grid{.tp = model.max_tp};
    const Trained whole = on_all(run, grid);
    run.divides_rows = true;
    expect_what_one_rank_trains(run, grid);
    EXPECT_EQ(on_all(run, grid).losses[0], whole.losses[0]) << model.title;  // equal sums
  }
}

TEST(SequenceParallelism, CombinesWithTheOtherAxesAndRecomputation) {
  TrainingRun run{.model = grid_models()[4],
                  .batch = full_batch(8, 12, 1, 37),
                  .options = {.micro_batch_tokens = 60},
                  .divides_rows = true};
  for (const Grid grid : {Grid{.tp = 2, .pp = 2}, Grid{.tp = 2, .cp = 2}, Grid{.dp = 2, .tp = 2}})
    expect_what_one_rank_trains(run, grid);
  const Grid grid{.dp = 2, .tp = 2};
  const Trained plain = on_all(run, grid);
  for (const auto& recomputed : {engine::nn::Recomputed{.kinds = {engine::nn::Recompute::attention,
                                                                  engine::nn::Recompute::activation,
                                                                  engine::nn::Recompute::norm}},
                                 engine::nn::Recomputed{.kinds = {engine::nn::Recompute::full}}}) {
    run.options.recomputed = recomputed;
    EXPECT_EQ(on_all(run, grid).weights, plain.weights);
  }
  run.options.shard_optimizer = true;
  EXPECT_EQ(on_all(run, grid).weights, plain.weights);
  run.options.micro_batch_tokens = 1;  // sequences with fewer rows than ranks
  expect_what_one_rank_trains(run, {.tp = 4});
}

// The row and head of each value: 1000 * row + head.
Tensor numbered(engine::ops::Device& device, engine::parallel::Range rows, int heads, int size) {
  std::vector<float> values;
  for (auto row = rows.begin; row < rows.end; ++row)
    for (int head = 0; head < heads; ++head)
      values.insert(values.end(), static_cast<std::size_t>(size),
                    static_cast<float>(1000 * row + head));
  return engine::ops::from_host(device, {rows.size(), std::int64_t{heads} * size}, values);
}

TEST(HeadExchange, EveryRankGetsAllRowsOfItsHeadsAndTheBackwardPassSumsCopies) {
  constexpr int size = 3;
  for (const int ranks : {2, 3, 5, 7})
    for (const auto& [heads, kv_heads] : {std::pair{6, 3}, {4, 1}, {8, 2}, {12, 4}})
      on_ranks(ranks, [&, heads = heads,
                       kv_heads = kv_heads](engine::parallel::Communicator& group) {
        const auto device = engine::ops::make_cpu_device({.threads = 1});
        const engine::ops::Layout layout{{0, 4, 6}, {0, 1, 2, 3, 0, 1}};
        const auto groups = engine::nn::context_groups(group, *device, ranks);
        const ContextPart part = engine::nn::context_part(groups, layout, nullptr);
        const auto all = engine::nn::divide_heads(heads, kv_heads, ranks);
        const auto& own = all[static_cast<std::size_t>(group.rank())];
        const auto exchange = engine::nn::attention_exchange(part, {heads, kv_heads, size, 1.0f});
        const Tensor keys = numbered(*device, part.own(), kv_heads, size);
        const Tensor mine = exchange.keys.to_heads(*device, keys, "keys");
        const auto values = engine::ops::to_host(*device, mine);
        const auto count = own.kv_heads.size();
        ASSERT_EQ(values.size(), 6 * count * size);
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_EQ(values[i], 1000 * (i / size / count) + own.kv_heads[i / size % count]);
        // A head that k ranks have becomes k times its value.
        const auto back = engine::ops::to_host(*device, exchange.keys.to_rows(*device, mine, "dk"));
        const auto before = engine::ops::to_host(*device, keys);
        for (std::size_t i = 0; i < back.size(); ++i) {
          std::int64_t copies = 0;
          for (const auto& each : all)
            copies +=
                std::ranges::count(each.kv_heads, static_cast<std::int64_t>(i / size) % kv_heads);
          EXPECT_EQ(back[i], static_cast<float>(copies) * before[i]);
        }
        // Each query head has its own keys.
        for (auto head = own.heads.begin; head < own.heads.end; ++head) {
          const auto per_kv = own.heads.size() / std::ssize(own.kv_heads);
          EXPECT_EQ(own.kv_heads[static_cast<std::size_t>((head - own.heads.begin) / per_kv)],
                    head / (heads / kv_heads));
        }
      });
}

// Attention of one layer, and gradients for given gradients of its outputs.
struct Attended {
  std::vector<float> out, dq, dk, dv;
};
struct AttentionCase {
  std::string title;
  engine::ops::AttentionShape shape;
};

constexpr std::int64_t ring_tokens = 150;
const engine::ops::Layout& ragged() {
  static const engine::ops::Layout layout = [] {
    engine::ops::Layout made{{0}, {}};
    for (const int length : {1, 90, 2, 37, 20}) {
      for (int position = 0; position < length; ++position) made.positions.push_back(position);
      made.offsets.push_back(static_cast<std::int32_t>(made.positions.size()));
    }
    return made;
  }();
  return layout;
}

// Rows of a random matrix of the whole layout.
Tensor rows_of_random(engine::ops::Device& device, std::span<const std::int32_t> rows,
                      std::int64_t width, std::uint64_t seed) {
  const auto all = random_values(static_cast<std::size_t>(ring_tokens * width), seed, 1.0);
  std::vector<float> values;
  for (const auto row : rows)
    values.insert(values.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
  return engine::ops::from_host(device, {std::ssize(rows), width}, values);
}

// The reference device computes in f64.
Attended whole_attention(const engine::ops::AttentionShape& shape) {
  const auto device = engine::ops::make_reference_device();
  std::vector<std::int32_t> rows(ring_tokens);
  std::iota(rows.begin(), rows.end(), 0);
  const std::int64_t wide = shape.heads * shape.head_size,
                     narrow = shape.kv_heads * shape.head_size;
  const Tensor q = rows_of_random(*device, rows, wide, 1),
               k = rows_of_random(*device, rows, narrow, 2),
               v = rows_of_random(*device, rows, narrow, 3),
               dout = rows_of_random(*device, rows, wide, 4);
  Tensor out = device->empty(q.shape()), lse = device->empty({ring_tokens, shape.heads}),
         dq = device->empty(q.shape()), dk = device->empty(k.shape()),
         dv = device->empty(k.shape());
  const engine::ops::KeyValues kv{k, v};
  const auto layout = device->prepare(ragged());
  const engine::ops::AttentionInputs in{q, kv, layout, shape};
  device->attention(in, out, &lse);
  device->attention_backward(in, {out, lse, dout, dq, dk, dv});
  using engine::ops::to_host;
  return {to_host(*device, out), to_host(*device, dq), to_host(*device, dk), to_host(*device, dv)};
}

// Scatters rows of a rank to their places in the whole.
void put_rows(engine::ops::Device& device, const Tensor& x, std::span<const std::int32_t> rows,
              std::vector<float>& whole) {
  const auto values = engine::ops::to_host(device, x);
  const std::int64_t width = x.shape()[1];
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(values.begin() + static_cast<std::int64_t>(i) * width, width,
                whole.begin() + rows[i] * width);
}

void attend_on_rank(engine::parallel::Communicator& group, const engine::ops::AttentionShape& shape,
                    Attended& whole) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  const auto groups = engine::nn::context_groups(group, *device, 1);
  const ContextPart part = engine::nn::context_part(groups, ragged(), nullptr);
  const auto& rows = part.layout_rows;
  const std::int64_t wide = shape.heads * shape.head_size,
                     narrow = shape.kv_heads * shape.head_size;
  const Tensor q = rows_of_random(*device, rows, wide, 1),
               k = rows_of_random(*device, rows, narrow, 2),
               v = rows_of_random(*device, rows, narrow, 3),
               dout = rows_of_random(*device, rows, wide, 4);
  Tensor out = device->empty(q.shape()), lse = device->empty({std::ssize(rows), shape.heads}),
         dq = device->empty(q.shape()), dk = device->empty(k.shape()),
         dv = device->empty(k.shape());
  const auto layout = device->prepare(ragged());
  const engine::nn::ForwardContext pass{.device = *device, .layout = layout, .context = &part};
  engine::nn::ring_attention(pass, {q, k, v, shape}, out, &lse);
  engine::nn::ring_attention_backward(pass, {q, k, v, shape}, {out, lse, dout, dq, dk, dv});
  put_rows(*device, out, rows, whole.out);
  put_rows(*device, dq, rows, whole.dq);
  put_rows(*device, dk, rows, whole.dk);
  put_rows(*device, dv, rows, whole.dv);
}

TEST(RingAttention, IsThatOfTheWholeSequencesInF64) {
  std::vector<AttentionCase> cases{{"plain", {4, 4, 8, 0.4f}},
                                   {"grouped", {6, 2, 6, 0.4f}},
                                   {"window", {4, 2, 8, 0.4f, 0, 7}},
                                   {"capped", {4, 1, 8, 0.4f, 2.0f, 0}},
                                   {"ALiBi", {4, 4, 8, 0.4f, 0, 0, {0.5f, 0.25f, 0.1f, 0.02f}}},
                                   {"ALiBi with a window", {2, 1, 8, 0.4f, 0, 20, {0.5f, 0.25f}}}};
  for (const auto& each : cases) {
    const Attended one = whole_attention(each.shape);
    for (const int ranks : {2, 3, 4, 7}) {
      SCOPED_TRACE(cat(each.title, ", ", ranks, " ranks"));
      Attended found = one;
      for (auto* values : {&found.out, &found.dq, &found.dk, &found.dv})
        std::ranges::fill(*values, 99.0f);
      on_ranks(ranks, [&](engine::parallel::Communicator& group) {
        attend_on_rank(group, each.shape, found);
      });
      EXPECT_LT(distance(found.out, one.out), 1e-6);
      EXPECT_LT(distance(found.dq, one.dq), 2e-6);
      EXPECT_LT(distance(found.dk, one.dk), 2e-6);
      EXPECT_LT(distance(found.dv, one.dv), 2e-6);
    }
  }
}

TEST(RingAttention, ChunksCoverEachSequenceOnceAndBalanceItsVisibleKeys) {
  for (const std::int64_t length : {0, 1, 2, 3, 17, 64, 1000, 4097})
    for (const int ranks : {2, 3, 4, 7}) {
      std::int64_t next = 0;
      std::vector<double> seen(static_cast<std::size_t>(ranks));
      for (int chunk = 0; chunk < 2 * ranks; ++chunk) {
        const auto part = engine::nn::ring_chunk(length, chunk, ranks);
        EXPECT_EQ(part.begin, next);
        EXPECT_TRUE(part.size() == 0 || part.begin % 2 == 0);
        next = part.end;
        const int rank = std::min(chunk, 2 * ranks - 1 - chunk);
        for (auto p = part.begin; p < part.end; ++p)
          seen[static_cast<std::size_t>(rank)] += static_cast<double>(p + 1);
      }
      EXPECT_EQ(next, length);
      if (length >= 1000) {
        EXPECT_LT(*std::ranges::max_element(seen) / *std::ranges::min_element(seen), 1.05);
      }
    }
}

}  // namespace
}  // namespace troupe::test
