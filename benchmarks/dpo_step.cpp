// Benchmark of a DPO step: the reference's forward pass, then forward, backward and update as in
// `troupe train --algorithm dpo`.
#include "algorithms/losses/dpo_loss.h"
#include "benchmarks/support/training.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  engine::train::Trainer trainer = make_trainer(*device, options);
  const auto reference = make_model(*device, options.shape, false);
  auto batch = random_batch(options.shape, options.batch, 1);
  const double pairs = static_cast<double>(options.batch) / 2,
               tokens = static_cast<double>(batch.token_count());
  batch.sequences_per_group = 2;
  batch.count = pairs;
  const engine::loss::AnyLoss loss(algorithms::DpoLoss{});
  const auto step = [&] {
    batch.reference_logp =
        engine::train::logprobs(*reference, batch, {.precision = options.precision});
    trainer.forward_backward(batch, loss);
    value_or_throw(trainer.update(1e-6));
  };
  const Rival rival{"dpo", "pairs/s", static_cast<double>(options.shape.batch) / 2};
  // Three forward passes' worth of training and one of the reference.
  return outcome_of(time_steps(*device, options, work_of(options.shape, tokens, 4), step, rival),
                    pairs, "pairs/s");
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("dpo_step", {.multiple = 2}, count, words,
                                 troupe::benchmarks::measure);
}
