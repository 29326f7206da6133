// New weights between two tokens: what unfinished requests keep, and which version each token has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate::weight_change_test {
namespace {

using testing::Each;
using testing::ElementsAre;

class WeightChangeTest : public testing::Test {
 protected:
  Generator make(std::int32_t at_once = 8) {
    return value_or_throw(
        Generator::create(*model_, {.page_size = 4, .pages = 40, .max_sequences = at_once}));
  }
  static Request request(std::uint64_t id, std::int32_t tokens = 8) {
    Request r;
    r.id = r.sample_id = id;
    r.prompt = {3, 1, 4, 1, 5};
    r.params.max_new_tokens = tokens;
    return r;
  }
  void load(const models::Decoder& weights) {
    device_->copy(weights.parameters().values(), model_->parameters().values());
  }
  static std::vector<Generation> finish(Generator& generator) {
    std::vector<Generation> all;
    while (!generator.idle())
      for (auto& each : generator.step()) all.push_back(std::move(each));
    std::ranges::sort(all, {}, &Generation::id);
    return all;
  }
  /// Log-probabilities of a request's output, of a forward pass over the whole sequence.
  std::vector<float> plain(const Generation& g) const {
    std::vector<std::int32_t> all = request(g.id).prompt;
    all.insert(all.end(), g.ids.begin(), g.ids.end());
    const auto logp = test::trainer_logp(*model_, all, 1);
    return {logp.begin() + 5, logp.end()};
  }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
  std::unique_ptr<models::Decoder> first_ = test::tiny_model(*device_),
                                   second_ = test::tiny_model(*device_, 2),
                                   third_ = test::tiny_model(*device_, 3);
};

TEST_F(WeightChangeTest, WithARecomputedCacheEveryTokenHasTheBitsOfItsVersion) {
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1, 12)));
  ASSERT_TRUE(generator.submit(request(2, 12)));
  for (int i = 0; i < 4; ++i) generator.step();
  load(*second_);
  generator.weights_changed(1);
  for (int i = 0; i < 5; ++i) generator.step();
  load(*third_);
  generator.weights_changed(5);
  const auto done = finish(generator);
  ASSERT_EQ(done.size(), 2U);
  for (const Generation& g : done) {
    EXPECT_EQ(g.interruptions, 2U);
    EXPECT_EQ(g.restarts, 0U);
    for (const auto& [version, weights] :
         {std::pair{0, first_.get()}, std::pair{1, second_.get()}, std::pair{5, third_.get()}}) {
      load(*weights);
      const auto logp = plain(g);
      for (std::size_t i = 0; i < g.ids.size(); ++i) {
        if (std::cmp_not_equal(g.versions[i], version)) continue;
        EXPECT_EQ(g.logp[i], logp[i]) << i;
      }
    }
  }
  EXPECT_THAT(done[0].versions, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 1, 5, 5, 5));
}

TEST_F(WeightChangeTest, AKeptCacheIsNotComputedAgain) {
  const auto whole = value_or_throw(test::generate_all(make(), {request(1)}));
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1)));
  for (int i = 0; i < 3; ++i) generator.step();
  generator.weights_changed(4, {.cache = CacheUse::keep});
  const auto same = finish(generator);
  EXPECT_EQ(same[0].ids, whole[0].ids) << "the same weights under another number";
  EXPECT_EQ(same[0].logp, whole[0].logp);
  EXPECT_THAT(same[0].versions, ElementsAre(0, 0, 0, 4, 4, 4, 4, 4));
  EXPECT_EQ(generator.stats().rows, 5 + 7) << "the prompt and each token but the last, once";
}

TEST_F(WeightChangeTest, OtherKeptTokensHaveOldKeysAndNewWeights) {
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1)));
  for (int i = 0; i < 3; ++i) generator.step();
  load(*second_);
  generator.weights_changed(1, {.cache = CacheUse::keep});
  const auto done = finish(generator);
  const auto now = plain(done[0]);
  load(*first_);
  const auto before = plain(done[0]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(done[0].logp[i], before[i]);
  for (std::size_t i = 3; i < 8; ++i) {
    EXPECT_NE(done[0].logp[i], before[i]);
    EXPECT_NE(done[0].logp[i], now[i]);
  }
}

TEST_F(WeightChangeTest, AKeptCacheIsNotSharedWithSamplesOfTheNewWeights) {
  Generator generator = make(2);
  ASSERT_TRUE(generator.submit(request(1, 3)));
  ASSERT_TRUE(generator.submit(request(2, 20)));
  ASSERT_TRUE(generator.submit(request(3, 6)));
  ASSERT_TRUE(generator.submit(request(4, 6)));
  for (int i = 0; i < 2; ++i) generator.step();
  load(*second_);
  generator.weights_changed(1, {.cache = CacheUse::keep});
  const auto done = finish(generator);
  ASSERT_EQ(done.size(), 4U);
  for (const std::size_t late : {2, 3}) {
    EXPECT_THAT(done[late].versions, Each(1U));
    EXPECT_EQ(done[late].interruptions, 0U);
    EXPECT_EQ(done[late].logp, plain(done[late])) << "sample 2 was running with old keys";
  }
}

TEST_F(WeightChangeTest, ARestartedSampleIsThatOfTheNewWeightsAndRestartsOnce) {
  load(*second_);
  const auto fresh = value_or_throw(test::generate_all(make(), {request(1, 10), request(2, 10)}));
  load(*first_);
  Generator generator = make();
  ASSERT_TRUE(generator.submit(request(1, 10)));
  ASSERT_TRUE(generator.submit(request(2, 10)));
  for (int i = 0; i < 3; ++i) generator.step();
  load(*second_);
  generator.weights_changed(1, {.partial = PartialSamples::restart});
  for (int i = 0; i < 4; ++i) generator.step();
  generator.weights_changed(2, {.partial = PartialSamples::restart});
  const auto done = finish(generator);
  ASSERT_EQ(done.size(), 2U);
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(done[i].ids, fresh[i].ids);
    EXPECT_EQ(done[i].logp, fresh[i].logp);
    EXPECT_EQ(done[i].interruptions, 2U);
    EXPECT_EQ(done[i].restarts, 1U);
  }
  EXPECT_THAT(done[0].versions, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(done[1].versions, ElementsAre(1, 1, 1, 2, 2, 2, 2, 2, 2, 2))
      << "it waited for the prompt that it shares";
}

TEST_F(WeightChangeTest, ARequestWithoutATokenIsNotInterrupted) {
  Generator generator = make(1);
  ASSERT_TRUE(generator.submit(request(1)));
  ASSERT_TRUE(generator.submit(request(2)));
  generator.step();
  generator.weights_changed(1, {.partial = PartialSamples::restart});
  const auto done = finish(generator);
  EXPECT_EQ(done[0].restarts, 1U);
  EXPECT_EQ(done[1].interruptions, 0U);
}

TEST_F(WeightChangeTest, DiscardedRequestsReturnNothing) {
  Generator generator = make();
  ASSERT_TRUE(test::submit_all(generator, {request(1), request(2), request(7)}));
  generator.step();
  ASSERT_TRUE(generator.cancel(7));
  generator.discard_all();
  EXPECT_TRUE(generator.idle());
  EXPECT_TRUE(generator.step().empty());
  EXPECT_EQ(generator.free_pages(), generator.pages());
}

}  // namespace
}  // namespace troupe::engine::generate::weight_change_test
