// Deadlines and cancellation of requested work, and the secrets of a process.
#include "engine/base/threads/work_budget.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "engine/base/random/secret.h"
#include "engine/base/threads/cancellation.h"

namespace troupe {
namespace {

using std::chrono::seconds;

TEST(WorkBudget, EndsAtItsDeadlineAndWhenCancelled) {
  WorkBudget open, late(WorkBudget::Clock::now() - seconds(1)),
      long_one(WorkBudget::Clock::now() + seconds(600));
  EXPECT_TRUE(open.check());
  EXPECT_TRUE(long_one.check());
  EXPECT_EQ(late.check().error().code, Errc::timeout);
  std::thread([&] { long_one.cancel(); }).join();
  EXPECT_EQ(long_one.check().error().code, Errc::cancelled);
  EXPECT_TRUE(long_one.cancelled());
}

TEST(WorkBudget, EndsWhatPollsCancellationOnItsThreadOnly) {
  WorkBudget outer, inner;
  inner.cancel();
  EXPECT_EQ(WorkBudget::of_this_thread(), nullptr);
  {
    const WorkBudget::Scope first(outer);
    EXPECT_TRUE(check_cancelled());
    {
      const WorkBudget::Scope second(inner);
      EXPECT_EQ(check_cancelled().error().code, Errc::cancelled);
      EXPECT_THROW(throw_if_cancelled(), Failure);
      bool elsewhere = false;
      std::thread([&] { elsewhere = static_cast<bool>(check_cancelled()); }).join();
      EXPECT_TRUE(elsewhere);
    }
    EXPECT_EQ(WorkBudget::of_this_thread(), &outer);
    EXPECT_TRUE(check_cancelled());
  }
  EXPECT_TRUE(check_cancelled());
}

TEST(Secret, TokensAndHashesAreThoseOfThisProcess) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(random_token());
  EXPECT_EQ(tokens.size(), 1000u);
  EXPECT_EQ(tokens.begin()->size(), 32u);
  EXPECT_EQ(tokens.begin()->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "abcd"));
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  const KeyedHash one, other;
  EXPECT_EQ(one(bytes), one(bytes));
  EXPECT_NE(one(bytes), other(bytes));
  EXPECT_NE(one(bytes), one(std::span(bytes).first(2)));
}

}  // namespace
}  // namespace troupe
