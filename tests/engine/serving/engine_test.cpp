// An engine that the caller steps.
#include "engine/serving/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"

namespace troupe::engine::serving {
namespace {

using generate::FinishReason;
using generate::Generation;
using generate::Request;
using testing::HasSubstr;

Request asked(std::uint64_t seed, std::int32_t tokens = 12) {
  Request out;
  out.prompt = {3, 1, 4, static_cast<std::int32_t>(seed % 7), 5};
  out.params.max_new_tokens = tokens;
  out.params.seed = seed;
  return out;
}

class EngineTest : public testing::Test {
 protected:
  void submit(std::uint64_t id, Request wanted) {
    Job job;
    job.sample_id = wanted.sample_id;
    job.request = std::make_shared<const Request>(std::move(wanted));
    job.on_end = [this, id](Result<Generation> ended) { ended_.emplace(id, std::move(ended)); };
    engine_->submit(id, std::move(job));
  }
  void run() {
    while (!engine_->idle()) engine_->step();
  }
  NewWeights weights_of(const models::Decoder& other) {
    return {.write = [this, &other]() -> Result<> {
      device_->upload(model_->parameters().values(),
                      ops::to_host(*device_, other.parameters().values()));
      return {};
    }};
  }
  std::unique_ptr<Engine> started() {
    auto engine =
        std::make_unique<Engine>(*model_, generate::GeneratorConfig{.page_size = 4, .pages = 60});
    value_or_throw(engine->start());
    return engine;
  }
  const Generation& of(std::uint64_t id) { return ended_.at(id).value(); }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
  std::unique_ptr<models::Decoder> other_ = test::tiny_model(*device_, 2);
  std::unique_ptr<Engine> engine_ = started();
  std::map<std::uint64_t, Result<Generation>> ended_;
};

TEST_F(EngineTest, EndsEveryJobWithItsResult) {
  for (std::uint64_t id = 0; id < 9; ++id) submit(id, asked(id));
  EXPECT_EQ(engine_->active(), 9u);
  run();
  EXPECT_EQ(ended_.size(), 9u);
  auto generator = value_or_throw(generate::Generator::create(*model_, {}));
  for (std::uint64_t id = 0; id < 9; ++id) {
    Request alone = asked(id);
    alone.id = id;
    ASSERT_TRUE(generator.submit(std::move(alone)));
    std::vector<Generation> expected;
    while (!generator.idle()) expected = generator.step();
    EXPECT_EQ(of(id).ids, expected.at(0).ids) << id;
    EXPECT_EQ(of(id).logp, expected.at(0).logp) << id;
  }
  EXPECT_EQ(engine_->counters().generated_tokens, 9 * 12);
  EXPECT_EQ(engine_->counters().free_pages, 60);
}

TEST_F(EngineTest, ARefusedJobEndsAtOnce) {
  Request wrong = asked(1);
  wrong.prompt.clear();
  submit(4, std::move(wrong));
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_.at(4).error().code, Errc::bad_input);
  EXPECT_THAT(ended_.at(4).error().what, HasSubstr("request 4: the prompt is empty"));
  EXPECT_TRUE(engine_->idle());
}

TEST_F(EngineTest, JobsEndEarlyByTheirIds) {
  for (std::uint64_t id = 0; id < 3; ++id) submit(id, asked(id, 30));
  engine_->step();
  EXPECT_TRUE(engine_->cancel(0));
  EXPECT_FALSE(engine_->cancel(7));
  engine_->fail_job(1, {Errc::timeout, "late"});
  engine_->fail_job(1, {Errc::full, "a second error"});
  run();
  EXPECT_EQ(of(0).finish, FinishReason::cancelled);
  EXPECT_EQ(ended_.at(1).error().what, "late");
  EXPECT_EQ(of(2).ids.size(), 30u);
}

TEST_F(EngineTest, AllEndAtOnceAndTheirIdsAreFree) {
  for (std::uint64_t id = 0; id < 3; ++id) submit(id, asked(id));
  engine_->step();
  engine_->fail_all({Errc::closed, "the end"});
  EXPECT_EQ(ended_.size(), 3u);
  EXPECT_EQ(ended_.at(2).error().what, "the end");
  ended_.clear();
  submit(2, asked(2));
  engine_->discard_all();
  EXPECT_TRUE(engine_->idle());
  submit(2, asked(2));
  run();
  EXPECT_EQ(of(2).ids.size(), 12u) << "and not the cancelled one";
  EXPECT_EQ(engine_->counters().free_pages, 60);
}

TEST_F(EngineTest, WeightsBetweenSequencesWaitForTheEndOfAll) {
  submit(0, asked(0));
  engine_->step();
  NewWeights weights = weights_of(*other_);
  weights.version = 5;
  weights.between_sequences = true;
  ASSERT_TRUE(engine_->set_weights(std::move(weights)));
  EXPECT_FALSE(engine_->may_start());
  EXPECT_EQ(engine_->version(), 0u);
  run();
  EXPECT_TRUE(engine_->may_start());
  EXPECT_EQ(engine_->version(), 5u);
  EXPECT_EQ(of(0).versions, std::vector<std::uint64_t>(12, 0));
  ASSERT_TRUE(engine_->set_weights(weights_of(*other_)));
  EXPECT_EQ(engine_->version(), 6u);
  const NewWeights bad{.write = []() -> Result<> { return fail(Errc::io, "the disk"); }};
  EXPECT_EQ(engine_->set_weights(bad).error().what, "the disk");
  EXPECT_EQ(engine_->version(), 6u);
}

}  // namespace
}  // namespace troupe::engine::serving
