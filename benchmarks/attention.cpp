// Benchmark of attention, forward and backward, over the packed sequences of a step, once per layer
// of the shape. --head-size N: heads of another size in the same width.
#include <cmath>

#include "benchmarks/support/training.h"
#include "engine/train/scoring.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  const ModelShape& shape = options.shape;
  const auto layout =
      device->prepare(engine::train::layout_of(random_batch(shape, options.batch, 1)));
  const std::int64_t tokens = layout.rows(), narrow = shape.kv_heads * shape.head_size();
  const engine::ops::AttentionShape how{
      .heads = static_cast<int>(shape.heads),
      .kv_heads = static_cast<int>(shape.kv_heads),
      .head_size = static_cast<int>(shape.head_size()),
      .scale = 1 / std::sqrt(static_cast<float>(shape.head_size()))};
  const auto random = [&](std::int64_t columns, std::uint64_t seed) {
    Tensor out = device->empty({tokens, columns});
    fill_random(*device, out, 1, seed);
    return out;
  };
  const Tensor q = random(shape.width, 1), dout = random(shape.width, 2);
  const engine::ops::KeyValues kv{random(narrow, 3), random(narrow, 4)};
  Tensor out = device->empty({tokens, shape.width}), lse = device->empty({tokens, shape.heads});
  Tensor dq = device->empty({tokens, shape.width}), dk = device->empty({tokens, narrow}),
         dv = device->empty({tokens, narrow});
  const Work work{
      0, 3e-9 * shape.attention(static_cast<double>(shape.sequence)) * static_cast<double>(tokens)};
  const Steps steps = time_steps(*device, options, work, [&] {
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      device->attention({q, kv, layout, how, options.precision}, out, &lse);
      device->attention_backward({q, kv, layout, how, options.precision},
                                 {out, lse, dout, dq, dk, dv});
    }
  });
  return outcome_of(steps, work.attention, "GFLOP/s");
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("attention", {.head_size = true}, count, words,
                                 troupe::benchmarks::measure);
}
