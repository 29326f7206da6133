// How fast is a step of supervised training: forward, backward, clipping, AdamW, as `troupe sft` does it?
#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/training.h"
#include "engine/train/trainer.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine;

Outcome measure(const Options& options) {
  const auto device = troupe::engine::ops::make_cpu_device({.threads = options.threads});
  train::Trainer trainer(make_model(*device, options.shape, true), {.precision = options.precision});
  const auto batch = random_batch(options.shape, options.batch, 1);
  const loss::AnyLoss loss(troupe::algorithms::SftLoss{});
  const double tokens = static_cast<double>(batch.token_count());
  const Work work{6e-9 * static_cast<double>(options.shape.weights()) * tokens,
                  3e-9 * options.shape.attention(static_cast<double>(options.shape.sequence)) * tokens};
  const Steps steps = time_steps(*device, options, work, [&] {
    trainer.forward_backward(batch, loss);
    troupe::value_or_throw(trainer.update(1e-4));
  });
  return {tokens / steps.pairs.time(), "tokens/s",
          steps.pairs.ceiling(),       steps.ratio,
          steps.peak_rss_mib,          [options] { return ask_peer(options, "train", "tok/s"); }};
}

}  // namespace

int main(int count, char** words) { return run("train_step", {}, count, words, measure); }
