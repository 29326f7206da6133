#include "engine/serving/generation_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "engine/base/random/random.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/cpu/reference/reference_device.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::serving {
namespace {

using generate::FinishReason;
using generate::Generation;
using generate::GeneratorConfig;
using generate::Request;
using testing::HasSubstr;

using Outcome = Result<Generation>;

Request request(std::uint64_t seed, std::int32_t tokens = 12) {
  Request out;
  out.prompt = {3, 1, 4, static_cast<std::int32_t>(seed % 7), 5};
  out.params.max_new_tokens = tokens;
  out.params.seed = seed;
  out.sample_id = seed % 3;
  return out;
}

/// A prompt that begins with that of request(1).
std::vector<std::int32_t> small_prompt_and(std::size_t more) {
  std::vector<std::int32_t> prompt = request(1).prompt;
  for (std::size_t i = 0; i < more; ++i) prompt.push_back(static_cast<std::int32_t>(i % 37));
  return prompt;
}

class GenerationThreadTest : public testing::Test {
 protected:
  std::unique_ptr<GenerationThread> start(ServiceLimits limits = {}, GeneratorConfig config = {}) {
    return start_on(*model_, limits, std::move(config));
  }
  std::unique_ptr<GenerationThread> start_on(models::Decoder& model, ServiceLimits limits,
                                             GeneratorConfig config) {
    config.max_sequences = limits.max_batch;
    engine_ = std::make_unique<Engine>(model, std::move(config));
    value_or_throw(engine_->start());
    return std::make_unique<GenerationThread>(*engine_, limits);
  }
  /// Submits the request and returns its outcome.
  static std::future<Outcome> submit(GenerationThread& service, Request wanted,
                                     std::uint64_t* id = nullptr) {
    auto promise = std::make_shared<std::promise<Outcome>>();
    Job job;
    job.sample_id = wanted.sample_id;
    job.request = std::make_shared<const Request>(std::move(wanted));
    job.on_end = [promise](Outcome outcome) { promise->set_value(std::move(outcome)); };
    std::vector<Job> jobs;
    jobs.push_back(std::move(job));
    const auto ids = value_or_throw(service.submit(std::move(jobs), "client"));
    if (id != nullptr) *id = ids.at(0);
    return promise->get_future();
  }
  Generation alone(const Request& wanted) {
    auto generator = value_or_throw(generate::Generator::create(*model_, {}));
    return value_or_throw(test::generate_all(generator, {wanted})).at(0);
  }

  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
  std::unique_ptr<Engine> engine_;
};

TEST_F(GenerationThreadTest, TokensAmong64ConcurrentRequestsAreThoseOfTheRequestAlone) {
  std::vector<Generation> expected;
  for (std::uint64_t seed = 0; seed < 64; ++seed) expected.push_back(alone(request(seed)));
  const auto service = start({.max_batch = 24}, {.page_size = 4});
  std::vector<std::future<Outcome>> outcomes;
  for (std::uint64_t seed = 0; seed < 64; ++seed)
    outcomes.push_back(submit(*service, request(seed)));
  for (std::size_t seed = 0; seed < 64; ++seed) {
    const Generation found = value_or_throw(outcomes[seed].get());
    EXPECT_EQ(found.ids, expected[seed].ids) << seed;
    EXPECT_EQ(found.logp, expected[seed].logp) << seed;
  }
  const ServiceCounters counters = service->counters();
  EXPECT_EQ(counters.free_pages, counters.pages);
  EXPECT_EQ(counters.generated_tokens, 64 * 12);
  EXPECT_EQ(counters.prompt_tokens, 64 * 5);
}

TEST_F(GenerationThreadTest, APrefixCacheChangesNoBitAmong64ConcurrentRequests) {
  const auto wanted = [](std::uint64_t seed) {
    Request out = request(seed);
    out.prompt.insert(out.prompt.begin(), 17, static_cast<std::int32_t>(seed % 4));
    return out;
  };
  std::vector<Generation> expected;
  for (std::uint64_t seed = 0; seed < 64; ++seed) expected.push_back(alone(wanted(seed)));
  const auto service =
      start({.max_batch = 24}, {.page_size = 4, .pages = 150, .prefix_cache = true});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::future<Outcome>> outcomes;
    for (std::uint64_t seed = 0; seed < 64; ++seed)
      outcomes.push_back(submit(*service, wanted(seed)));
    for (std::size_t seed = 0; seed < 64; ++seed) {
      const Generation found = value_or_throw(outcomes[seed].get());
      EXPECT_EQ(found.ids, expected[seed].ids) << seed;
      EXPECT_EQ(found.logp, expected[seed].logp) << seed;
    }
  }
  const ServiceCounters counters = service->counters();
  EXPECT_EQ(counters.free_pages + counters.idle_pages, counters.pages);
  EXPECT_EQ(counters.prefix_queries, 3 * 64 * 22);
  EXPECT_GT(counters.prefix_hits, counters.prefix_queries / 2);
}

TEST_F(GenerationThreadTest, ReportsEveryTokenBeforeTheEnd) {
  const auto service = start();
  std::vector<std::int32_t> seen;
  std::promise<Outcome> done;
  std::vector<Job> jobs(1);
  Request wanted = request(5);
  wanted.params.top_logprobs = 2;
  jobs[0].sample_id = wanted.sample_id;
  jobs[0].request = std::make_shared<const Request>(std::move(wanted));
  jobs[0].on_token = [&](const generate::TokenEvent& event) {
    EXPECT_EQ(event.index, std::ssize(seen));
    EXPECT_EQ(event.top.size(), 2U);
    seen.push_back(event.token);
  };
  jobs[0].on_end = [&](Outcome outcome) { done.set_value(std::move(outcome)); };
  value_or_throw(service->submit(std::move(jobs), ""));
  EXPECT_EQ(value_or_throw(done.get_future().get()).ids, seen);
}

TEST_F(GenerationThreadTest, ScoresThePromptAndThenGenerates) {
  const auto service = start();
  std::promise<Outcome> done;
  generate::PromptScores scores;
  std::vector<Job> jobs(1);
  Request wanted = request(5);
  wanted.prompt_alternatives = 3;
  jobs[0].sample_id = wanted.sample_id;
  jobs[0].request = std::make_shared<const Request>(std::move(wanted));
  jobs[0].on_prompt = [&](const generate::PromptScores& found) { scores = found; };
  jobs[0].on_end = [&](Outcome outcome) { done.set_value(std::move(outcome)); };
  value_or_throw(service->submit(std::move(jobs), ""));
  // The service uses the model until the outcome is there.
  const Generation found = value_or_throw(done.get_future().get());
  EXPECT_EQ(found.ids, alone(request(5)).ids);
  EXPECT_EQ(scores.logp, test::trainer_logp(*model_, request(5).prompt, 1.0F));
  EXPECT_EQ(scores.top.at(1).size(), 3U);
}

TEST_F(GenerationThreadTest, CancellationsAtRandomLeaveAllPagesFree) {
  const auto service = start({.max_batch = 8}, {.page_size = 4});
  std::vector<std::future<Outcome>> outcomes;
  for (std::uint64_t n = 0; n < 200; ++n) {
    std::uint64_t id = 0;
    outcomes.push_back(submit(*service, request(n, 60), &id));
    const auto pause = uniform_below(3, 1, n, 0);
    if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(300 * pause));
    if (uniform_below(4, 1, n, 1) > 0) service->cancel(id);
    service->cancel(1 + uniform_below(id, 1, n, 2));
  }
  std::map<FinishReason, int> reasons;
  for (auto& outcome : outcomes) {
    const Generation found = value_or_throw(outcome.get());
    ++reasons[found.finish];
    const auto whole = found.ids.size();
    EXPECT_TRUE(found.finish == FinishReason::cancelled ? whole < 60 : whole == 60);
  }
  EXPECT_GT(reasons[FinishReason::cancelled], 50);
  const ServiceCounters counters = service->counters();
  EXPECT_EQ(counters.free_pages, counters.pages);
  EXPECT_EQ(counters.running, 0);
  EXPECT_EQ(counters.waiting, 0);
}

TEST_F(GenerationThreadTest, SequencesOfOneRequestDifferInTheirSampleOnly) {
  const auto service = start();
  const auto shared = std::make_shared<const Request>(request(8));
  std::vector<Job> jobs(5);
  std::vector<std::promise<Outcome>> outcomes(jobs.size());
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    jobs[n].request = shared;
    jobs[n].sample_id = n;
    jobs[n].on_end = [&outcomes, n](Outcome found) { outcomes[n].set_value(std::move(found)); };
  }
  value_or_throw(service->submit(std::move(jobs), ""));
  for (std::size_t n = 0; n < outcomes.size(); ++n) {
    Request own = *shared;
    own.sample_id = n;
    const Generation found = value_or_throw(outcomes[n].get_future().get());
    EXPECT_EQ(found.sample_id, n);
    EXPECT_EQ(found.ids, alone(own).ids);
  }
}

TEST_F(GenerationThreadTest, RefusesMoreThanMayWaitAndAcceptsAllOrNone) {
  const auto service = start({.max_batch = 1, .max_waiting = 2});
  std::vector<Job> jobs(3);
  for (Job& job : jobs) {
    job.request = std::make_shared<const Request>(request(1));
    job.on_end = [](const Outcome&) { FAIL() << "a refused job has no outcome"; };
  }
  const auto refused = service->submit(std::move(jobs), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::full);
  EXPECT_THAT(refused.error().what, HasSubstr("at most 2 may wait"));
  EXPECT_TRUE(submit(*service, request(1)).get());
}

TEST_F(GenerationThreadTest, ARequestWithoutATokenToSampleFailsAlone) {
  const auto service = start();
  Request barren = request(1);
  barren.params.token_rules.suppress_tokens.resize(
      static_cast<std::size_t>(model_->spec().vocabulary));
  std::iota(barren.params.token_rules.suppress_tokens.begin(),
            barren.params.token_rules.suppress_tokens.end(), 0);
  auto good = submit(*service, request(2)), bad = submit(*service, barren),
       also = submit(*service, request(3));
  const Outcome failed = bad.get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::usage);
  EXPECT_THAT(failed.error().what, HasSubstr("ban every token"));
  EXPECT_EQ(value_or_throw(good.get()).ids, alone(request(2)).ids);
  EXPECT_EQ(value_or_throw(also.get()).ids, alone(request(3)).ids);
}

// The callback of one job throws, as it may when its answer needs memory.
TEST_F(GenerationThreadTest, ACallbackThatThrowsEndsItsJobAlone) {
  const auto service = start();
  std::promise<Outcome> outcome;
  Job job;
  job.request = std::make_shared<const Request>(request(1));
  job.on_token = [](const generate::TokenEvent&) { throw std::bad_alloc(); };
  job.on_end = [&](Outcome end) { outcome.set_value(std::move(end)); };
  auto other = submit(*service, request(2));
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  ASSERT_TRUE(service->submit(std::move(jobs), "client"));
  const Outcome failed = outcome.get_future().get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::full);
  EXPECT_EQ(value_or_throw(other.get()).ids, alone(request(2)).ids);
}

TEST_F(GenerationThreadTest, AnEndThatThrowsIsRepeatedWithTheError) {
  const auto service = start();
  std::promise<Outcome> outcome;
  int calls = 0;
  Job job;
  job.request = std::make_shared<const Request>(request(1));
  job.on_end = [&](Outcome end) {
    if (calls++ == 0) throw std::bad_alloc();
    outcome.set_value(std::move(end));
  };
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  ASSERT_TRUE(service->submit(std::move(jobs), "client"));
  const Outcome failed = outcome.get_future().get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::full);
  EXPECT_TRUE(submit(*service, request(2)).get());
}

// What a callback threw with a sequence's last token is its end, although it is finished.
TEST_F(GenerationThreadTest, ACallbackThatThrowsWithTheLastTokenFailsItsJob) {
  const auto service = start();
  std::promise<Outcome> outcome;
  Job job;
  job.request = std::make_shared<const Request>(request(1, 3));
  job.on_token = [](const generate::TokenEvent& event) {
    if (event.index == 2) throw Failure({Errc::full, "no room for the third token"});
  };
  job.on_end = [&](Outcome end) { outcome.set_value(std::move(end)); };
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  ASSERT_TRUE(service->submit(std::move(jobs), "client"));
  const Outcome failed = outcome.get_future().get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::full);
  EXPECT_EQ(failed.error().what, "no room for the third token");
  EXPECT_TRUE(submit(*service, request(2)).get());
}

/// A device that has no memory for tensors of more than `most` values.
struct SmallDevice : ops::cpu::reference::ReferenceDevice {
  Tensor empty(Shape shape, DType type) override {
    if (shape.count() > most) {
      ++refused;
      throw Failure({Errc::full, "out of memory: a test's device"});
    }
    return ReferenceDevice::empty(shape, type);
  }
  std::atomic<std::int64_t> most = std::numeric_limits<std::int64_t>::max();
  std::atomic<int> refused = 0;
};

// A step that lacks memory is repeated without the sequence that came last: the others had room.
TEST_F(GenerationThreadTest, AStepThatLacksMemoryEndsTheLatestSequenceAlone) {
  for (const bool prefix_cache : {false, true}) {
    SmallDevice device;
    const auto model = test::tiny_model(device);
    const auto service =
        start_on(*model, {}, {.page_size = 4, .pages = 200, .prefix_cache = prefix_cache});
    ASSERT_TRUE(submit(*service, request(0)).get()) << "there is all that is made once";
    // Room for all rows of the short ones at once, which a repeated step may compute again.
    device.most = 1500;
    std::vector<std::future<Outcome>> small, large;
    for (std::uint64_t n = 0; n < 2; ++n) small.push_back(submit(*service, request(n, 12)));
    for (std::uint64_t n = 0; n < 4; ++n) {
      Request wanted = request(n, 4);
      wanted.prompt = small_prompt_and(60);
      large.push_back(submit(*service, std::move(wanted)));
    }
    for (auto& each : large) {
      const Outcome failed = each.get();
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, Errc::full);
      EXPECT_THAT(failed.error().what, HasSubstr("out of memory"));
    }
    for (std::uint64_t n = 0; n < 2; ++n) {
      const Generation found = value_or_throw(small[n].get());
      const Generation expected = alone(request(n, 12));
      EXPECT_EQ(found.ids, expected.ids) << n;
      EXPECT_EQ(found.logp, expected.logp) << n;
    }
    EXPECT_GE(device.refused, 4);
    EXPECT_EQ(service->counters().free_pages + service->counters().idle_pages, 200);
    device.most = std::numeric_limits<std::int64_t>::max();
    EXPECT_TRUE(submit(*service, request(9)).get()) << "the service continues";
  }
}

TEST_F(GenerationThreadTest, ASequenceEndsAtTheDeadline) {
  const auto service = start({.deadline = std::chrono::seconds(0)});
  const Outcome late = submit(*service, request(1)).get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::timeout);
}

TEST_F(GenerationThreadTest, TheEndOfTheServiceEndsEveryJob) {
  std::vector<std::future<Outcome>> outcomes;
  {
    const auto service = start({.max_batch = 2});
    for (std::uint64_t n = 0; n < 20; ++n) outcomes.push_back(submit(*service, request(n, 80)));
  }
  int closed = 0;
  for (auto& each : outcomes)
    if (const Outcome outcome = each.get(); !outcome && outcome.error().code == Errc::closed)
      ++closed;
  EXPECT_GT(closed, 0);
}

TEST_F(GenerationThreadTest, ChecksARequestBeforeItWaits) {
  const auto service = start({}, {.page_size = 4, .pages = 4});
  EXPECT_TRUE(service->check_request(request(1, 8)));
  EXPECT_EQ(service->check_request(request(1, 80)).error().code, Errc::full);
  Request wrong = request(1);
  wrong.prompt = {};
  EXPECT_EQ(service->check_request(wrong).error().code, Errc::bad_input);
}

}  // namespace
}  // namespace troupe::engine::serving
