// The bound on staleness: (eta + v + 1) B prompts may have been started at version v.
#include "algorithms/rollout/batches.h"

#include <gtest/gtest.h>

namespace troupe::algorithms {
namespace {

constexpr std::int64_t no_limit = 1'000'000;

TEST(Admission, StartsEtaBatchesMoreThanAreTrained) {
  for (const std::int64_t eta : {0, 1, 4}) {
    Admission admission({.batch = 3, .eta = eta, .in_flight = no_limit}, 0);
    for (std::int64_t trained = 0; trained < 5; ++trained) {
      std::int64_t started = trained == 0 ? 0 : eta + trained;
      for (; admission.admits_batch(); ++started) admission.start(3);
      EXPECT_EQ(started, eta + trained + 1) << "eta " << eta;
      admission.accept(3);
      admission.trained();
      EXPECT_EQ(admission.version(), trained + 1);
    }
  }
}

TEST(Admission, CountsAcceptedPromptsForEver) {
  Admission admission({.batch = 4, .eta = 1, .in_flight = no_limit}, 0);
  EXPECT_EQ(admission.capacity(), 8);
  admission.start(8);
  admission.accept(4);
  EXPECT_EQ(admission.capacity(), 0);
  admission.trained();
  EXPECT_EQ(admission.capacity(), 4);
}

TEST(Admission, StartsOthersForRejectedPrompts) {
  Admission admission({.batch = 4, .eta = 0, .in_flight = no_limit}, 0);
  admission.start(4);
  EXPECT_EQ(admission.capacity(), 0);
  admission.reject(1);
  EXPECT_EQ(admission.capacity(), 1);
  EXPECT_FALSE(admission.admits_batch());
  admission.start(1);
  admission.accept(4);
  EXPECT_EQ(admission.capacity(), 0) << "the batch is complete and not trained";
}

TEST(Admission, BoundsThePromptsThatAreSampled) {
  Admission admission({.batch = 2, .eta = 10, .in_flight = 4}, 0);
  admission.start(2);
  admission.start(2);
  EXPECT_FALSE(admission.admits_batch());
  admission.accept(2);
  EXPECT_TRUE(admission.admits_batch());
  EXPECT_EQ(admission.running(), 2);
}

TEST(Admission, ResumesFromTheVersionOfACheckpoint) {
  Admission admission({.batch = 2, .eta = 1, .in_flight = no_limit}, 7);
  EXPECT_EQ(admission.capacity(), 4) << "batches 7 and 8";
}

TEST(Admission, RefusesMoreThanItAdmits) {
  Admission admission({.batch = 2, .eta = 0, .in_flight = no_limit}, 0);
  EXPECT_THROW(admission.start(3), Bug);
  EXPECT_THROW(admission.accept(1), Bug);
  EXPECT_THROW(admission.reject(1), Bug);
  EXPECT_THROW(Admission({.batch = 4, .eta = 0, .in_flight = 3}, 0), Bug);
}

}  // namespace
}  // namespace troupe::algorithms
