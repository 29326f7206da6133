// Samples that programs lease and make.
#include "launch/serve/live/sample_exchange.h"

#include <gtest/gtest.h>

namespace troupe::launch::live {
namespace {

using actors::protocol::Completion;
using actors::protocol::SampleRequest;
using std::chrono::milliseconds;

constexpr int group = 2;

std::vector<SampleRequest> requests(std::uint64_t first, std::uint64_t count) {
  std::vector<SampleRequest> out;
  for (std::uint64_t id = first; id < first + count; ++id)
    out.push_back({{static_cast<std::int32_t>(id / group)}, id, Json("answer")});
  return out;
}

Completion sample(std::uint64_t id, std::uint64_t version) {
  return {.sample_id = id,
          .ids = {1, 2},
          .logp = {-1, 0},
          .versions = {{version, 1}, {0, 1}},
          .reward = 0.5,
          .sampled = {1, 0}};
}

std::vector<std::uint64_t> ids_of(const std::vector<LeasedGroup>& groups) {
  std::vector<std::uint64_t> out;
  for (const auto& each : groups)
    out.insert(out.end(), each.sample_ids.begin(), each.sample_ids.end());
  return out;
}

std::vector<std::uint64_t> taken(SampleExchange& exchange) {
  std::vector<std::uint64_t> out;
  for (const auto& each : exchange.take(milliseconds(0))) out.push_back(each.sample_id);
  return out;
}

using Ids = std::vector<std::uint64_t>;

TEST(SampleExchange, LeasesGroupsInTheirOrderAndEachSampleOnce) {
  SampleExchange exchange(group, std::chrono::seconds(600));
  EXPECT_TRUE(exchange.lease(1).empty());
  exchange.offer(requests(4, 6), 3);
  const auto first = exchange.lease(2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].group, 2u);
  EXPECT_EQ(first[0].prompt, std::vector<std::int32_t>{2});
  EXPECT_EQ(first[0].answer, Json("answer"));
  EXPECT_EQ(ids_of(first), (Ids{4, 5, 6, 7}));
  EXPECT_EQ(ids_of(exchange.lease(2)), (Ids{8, 9}));
  EXPECT_TRUE(exchange.lease(2).empty());
}

TEST(SampleExchange, AcceptsEachSampleOnce) {
  SampleExchange exchange(group, std::chrono::seconds(600));
  exchange.offer(requests(0, 2), 3);
  EXPECT_EQ(exchange.accept(sample(2, 3)), Arrival::not_offered);
  EXPECT_EQ(exchange.accept(sample(1, 3)), Arrival::accepted);
  EXPECT_EQ(exchange.accept(sample(1, 3)), Arrival::duplicate);
  EXPECT_EQ(taken(exchange), Ids{1});
  EXPECT_EQ(exchange.accept(sample(1, 3)), Arrival::duplicate);
  EXPECT_TRUE(taken(exchange).empty());
}

TEST(SampleExchange, RefusesSamplesOfOlderVersions) {
  SampleExchange exchange(group, std::chrono::seconds(600));
  exchange.offer(requests(0, 2), 3);
  EXPECT_EQ(exchange.accept(sample(0, 2)), Arrival::too_old);
  exchange.offer(requests(0, 4), 5);  // the version with which a sample was offered first counts
  EXPECT_EQ(exchange.accept(sample(0, 3)), Arrival::accepted);
  EXPECT_EQ(exchange.accept(sample(2, 4)), Arrival::too_old);
  EXPECT_EQ(exchange.accept(sample(2, 5)), Arrival::accepted);
}

TEST(SampleExchange, WhatIsNotOfferedAnyMoreIsNotAccepted) {
  SampleExchange exchange(group, std::chrono::seconds(600));
  exchange.offer(requests(0, 4), 0);
  EXPECT_EQ(exchange.accept(sample(0, 0)), Arrival::accepted);
  exchange.offer(requests(2, 4), 0);
  EXPECT_TRUE(taken(exchange).empty());
  EXPECT_EQ(exchange.accept(sample(1, 0)), Arrival::not_offered);
  EXPECT_EQ(ids_of(exchange.lease(9)), (Ids{2, 3, 4, 5}));
}

TEST(SampleExchange, AnIncompleteGroupIsLeasedAgain) {
  SampleExchange exchange(group, std::chrono::seconds(0));  // leases end at once
  exchange.offer(requests(0, 4), 0);
  EXPECT_EQ(ids_of(exchange.lease(1)), (Ids{0, 1}));
  EXPECT_EQ(exchange.accept(sample(0, 0)), Arrival::accepted);
  EXPECT_EQ(ids_of(exchange.lease(1)), Ids{1});
  EXPECT_EQ(exchange.accept(sample(1, 0)), Arrival::accepted);
  EXPECT_EQ(ids_of(exchange.lease(1)), (Ids{2, 3}));
}

}  // namespace
}  // namespace troupe::launch::live
