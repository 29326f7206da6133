// Tiny decoders of random shape and weights, and batches of random sequences for them.
#pragma once

#include <memory>
#include <vector>

#include "engine/base/random/random.h"
#include "engine/data/experience.h"
#include "engine/models/decoder.h"
#include "tests/support/gradcheck.h"
#include "tests/support/llama_spec.h"

namespace troupe::test {

using engine::data::Experience;

inline engine::models::DecoderSpec random_spec(std::uint64_t seed) {
  const auto pick = [&](std::uint64_t what, std::initializer_list<int> among) {
    return among.begin()[uniform_below(among.size(), seed, 40, what)];
  };
  const int kv_heads = pick(4, {1, 2});
  engine::models::DecoderSpec spec = llama_spec({.vocabulary = pick(0, {19, 37, 64}),
                                                 .width = pick(1, {16, 24, 40}),
                                                 .layers = pick(2, {1, 2, 3}),
                                                 .inner = pick(3, {24, 40}),
                                                 .heads = kv_heads * pick(5, {1, 2, 3}),
                                                 .kv_heads = kv_heads,
                                                 .head_size = pick(6, {4, 8})});
  spec.tied = pick(7, {0, 1}) == 1;
  spec.attention_bias = pick(8, {0, 1}) == 1;
  return spec;
}

inline std::unique_ptr<engine::models::Decoder> random_decoder(engine::ops::Device& device,
                                                               std::uint64_t seed,
                                                               bool with_gradients) {
  auto model = std::make_unique<engine::models::Decoder>(device, random_spec(seed), with_gradients);
  randomize(model->parameters(), seed + 500, 0.5);
  return model;
}

/// Sequences of 1 to `longest` tokens; about half of them are trained on.
inline engine::data::Experience random_batch(std::uint64_t seed, int sequences, int longest,
                                             std::int64_t vocabulary) {
  engine::data::Experience batch;
  for (int n = 0; n < sequences; ++n) {
    const auto stream = static_cast<std::uint64_t>(n) + 1;
    const auto length = 1 + uniform_below(static_cast<std::uint64_t>(longest), seed, stream, 0);
    std::vector<std::int32_t> ids;
    std::vector<float> mask;
    for (std::uint64_t t = 1; t <= length; ++t) {
      ids.push_back(static_cast<std::int32_t>(
          uniform_below(static_cast<std::uint64_t>(vocabulary), seed, stream, 2 * t)));
      mask.push_back(t > 1 && uniform(seed, stream, 2 * t + 1) < 0.5 ? 1.0f : 0.0f);
    }
    batch.append(ids, mask);
  }
  for (const float weight : batch.mask) batch.count += static_cast<double>(weight);
  return batch;
}

/// The same in groups of `unit` sequences, with every column that a loss may need.
inline engine::data::Experience full_batch(std::uint64_t seed, int sequences, int unit,
                                           std::int64_t vocabulary) {
  engine::data::Experience b = random_batch(seed, sequences, 25, vocabulary);
  b.sequences_per_group = unit;
  if (unit == 2) b.count = sequences / 2;
  for (std::size_t t = 0; t < b.tokens.size(); ++t) {
    const auto draw = [&](std::uint64_t what, double low) {
      return static_cast<float>(low * (2 * uniform(seed, 70 + what, t) - 1));
    };
    b.old_logp.push_back(draw(0, 0.5) - 3);
    b.reference_logp.push_back(draw(1, 0.5) - 3);
    b.advantage.push_back(draw(2, 1));
  }
  return b;
}

}  // namespace troupe::test
