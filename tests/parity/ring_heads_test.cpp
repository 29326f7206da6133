// Groups of heads that go around a ring one after the other compute what all heads at once do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/nn/ring_attention.h"
#include "engine/nn/ring_heads.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {
namespace {

using engine::nn::ContextPart;
using engine::ops::AttentionShape;

// The keys of a head of half the rows exceed the bytes of a group.
constexpr int length = 2200, ranks = 2;
const AttentionShape six_heads{6, 3, 128, 0.1f, 0, 0, {0.5f, 0.25f, 0.1f, 0.05f, 0.02f, 0.01f}};

const engine::ops::Layout& layout() {
  static const engine::ops::Layout two = [] {
    engine::ops::Layout made{{0, 2100, length}, {}};
    for (int row = 0; row < length; ++row) made.positions.push_back(row < 2100 ? row : row - 2100);
    return made;
  }();
  return two;
}

// out, lse, dq, dk and dv of one rank's rows.
std::vector<float> attended(engine::parallel::Communicator& group, int kv_heads) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  auto groups = engine::nn::context_groups(group, *device, 1);
  groups.kv_heads = kv_heads;
  const ContextPart part = engine::nn::context_part(groups, layout(), nullptr);
  const std::int64_t rows = std::ssize(part.layout_rows);
  const auto random = [&](int heads, std::uint64_t seed) {
    const std::int64_t width = heads * std::int64_t{six_heads.head_size};
    return engine::ops::from_host(
        *device, {rows, width},
        random_values(static_cast<std::size_t>(rows * width), seed + 10 * group.rank(), 1.0));
  };
  const Tensor q = random(6, 1), k = random(3, 2), v = random(3, 3), dout = random(6, 4);
  Tensor out = device->empty(q.shape()), lse = device->empty({rows, 6}),
         dq = device->empty(q.shape()), dk = device->empty(k.shape()),
         dv = device->empty(k.shape());
  std::vector<std::uint64_t> ids(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const auto row_ids = device->row_ids(ids);
  const engine::ops::AttentionDropout dropout{0.3, 7, 1, row_ids, 4};
  const auto prepared = device->prepare(layout());
  const engine::nn::ForwardContext pass{.device = *device, .layout = prepared, .context = &part};
  const engine::nn::RingInputs in{q, k, v, six_heads, &dropout};
  engine::nn::ring_attention(pass, in, out, &lse);
  engine::nn::ring_attention_backward(pass, in, {out, lse, dout, dq, dk, dv});
  std::vector<float> all;
  for (const Tensor* x : {&out, &lse, &dq, &dk, &dv}) {
    const auto values = engine::ops::to_host(*device, *x);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(RingHeads, GroupsChangeNoBit) {
  on_ranks(ranks, [&](engine::parallel::Communicator& group) {
    const auto together = attended(group, 3);
    for (const int kv_heads : {1, 2}) EXPECT_EQ(attended(group, kv_heads), together) << kv_heads;
  });
}

TEST(RingHeads, GroupsAreEqualOnRanksOfDifferentDevices) {
  on_ranks(ranks, [&](engine::parallel::Communicator& group) {
    const auto device = engine::ops::make_cpu_device({.threads = group.rank() + 1});
    const auto groups = engine::nn::context_groups(group, *device, 1);
    EXPECT_EQ(groups.kv_heads, 2);
    const auto found =
        engine::nn::head_groups(engine::nn::context_part(groups, layout(), nullptr), six_heads);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[1].keys.first, 1);
    EXPECT_EQ(found[1].keys.count, 2);
    EXPECT_EQ(found[1].queries.first, 2);
    EXPECT_EQ(found[1].shape.alibi_slopes, (std::vector<float>{0.1f, 0.05f, 0.02f, 0.01f}));
  });
}

// Chunks of more than the 2048 keys that the CPU device goes through at a time.
TEST(RingHeads, LongChunksHaveTheGradientsOfTheWholeSequence) {
  constexpr int tokens = 9000, size = 16;
  const AttentionShape one_head{1, 1, size, 0.25f};
  engine::ops::Layout whole{{0, tokens}, {}};
  for (int row = 0; row < tokens; ++row) whole.positions.push_back(row);
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  std::vector<std::vector<float>> given, expected;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    given.push_back(random_values(std::size_t{tokens} * size, seed, 1.0));
  const auto rows_of = [&](engine::ops::Device& on, const std::vector<float>& all,
                           std::span<const std::int32_t> rows) {
    std::vector<float> values;
    for (const auto row : rows)
      values.insert(values.end(), all.begin() + row * size, all.begin() + (row + 1) * size);
    return engine::ops::from_host(on, {std::ssize(rows), size}, values);
  };
  const auto run = [&](engine::ops::Device& on, std::span<const std::int32_t> rows,
                       const auto& forward, const auto& backward) {
    std::vector<Tensor> in;
    for (const auto& values : given) in.push_back(rows_of(on, values, rows));
    Tensor out = on.empty(in[0].shape()), lse = on.empty({std::ssize(rows), 1});
    Tensor dq = on.empty(out.shape()), dk = on.empty(out.shape()), dv = on.empty(out.shape());
    forward(in, out, lse);
    backward(in, engine::ops::AttentionBackward{out, lse, in[3], dq, dk, dv});
    return std::vector<std::vector<float>>{
        engine::ops::to_host(on, dq), engine::ops::to_host(on, dk), engine::ops::to_host(on, dv)};
  };
  std::vector<std::int32_t> all(tokens);
  std::iota(all.begin(), all.end(), 0);
  const auto prepared = device->prepare(whole);
  expected = run(
      *device, all,
      [&](const auto& in, Tensor& out, Tensor& lse) {
        device->attention({in[0], {in[1], in[2]}, prepared, one_head}, out, &lse);
      },
      [&](const auto& in, const engine::ops::AttentionBackward& with) {
        device->attention_backward({in[0], {in[1], in[2]}, prepared, one_head}, with);
      });
  on_ranks(ranks, [&](engine::parallel::Communicator& group) {
    const auto own = engine::ops::make_cpu_device({.threads = 1});
    const auto groups = engine::nn::context_groups(group, *own, 1);
    const ContextPart part = engine::nn::context_part(groups, whole, nullptr);
    const auto layout = own->prepare(whole);
    const engine::nn::ForwardContext pass{.device = *own, .layout = layout, .context = &part};
    const auto found = run(
        *own, part.layout_rows,
        [&](const auto& in, Tensor& out, Tensor& lse) {
          engine::nn::ring_attention(pass, {in[0], in[1], in[2], one_head}, out, &lse);
        },
        [&](const auto& in, const engine::ops::AttentionBackward& with) {
          engine::nn::ring_attention_backward(pass, {in[0], in[1], in[2], one_head}, with);
        });
    for (std::size_t i = 0; i < found.size(); ++i) {
      double difference = 0, largest = 0;
      for (std::size_t at = 0; at < found[i].size(); ++at) {
        const auto row = static_cast<std::size_t>(part.layout_rows[at / size]);
        const double of_whole = expected[i][row * size + at % size];
        difference = std::max(difference, std::abs(found[i][at] - of_whole));
        largest = std::max(largest, std::abs(of_whole));
      }
      EXPECT_LT(difference, 5e-6 * largest) << i;
    }
  });
}

TEST(RingHeads, FewKeysTravelTogether) {
  on_ranks(ranks, [&](engine::parallel::Communicator& group) {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    const auto groups = engine::nn::context_groups(group, *device, 1);
    const engine::ops::Layout few{{0, 4}, {0, 1, 2, 3}};
    EXPECT_EQ(
        engine::nn::head_groups(engine::nn::context_part(groups, few, nullptr), six_heads).size(),
        1u);
  });
}

}  // namespace
}  // namespace troupe::test
