// Weights on their way to a rollout: what is damaged, foreign or old is refused, and what is in use
// stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/rollout.h"
#include "actors/roles/weights.h"
#include "engine/ops/cpu/cpu_options.h"
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

TEST_F(Weights, OlderWeightsThanThePresentOnesAreRefused) {
  sent.version = 5;
  ASSERT_TRUE(rollout.on(protocol::PrepareWeights{sent}));
  ASSERT_TRUE(rollout.on(protocol::CommitWeights{5}));
  sent.version = 4;
  EXPECT_THAT(refusal().what, HasSubstr("older"));
}

}  // namespace
}  // namespace troupe
