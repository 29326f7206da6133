// Benchmark of the LM head: log-probabilities of a step's tokens, and their gradients.
#include "benchmarks/support/training.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  const ModelShape& shape = options.shape;
  const std::int64_t tokens = options.batch * shape.sequence;
  Tensor hidden = device->empty({tokens, shape.width}),
         weight = device->empty({shape.vocabulary, shape.width});
  Tensor dhidden = device->empty({tokens, shape.width}),
         dweight = device->empty({shape.vocabulary, shape.width});
  Tensor logp = device->empty({tokens}), lse = device->empty({tokens}),
         dlogp = device->empty({tokens});
  fill_random(*device, hidden, 1, 1);
  fill_random(*device, weight, 0.03f, 2);
  device->fill(dweight, 0);
  device->fill(dlogp, -1.0f / static_cast<float>(tokens));
  const auto targets = random_tokens(shape, tokens, 3);
  const Work work{6e-9 * static_cast<double>(shape.vocabulary * shape.width * tokens), 0};
  const Steps steps = time_steps(*device, options, work, [&] {
    device->head({hidden, weight, device->indices(targets), {}, options.precision}, {logp, lse});
    device->head_backward({hidden, weight, device->indices(targets), {}, options.precision}, {lse},
                          {dlogp}, {dhidden, dweight});
  });
  return outcome_of(steps, work.products, "GFLOP/s");
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("head", {}, count, words, troupe::benchmarks::measure);
}
