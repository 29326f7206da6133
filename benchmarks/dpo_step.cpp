// How fast is a step of preference training: the reference's forward pass, then forward, backward and update as `troupe dpo` does it?
#include "algorithms/losses/dpo_loss.h"
#include "benchmarks/support/training.h"
#include "engine/train/trainer.h"

namespace {

using namespace troupe::benchmarks;
using namespace troupe::engine;

Outcome measure(const Options& options) {
  const auto device = troupe::engine::ops::make_cpu_device({.threads = options.threads});
  train::Trainer trainer(make_model(*device, options.shape, true), {.precision = options.precision});
  const auto reference = make_model(*device, options.shape, false);
  auto batch = random_batch(options.shape, options.batch, 1);
  const double pairs = static_cast<double>(options.batch) / 2, tokens = static_cast<double>(batch.token_count());
  batch.unit = 2, batch.count = pairs;
  const loss::AnyLoss loss(troupe::algorithms::DpoLoss{});
  // three forward passes' worth of training and one of the reference
  const Work work{8e-9 * static_cast<double>(options.shape.weights()) * tokens,
                  4e-9 * options.shape.attention(static_cast<double>(options.shape.sequence)) * tokens};
  const Steps steps = time_steps(*device, options, work, [&] {
    batch.reference_logp = train::logprobs(*reference, batch, {.precision = options.precision});
    trainer.forward_backward(batch, loss);
    troupe::value_or_throw(trainer.update(1e-6));
  });
  return {pairs / steps.pairs.time(), "pairs/s",
          steps.pairs.ceiling(),      steps.ratio,
          steps.peak_rss_mib,         [options] { return ask_peer(options, "dpo", "pairs/s"); }};
}

}  // namespace

int main(int count, char** words) { return run("dpo_step", {.multiple = 2}, count, words, measure); }
