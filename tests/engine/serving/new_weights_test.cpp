// Pauses and new weights of a generation thread.
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/serving/generation_thread.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::serving {
namespace {

using generate::Generation;
using Outcome = Result<Generation>;

generate::Request request(std::int32_t tokens) {
  generate::Request out;
  out.prompt = {3, 1, 4, 1, 5};
  out.params.max_new_tokens = tokens;
  out.params.seed = 7;
  return out;
}

class NewWeights : public testing::Test {
 protected:
  /// `on_token` is called for each token.
  std::future<Outcome> submit(std::int32_t tokens, std::function<void()> on_token = {}) {
    const auto promise = std::make_shared<std::promise<Outcome>>();
    std::vector<Job> jobs(1);
    jobs[0].request = std::make_shared<const generate::Request>(request(tokens));
    if (on_token) jobs[0].on_token = [on_token](const generate::TokenEvent&) { on_token(); };
    jobs[0].on_end = [promise](Outcome outcome) { promise->set_value(std::move(outcome)); };
    value_or_throw(service_->submit(std::move(jobs), "client"));
    return promise->get_future();
  }
  Result<std::uint64_t> take_weights_of(const models::Decoder& other) {
    return service_->change_weights([&]() -> Result<> {
      device_->upload(model_->parameters().values(),
                      ops::to_host(*device_, other.parameters().values()));
      return {};
    });
  }
  void adopt_weights_of(const models::Decoder& other, std::uint64_t version,
                        bool between_sequences) {
    service_->adopt_weights(
        version,
        [this, &other]() -> Result<> {
          device_->upload(model_->parameters().values(),
                          ops::to_host(*device_, other.parameters().values()));
          return {};
        },
        between_sequences);
  }
  Generation alone(models::Decoder& model, std::int32_t tokens) {
    auto generator = value_or_throw(generate::Generator::create(model, {}));
    return value_or_throw(test::generate_all(generator, {request(tokens)})).at(0);
  }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
  std::unique_ptr<models::Decoder> other_ = test::tiny_model(*device_, 2);
  Engine engine_{*model_, {}};
  std::unique_ptr<GenerationThread> service_;
  void SetUp() override {
    value_or_throw(engine_.start());
    service_ = std::make_unique<GenerationThread>(engine_, ServiceLimits());
  }
};

TEST_F(NewWeights, TokensAreThoseOfTheNewWeights) {
  const Generation first = alone(*test::tiny_model(*device_), 12), second = alone(*other_, 12);
  ASSERT_NE(first.ids, second.ids);
  EXPECT_EQ(value_or_throw(submit(12).get()).ids, first.ids);
  EXPECT_EQ(value_or_throw(take_weights_of(*other_)), 1u);
  const Generation found = value_or_throw(submit(12).get());
  EXPECT_EQ(found.ids, second.ids);
  EXPECT_EQ(found.logp, second.logp);
  EXPECT_EQ(found.versions, std::vector<std::uint64_t>(12, 1));
  EXPECT_EQ(service_->counters().version, 1u);
}

TEST_F(NewWeights, AnUnfinishedSequenceContinuesWithThem) {
  const Generation first = alone(*test::tiny_model(*device_), 30);
  std::promise<void> begun;
  int tokens = 0;
  auto outcome = submit(30, [&] {
    if (++tokens != 5) return;
    service_->pause();
    begun.set_value();
  });
  begun.get_future().wait();
  EXPECT_TRUE(service_->paused());
  EXPECT_EQ(value_or_throw(take_weights_of(*other_)), 1u);
  EXPECT_EQ(service_->counters().running, 1);
  service_->resume();
  const Generation found = value_or_throw(outcome.get());
  ASSERT_EQ(found.ids.size(), 30u);
  for (std::size_t t = 0; t < 5; ++t) EXPECT_EQ(found.ids[t], first.ids[t]);
  std::vector<std::uint64_t> versions(30, 1);
  std::fill_n(versions.begin(), 5, 0);
  EXPECT_EQ(found.versions, versions);
  EXPECT_EQ(found.finish, generate::FinishReason::length);
}

TEST_F(NewWeights, BetweenSequencesEachHasOneVersion) {
  const Generation first = alone(*test::tiny_model(*device_), 30), last = alone(*other_, 12);
  const auto third = test::tiny_model(*device_, 3);
  std::promise<std::future<Outcome>> later;
  int tokens = 0;
  auto outcome = submit(30, [&] {
    if (++tokens != 5) return;
    adopt_weights_of(*third, 6, true);  // newer ones replace them before the sequence ends
    adopt_weights_of(*other_, 7, true);
    later.set_value(submit(12));
  });
  auto next = later.get_future().get();
  const Generation running = value_or_throw(outcome.get()), found = value_or_throw(next.get());
  EXPECT_EQ(running.ids, first.ids);
  EXPECT_EQ(running.versions, std::vector<std::uint64_t>(30, 0));
  EXPECT_EQ(found.ids, last.ids);
  EXPECT_EQ(found.logp, last.logp);
  EXPECT_EQ(found.versions, std::vector<std::uint64_t>(12, 7));
}

TEST_F(NewWeights, BetweenTokensASequenceContinuesWithTheVersionGiven) {
  int tokens = 0;
  auto outcome = submit(30, [&] {
    if (++tokens == 5) adopt_weights_of(*other_, 7, false);
  });
  std::vector<std::uint64_t> versions(30, 7);
  std::fill_n(versions.begin(), 5, 0);
  EXPECT_EQ(value_or_throw(outcome.get()).versions, versions);
}

TEST_F(NewWeights, NothingStartsDuringAPause) {
  service_->pause();
  auto outcome = submit(4);
  EXPECT_EQ(outcome.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(service_->counters().waiting, 1);
  service_->resume();
  EXPECT_EQ(value_or_throw(outcome.get()).ids, alone(*test::tiny_model(*device_), 4).ids);
}

TEST_F(NewWeights, AFailedChangeKeepsTheVersion) {
  const auto failed =
      service_->change_weights([]() -> Result<> { return fail(Errc::corrupt, "torn"); });
  EXPECT_EQ(failed.error().what, "torn");
  EXPECT_EQ(value_or_throw(submit(4).get()).versions, std::vector<std::uint64_t>(4, 0));
  service_->pause();
  auto waiting = submit(4);
  service_->stop();
  EXPECT_EQ(waiting.get().error().code, Errc::closed);
  EXPECT_EQ(take_weights_of(*other_).error().code, Errc::closed);
}

}  // namespace
}  // namespace troupe::engine::serving
