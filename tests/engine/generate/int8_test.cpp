// Generation from int8 weights: the bits of a full pass with the same weights, close to the
// log-probabilities of the full weights.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/generate/beam_search.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

using models::WeightFormat;

std::vector<Request> greedy_requests(int count) {
  std::vector<Request> out;
  for (int i = 0; i < count; ++i) {
    Request r{.id = static_cast<std::uint64_t>(i),
              .prompt = {3, 1, 4, i % 37, 9},
              .sample_id = static_cast<std::uint64_t>(i)};
    r.params.max_new_tokens = 20;
    r.params.seed = 7;
    out.push_back(r);
  }
  return out;
}

/// logp[t] of tokens[t] from one pass without a cache, of weights that were packed.
std::vector<float> packed_logp(models::Decoder& model, const std::vector<std::int32_t>& tokens,
                               ops::Precision precision) {
  ops::Device& device = model.device();
  const Tensor logits =
      model.head().logits(test::full_forward(model, tokens, precision, true), precision, true);
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  const auto count = static_cast<std::int64_t>(tokens.size());
  Tensor logp = device.empty({count}), lse = device.empty({count});
  device.token_logprob(logits, device.indices(targets), 1, logp, lse);
  std::vector<float> out = ops::to_host(device, logp);
  out.insert(out.begin(), 0.0F);
  out.pop_back();
  return out;
}

class Int8Generation : public testing::TestWithParam<ops::Precision> {
 protected:
  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device({.threads = 2});
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
  Generator generator(WeightFormat weights) {
    return value_or_throw(Generator::create(
        *model_, {.max_sequences = 40, .precision = GetParam(), .weights = weights}));
  }
};
INSTANTIATE_TEST_SUITE_P(Precisions, Int8Generation,
                         testing::Values(ops::Precision::f32, ops::Precision::bf16),
                         [](const auto& each) {
                           return each.param == ops::Precision::f32 ? "f32" : "bf16";
                         });

TEST_P(Int8Generation, HasTheBitsOfAFullPassWhateverTheBatch) {
  for (const int count : {1, 3, 40}) {
    Generator from = generator(WeightFormat::int8);
    const auto asked = greedy_requests(count);
    const auto drawn = value_or_throw(test::generate_all(from, asked));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      std::vector<std::int32_t> all = asked[i].prompt;
      all.insert(all.end(), drawn[i].ids.begin(), drawn[i].ids.end());
      const auto expected = packed_logp(*model_, all, GetParam());
      EXPECT_EQ(drawn[i].logp, std::vector<float>(expected.begin() + 5, expected.end()))
          << i << " of " << count;
    }
  }
}

TEST_P(Int8Generation, IsNearTheWeightsAsTheyAreAndNotTheSame) {
  const auto asked = greedy_requests(20);
  Generator from = generator(WeightFormat::int8);
  double difference = 0, tokens = 0;
  for (const auto& g : value_or_throw(test::generate_all(from, asked))) {
    std::vector<std::int32_t> all = asked[static_cast<std::size_t>(g.id)].prompt;
    all.insert(all.end(), g.ids.begin(), g.ids.end());
    const auto exact = test::trainer_logp(*model_, all, 1, GetParam());
    for (std::size_t i = 0; i < g.ids.size(); ++i) {
      difference += std::abs(exact[5 + i] - g.logp[i]);
      tokens += 1;
    }
  }
  EXPECT_LT(difference / tokens, 0.05);
  EXPECT_GT(difference / tokens, 1e-5);
}

TEST_P(Int8Generation, FollowsTheWeightsAndLeavesThemWhenItEnds) {
  const auto asked = greedy_requests(1);
  const auto before = test::trainer_logp(*model_, {1, 2, 3, 4}, 1, GetParam());
  {
    Generator from = generator(WeightFormat::int8);
    const auto first = value_or_throw(test::generate_all(from, asked));
    auto other = test::tiny_model(*device_, 2);
    Tensor own = model_->parameters().values();
    const auto kept = ops::to_host(*device_, own);
    device_->copy(other->parameters().values(), own);
    from.weights_changed(1);
    Generator theirs = value_or_throw(
        Generator::create(*other, {.precision = GetParam(), .weights = WeightFormat::int8}));
    EXPECT_EQ(value_or_throw(test::generate_all(from, asked))[0].logp,
              value_or_throw(test::generate_all(theirs, asked))[0].logp);
    device_->upload(own, kept);
    from.weights_changed(2);
    EXPECT_EQ(value_or_throw(test::generate_all(from, asked))[0].logp, first[0].logp);
  }
  EXPECT_EQ(test::trainer_logp(*model_, {1, 2, 3, 4}, 1, GetParam()), before);
}

TEST_P(Int8Generation, OfBeamsReadsTheSameWeights) {
  Request request = greedy_requests(1)[0];
  request.params.greedy = true;
  request.params.beams.count = 3;
  const auto best = value_or_throw(
      beam_search(*model_, request, {.precision = GetParam(), .weights = WeightFormat::int8}));
  std::vector<std::int32_t> all = request.prompt;
  all.insert(all.end(), best[0].ids.begin(), best[0].ids.end());
  models::PackedWeights again(*model_, GetParam(), WeightFormat::int8);
  again.refresh();
  const auto expected = packed_logp(*model_, all, GetParam());
  EXPECT_EQ(best[0].logp, std::vector<float>(expected.begin() + 5, expected.end()));
}

}  // namespace
}  // namespace troupe::engine::generate
