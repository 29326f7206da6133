// Weights on their way to a rollout: what is damaged, foreign or old is refused, and what is in use
// stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/rollout.h"
#include "actors/roles/weights.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/host_values.h"
#include "tests/support/random_decoder.h"

namespace troupe {
namespace {

namespace protocol = actors::protocol;
using testing::HasSubstr;

struct Weights : testing::Test {
  std::unique_ptr<engine::ops::Device> device = engine::ops::make_cpu_device();
  engine::train::Trainer trainer{test::random_decoder(*device, 3, true), {}};
  actors::roles::Rollout rollout = value_or_throw(
      actors::roles::Rollout::create(test::random_decoder(*device, 3, false),
                                     test::random_decoder(*device, 3, false), {.pages = 20}));
  protocol::Weights sent = actors::roles::publish(trainer, nullptr);

  Error refusal() {
    const auto prepared = rollout.on(protocol::PrepareWeights{sent});
    return prepared ? Error{Errc::internal, "taken"} : prepared.error();
  }
};

TEST_F(Weights, ABitThatFlipsOnTheWayIsNamedWithItsTensor) {
  std::vector<float> values(sent.values->begin(), sent.values->end());
  values[values.size() - 1] += 1;
  sent.values = std::make_shared<const std::vector<float>>(values);
  EXPECT_EQ(refusal().code, Errc::corrupt);
  EXPECT_THAT(refusal().what,
              HasSubstr(engine::models::parameter_list(trainer.model().spec()).back().name));
}

TEST_F(Weights, AnotherModelsWeightsAreRefused) {
  sent.values = std::make_shared<const std::vector<float>>(7);
  EXPECT_EQ(refusal().code, Errc::bad_input);
  EXPECT_THAT(refusal().what, HasSubstr("found 7"));
}

TEST_F(Weights, WhatWasNotPreparedIsNotCommitted) {
  EXPECT_EQ(rollout.on(protocol::CommitWeights{0}).error().code, Errc::bad_input);
  ASSERT_TRUE(rollout.on(protocol::PrepareWeights{sent}));
  EXPECT_THAT(rollout.on(protocol::CommitWeights{9}).error().what, HasSubstr("version 0 was"));
  ASSERT_TRUE(rollout.on(protocol::CommitWeights{0}));
  EXPECT_FALSE(rollout.on(protocol::CommitWeights{0})) << "once";
}

// A rollout that takes over the samples of a lost one goes back to the weights of these samples
// (decision 0046).
TEST_F(Weights, OlderWeightsThanThePresentOnesAreTaken) {
  sent.version = 5;
  ASSERT_TRUE(rollout.on(protocol::PrepareWeights{sent}));
  ASSERT_TRUE(rollout.on(protocol::CommitWeights{5}));
  sent.version = 4;
  ASSERT_TRUE(rollout.on(protocol::PrepareWeights{sent}));
  EXPECT_TRUE(rollout.on(protocol::CommitWeights{4}));
}

// Two rollouts of a process: `models` are theirs.
struct SharedWeights : Weights {
  std::vector<engine::models::Decoder*> models;
  std::vector<actors::roles::Rollout> rollouts;

  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      auto model = test::random_decoder(*device, 3, false);
      models.push_back(model.get());
      rollouts.push_back(value_or_throw(actors::roles::Rollout::create(
          std::move(model), test::random_decoder(*device, 3, false), {.pages = 20})));
    }
  }
  void take_over(const protocol::Weights& weights) {
    for (auto& each : rollouts) {
      EXPECT_EQ(value_or_throw(each.on(protocol::PrepareWeights{weights})), weights.probe.logp);
      value_or_throw(each.on(protocol::CommitWeights{weights.version}));
    }
  }
  const float* memory(std::size_t of) {
    return engine::ops::HostValues(*device, models.at(of)->parameters().values()).values().data();
  }
};

TEST_F(SharedWeights, AllRolloutsOfAProcessReadTheOnePublishedCopy) {
  take_over(sent);
  for (const std::size_t i : {0u, 1u}) EXPECT_EQ(memory(i), sent.values->data());
}

TEST_F(SharedWeights, WeightsThatNobodyUsesAreFreed) {
  take_over(sent);
  const std::weak_ptr<const void> first = sent.values.owner();
  sent = actors::roles::publish(trainer, nullptr, 1);
  EXPECT_FALSE(first.expired());
  take_over(sent);
  EXPECT_TRUE(first.expired());
}

TEST_F(SharedWeights, PreparedWeightsLeaveThoseInUse) {
  take_over(sent);
  const protocol::Weights before = sent;
  sent = actors::roles::publish(trainer, nullptr, 1);
  value_or_throw(rollouts.at(0).on(protocol::PrepareWeights{sent}));
  EXPECT_EQ(memory(0), before.values->data());
  value_or_throw(rollouts.at(0).on(protocol::CommitWeights{1}));
  EXPECT_EQ(memory(0), sent.values->data());
  EXPECT_EQ(memory(1), before.values->data());
}

}  // namespace
}  // namespace troupe
