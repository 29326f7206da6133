// How fast is a step of supervised training: forward, backward, clipping, AdamW, as `troupe sft`
// does it?
#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/training.h"
#include "engine/train/trainer.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine;

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  train::Trainer trainer(make_model(*device, options.shape, true),
                         {.precision = options.precision});
  const auto batch = random_batch(options.shape, options.batch, 1);
  const loss::AnyLoss loss(troupe::algorithms::SftLoss{});
  const double tokens = static_cast<double>(batch.token_count());
  const auto step = [&] {
    trainer.forward_backward(batch, loss);
    troupe::value_or_throw(trainer.update(1e-4));
  };
  const Rival rival{"train", "tok/s",
                    static_cast<double>(options.shape.batch * options.shape.sequence)};
  return outcome_of(time_steps(*device, options, work_of(options.shape, tokens, 3), step, rival),
                    tokens, "tokens/s");
}

}  // namespace

int main(int count, char** words) {
  return run("train_step", {}, count, words, measure);
}
