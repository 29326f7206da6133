#include "engine/serving/pooling_service.h"

#include <gtest/gtest.h>

#include <future>

#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/scoring.h"
#include "tests/engine/generate/tiny_model.h"

namespace troupe::engine::serving {
namespace {

using Values = Result<std::vector<float>>;

std::vector<std::int32_t> tokens_of(int seed) {
  std::vector<std::int32_t> out;
  for (int t = 0; t < 1 + seed * 5 % 23; ++t) out.push_back((seed * 7 + t * t) % 37);
  return out;
}

std::unique_ptr<models::Decoder> model_with(ops::Device& device, int labels) {
  models::DecoderSpec spec = test::tiny_spec();
  spec.labels = labels;
  if (labels > 0) spec.tied = false;
  return test::tiny_model(device, 1, std::move(spec));
}

std::vector<std::future<Values>> submit(PoolingService& service, int count, bool every_token) {
  std::vector<PoolingJob> jobs;
  std::vector<std::future<Values>> out;
  for (int n = 0; n < count; ++n) {
    const auto promise = std::make_shared<std::promise<Values>>();
    out.push_back(promise->get_future());
    jobs.push_back({tokens_of(n), every_token,
                    [promise](Values values) { promise->set_value(std::move(values)); }});
  }
  value_or_throw(service.submit(std::move(jobs), "client"));
  return out;
}

TEST(PoolingService, ScoresHaveTheBitsOfTheTrainer) {
  const auto device = ops::make_reference_device();
  for (const int labels : {1, 3}) {
    const auto model = model_with(*device, labels);
    std::vector<std::vector<float>> expected;
    for (int n = 0; n < 50; ++n) {
      const auto tokens = tokens_of(n);
      data::Experience one;
      one.append(tokens, std::vector<float>(tokens.size(), 1.0F));
      expected.push_back(
          train::scores(*model, one, loss::ReadAt::token, {}, {.every_token = true}));
    }
    Engine engine(*model, {});
    PoolingService service(engine, {});
    for (const bool every_token : {true, false}) {
      auto found = submit(service, 50, every_token);
      for (std::size_t n = 0; n < found.size(); ++n) {
        std::vector<float> values = expected[n];
        if (!every_token) values.erase(values.begin(), values.end() - labels);
        EXPECT_EQ(value_or_throw(found[n].get()), values) << labels << " labels, text " << n;
      }
    }
  }
}

TEST(PoolingService, EmbeddingsAreHiddenStatesOfTheLastToken) {
  const auto device = ops::make_reference_device();
  const auto model = model_with(*device, 0);
  std::vector<std::vector<float>> expected;
  for (int n = 0; n < 20; ++n) {
    const auto hidden = ops::to_host(*device, test::full_forward(*model, tokens_of(n)));
    expected.emplace_back(hidden.end() - model->spec().width, hidden.end());
  }
  Engine engine(*model, {});
  PoolingService service(engine, {});
  auto found = submit(service, 20, false);
  for (std::size_t n = 0; n < found.size(); ++n)
    EXPECT_EQ(value_or_throw(found[n].get()), expected[n]) << n;
  EXPECT_EQ(service.counters().waiting, 0);
}

TEST(PoolingService, TextsThatNobodyWaitsForAreNotComputed) {
  const auto device = ops::make_reference_device();
  const auto model = model_with(*device, 1);
  Engine engine(*model, {});
  PoolingService service(engine, {});
  std::vector<PoolingJob> jobs;
  std::promise<Values> dropped, kept;
  jobs.push_back({tokens_of(0), false, [&](Values values) { dropped.set_value(std::move(values)); },
                  [] { return false; }});
  jobs.push_back({tokens_of(1), false, [&](Values values) { kept.set_value(std::move(values)); },
                  [] { return true; }});
  value_or_throw(service.submit(std::move(jobs), "client"));
  EXPECT_EQ(dropped.get_future().get().error().code, Errc::cancelled);
  EXPECT_EQ(value_or_throw(kept.get_future().get()).size(), 1U);
}

TEST(PoolingService, EveryJobEnds) {
  const auto device = ops::make_reference_device();
  const auto model = model_with(*device, 1);
  Engine engine(*model, {});
  PoolingService late(engine, {.deadline = std::chrono::seconds(0)});
  for (auto& each : submit(late, 3, false)) EXPECT_EQ(each.get().error().code, Errc::timeout);
  Engine other(*model, {});
  PoolingService service(other, {.max_waiting = 40});
  EXPECT_EQ(service.submit(std::vector<PoolingJob>(41), "client").error().code, Errc::full);
  auto found = submit(service, 40, false);
  service.stop();
  for (auto& each : found) {
    const Values values = each.get();
    EXPECT_TRUE(values || values.error().code == Errc::closed);
  }
  EXPECT_EQ(service.submit(std::vector<PoolingJob>(1), "client").error().code, Errc::closed);
}

}  // namespace
}  // namespace troupe::engine::serving
