// Benchmark of a step of supervised training: forward, backward, clipping, AdamW, as in `troupe
// train --algorithm sft`. --kept: each token has a sampling mask of that many tokens.
#include <set>

#include "algorithms/losses/sft_loss.h"
#include "benchmarks/support/training.h"
#include "engine/base/random/random.h"
#include "engine/base/sets/id_sets.h"

namespace troupe::benchmarks {
namespace {

// Sets of `count` random tokens of the vocabulary, one of which is the token itself.
void add_masks(engine::data::Experience& batch, std::int64_t count, std::int64_t vocabulary) {
  for (std::size_t t = 0; t < batch.tokens.size(); ++t) {
    std::set<std::int32_t> ids = {batch.tokens[t]};
    for (std::uint64_t draw = 0; std::ssize(ids) < count; ++draw)
      ids.insert(static_cast<std::int32_t>(
          uniform_below(static_cast<std::uint64_t>(vocabulary), 2, t, draw)));
    batch.sampling_mask.push_back(encode_id_set(std::vector(ids.begin(), ids.end()), vocabulary));
  }
}

Outcome measure(const Options& options) {
  const auto device = make_device(options);
  engine::train::Trainer trainer = make_trainer(*device, options);
  auto batch = random_batch(options.shape, options.batch, 1);
  if (options.kept > 0) add_masks(batch, options.kept, options.shape.vocabulary);
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
  return troupe::benchmarks::run("train_step", {.masks = true}, count, words,
                                 troupe::benchmarks::measure);
}
