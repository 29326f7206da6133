// Benchmark of a step of supervised training: forward, backward, clipping, AdamW, as in `troupe
// train --algorithm sft`.
#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/training.h"

namespace troupe::benchmarks {
namespace {

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  engine::train::Trainer trainer = make_trainer(*device, options);
  const auto batch = random_batch(options.shape, options.batch, 1);
  const engine::loss::AnyLoss loss(algorithms::SftLoss{});
  const double tokens = static_cast<double>(batch.token_count());
  const auto step = [&] {
    trainer.forward_backward(batch, loss);
    value_or_throw(trainer.update(1e-4));
  };
  const Rival rival{"train", "tok/s",
                    static_cast<double>(options.shape.batch * options.shape.sequence)};
  return outcome_of(time_steps(*device, options, work_of(options.shape, tokens, 3), step, rival),
                    tokens, "tokens/s");
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int count, char** words) {
  return troupe::benchmarks::run("train_step", {}, count, words, troupe::benchmarks::measure);
}
