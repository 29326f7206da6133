// A run whose models do not fit is refused before anything is loaded, with settings that fit.
#include "launch/memory/check_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/text/text.h"
#include "launch/cluster/cluster_memory.h"
#include "launch/memory/memory.h"
#include "launch/memory/what_fits.h"
#include "launch/recipes/model_spec.h"
#include "launch/run/settings.h"
#include "tests/launch/run/config_with.h"

namespace troupe::launch::check_memory_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

engine::models::DecoderSpec spec(const config::RunConfig& config) {
  return value_or_throw(recipes::spec_of(config, config.model));
}

AvailableMemory machine_of(std::uint64_t bytes) {
  return {.machine = {bytes, "the limit"}, .process = {}};
}

memory::MemoryPlace place_of(std::uint64_t bytes) {
  return {.processes = 1, .threads = true, .room = machine_of(bytes)};
}

Result<std::string> check(const config::RunConfig& config, std::uint64_t bytes) {
  return check_memory(config, spec(config), place_of(bytes));
}

// 260032 parameters; the second gradient of the tied table (512 x 64) need not become resident.
constexpr std::uint64_t parameters = 260032, fixed = 16 * parameters;

TEST(CheckMemory, RefusesFromOneByteLessThanTheModelOn) {
  const config::RunConfig config = config_with({});
  EXPECT_EQ(memory::memory_need(config, spec(config), true).fixed, fixed);
  EXPECT_TRUE(check(config, fixed));
  const auto refused = check(config, fixed - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::full);
  EXPECT_THAT(refused.error().what,
              AllOf(HasSubstr("weights, gradients and optimizer state need 4.0 MiB"),
                    HasSubstr("4.0 MiB are available (the limit)"), HasSubstr("What would fit: ")));
}

TEST(CheckMemory, WarnsWhereOnlyTheRestDoesNotFit) {
  const config::RunConfig config = config_with({});
  const std::uint64_t all = memory::memory_need(config, spec(config), true).all;
  EXPECT_EQ(value_or_throw(check(config, all)), "");
  EXPECT_THAT(value_or_throw(check(config, all - 1)),
              AllOf(HasSubstr("with activations and caches"), HasSubstr("train.micro_batch_tokens"),
                    Not(HasSubstr("rollout."))));
  const config::RunConfig rollouts = config_with({"reward=exact_match"}, "grpo");
  EXPECT_THAT(
      value_or_throw(check(rollouts, memory::memory_need(rollouts, spec(rollouts), true).all - 1)),
      HasSubstr("rollout.max_sequences"));
}

TEST(CheckMemory, CountsTheLimitOfEachProcessAndAllOfTheMachine) {
  const memory::MemoryNeed need{100, 150};
  const auto advice = [] { return std::string("advice"); };
  const auto compare = [&](int processes, std::uint64_t machine, std::uint64_t process) {
    return memory::compare_memory(need, processes, {{machine, "machine"}, {process, "process"}},
                                  advice);
  };
  EXPECT_EQ(value_or_throw(compare(4, 600, 150)), "");
  EXPECT_NE(value_or_throw(compare(4, 599, 150)), "");
  EXPECT_NE(value_or_throw(compare(4, 600, 149)), "");
  EXPECT_TRUE(compare(4, 400, 100));
  EXPECT_FALSE(compare(4, 399, 100));
  EXPECT_FALSE(compare(4, 400, 99));
  EXPECT_EQ(value_or_throw(memory::compare_memory(need, 4, {}, advice)), "") << "unknown";
}

TEST(WhatFits, NamesOnlyWhatTheRunAcceptsAndWhatFits) {
  const config::RunConfig config = config_with({});
  const auto text = [&](const config::RunConfig& run, std::uint64_t bytes) {
    return memory::what_fits(run, place_of(bytes));
  };
  // 8 bytes for each parameter with states in bf16, about 4 below an adapter.
  EXPECT_THAT(text(config, 8 * parameters),
              AllOf(HasSubstr("lora.rank = 8 ("), HasSubstr("moments = bf16 (2.0 MiB)")));
  EXPECT_THAT(text(config, 8 * parameters - 1),
              AllOf(HasSubstr("lora.rank = 8 ("), Not(HasSubstr("bf16"))));
  EXPECT_THAT(text(config, 4 * parameters),
              AllOf(Not(HasSubstr("lora")), HasSubstr("parallel.tp = 8 over 8 hosts"),
                    Not(HasSubstr("parallel.zero"))))
      << "each rank has all norms";
  EXPECT_THAT(text(config_with({"parallel.dp=4"}), 3 * fixed), HasSubstr("parallel.zero = 1 ("));
  EXPECT_THAT(text(config, 1000), HasSubstr("a smaller model"));
  EXPECT_THAT(text(config_with({"lora.rank=4"}), 1000), Not(HasSubstr("lora.rank")));
}

TEST(WhatFits, LeavesNoReplicaWithoutRows) {
  // The states of the optimizer, 8 of 16 bytes for each parameter, are divided.
  const auto text = [&](const char* batch) {
    return memory::what_fits(config_with({batch}), place_of(9 * parameters));
  };
  EXPECT_THAT(text("train.batch_size=16"), HasSubstr("parallel.dp = 8 over 8 hosts"));
  EXPECT_THAT(text("train.batch_size=4"), Not(HasSubstr("parallel.dp")));
}

// Each proposal, applied, is accepted.
TEST(WhatFits, IsTrueOfTheRunsThatItProposes) {
  const config::RunConfig lora = config_with({"lora.rank=8"}),
                          rounded = config_with(
                              {"train.weights=bf16", "train.gradients=bf16", "train.moments=bf16"});
  for (const std::uint64_t bytes : {5 * parameters, 8 * parameters, 12 * parameters}) {
    const std::string text = memory::what_fits(config_with({}), place_of(bytes));
    EXPECT_EQ(text.find("lora.rank") != std::string::npos, check(lora, bytes).has_value());
    EXPECT_EQ(text.find("bf16") != std::string::npos, check(rounded, bytes).has_value());
  }
}

TEST(ClusterMemory, IsThatOfAllGroups) {
  const config::RunConfig config = config_with({"reward=exact_match", "grpo.beta=0.1"}, "grpo");
  const auto nodes = cluster::nodes_of(
      value_or_throw(cluster::parse_cluster(
                         "groups:\n  - {role: policy, parallel: {tp: 2}}\n  - {role: reference}\n"
                         "  - {role: rollout, count: 2}\n  - {role: verifier}\n",
                         "cluster.yaml", config))
          .groups);
  config::RunConfig run = config;
  for (const cluster::NodeSpec& node : nodes)
    if (node.role == recipes::Role::policy) run.parallel = node.parallel;
  const auto groups = cluster::memory_of_groups(run, nodes, spec(run));
  ASSERT_EQ(groups.size(), 5u);
  // The norms are on both ranks.
  EXPECT_NEAR(static_cast<double>(groups[0].bytes), static_cast<double>(fixed), 0.01 * fixed);
  EXPECT_NEAR(static_cast<double>(groups[0].largest), fixed / 2.0, 0.01 * fixed);
  EXPECT_EQ(groups[1].bytes, 4 * parameters);
  EXPECT_EQ(groups[2].bytes, 8 * parameters);
  EXPECT_EQ(groups[4].bytes, 0u);
  std::uint64_t sum = 0;
  for (const auto& group : groups) sum += group.bytes;
  EXPECT_TRUE(check_memory(run, nodes, spec(run), machine_of(sum)));
  const auto refused = check_memory(run, nodes, spec(run), machine_of(sum - 1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, AllOf(HasSubstr("policy 4.0 MiB"), HasSubstr("rollout-1 2.0")));
  const AvailableMemory process{.machine = {}, .process = {8 * parameters - 1, "ulimit"}};
  EXPECT_THAT(check_memory(run, nodes, spec(run), process).error().what, HasSubstr("ulimit"));
}

}  // namespace
}  // namespace troupe::launch::check_memory_test
