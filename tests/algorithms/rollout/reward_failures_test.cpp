// Which missing rewards end a run, and how many of them.
#include "algorithms/rollout/reward_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::algorithms {
namespace {

using protocol::FailureKind;
using testing::AllOf;
using testing::HasSubstr;

protocol::RewardResult failed(std::vector<FailureKind> kinds) {
  return {.reward = std::nullopt,
          .parts = {},
          .failure = "command: crash: it exited with code 3",
          .failure_kinds = std::move(kinds)};
}

// The message for `failures` crashes among 8 samples; "" if they are allowed.
std::string why(std::size_t failures, double share) {
  std::vector<protocol::Completion> completions(8);
  std::vector<protocol::RewardResult> rewards(8, {.reward = 1.0, .parts = {}, .failure = ""});
  for (std::size_t n = 0; n < 8; ++n) completions[n].sample_id = 100 + n;
  for (std::size_t n = 0; n < failures; ++n) rewards[7 - n] = failed({FailureKind::crash});
  try {
    check_reward_failures(completions, rewards, share);
  } catch (const RewardFailure& failure) {
    return failure.what();
  }
  return "";
}

TEST(RewardFailures, OfTheProgramCountAndThoseOfTheTextDoNot) {
  EXPECT_TRUE(program_failed(failed({FailureKind::crash})));
  EXPECT_TRUE(program_failed(failed({FailureKind::timeout, FailureKind::malformed})));
  for (const auto kind :
       {FailureKind::timeout, FailureKind::flood, FailureKind::memory, FailureKind::other})
    EXPECT_FALSE(program_failed(failed({kind}))) << name_of(kind);
  EXPECT_FALSE(program_failed({.reward = 0.0, .parts = {}, .failure = ""}));
}

TEST(RewardFailures, EndTheRunBeyondTheShare) {
  EXPECT_EQ(why(0, 0), "");
  EXPECT_EQ(why(2, 0.25), "");
  EXPECT_EQ(why(8, 1), "");
  EXPECT_NE(why(3, 0.25), "");
  EXPECT_THAT(why(1, 0), AllOf(HasSubstr("failed on 1 of 8 samples"), HasSubstr("sample 107: "),
                               HasSubstr("command: crash: it exited with code 3"),
                               HasSubstr("rollout.max_reward_failures")));
}

}  // namespace
}  // namespace troupe::algorithms
