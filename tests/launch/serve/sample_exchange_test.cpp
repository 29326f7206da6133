// Samples that programs lease and make.
#include "launch/serve/live/sample_exchange.h"

#include <gtest/gtest.h>

namespace troupe::launch::serve::live {
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

std::vector<std::uint64_t> ids_of(const std::vector<serve::live::LeasedGroup>& groups) {
  std::vector<std::uint64_t> out;
  for (const auto& each : groups)
    out.insert(out.end(), each.sample_ids.begin(), each.sample_ids.end());
  return out;
}

std::vector<std::uint64_t> taken(serve::live::SampleExchange& exchange) {
  std::vector<std::uint64_t> out;
  for (const auto& each : exchange.take(milliseconds(0))) out.push_back(each.sample_id);
  return out;
}

/// Sends a sample with the lease that there is.
serve::live::Arrival send(serve::live::SampleExchange& exchange, std::uint64_t id,
                          std::uint64_t version) {
  static_cast<void>(exchange.lease(9, "client"));
  const auto offer = exchange.find(id);
  return exchange.accept(sample(id, version), {id, offer ? offer->lease : "", "client"});
}

using Ids = std::vector<std::uint64_t>;

TEST(SampleExchange, LeasesGroupsInTheirOrderAndEachSampleOnce) {
  serve::live::SampleExchange exchange({.group = group});
  EXPECT_TRUE(exchange.lease(1, "client").empty());
  exchange.offer(requests(4, 6), 3);
  const auto first = exchange.lease(2, "client");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].group, 2u);
  EXPECT_EQ(first[0].prompt, std::vector<std::int32_t>{2});
  EXPECT_EQ(first[0].answer, Json("answer"));
  EXPECT_EQ(ids_of(first), (Ids{4, 5, 6, 7}));
  EXPECT_EQ(ids_of(exchange.lease(2, "client")), (Ids{8, 9}));
  EXPECT_TRUE(exchange.lease(2, "client").empty());
}

TEST(SampleExchange, AcceptsEachSampleOnce) {
  serve::live::SampleExchange exchange({.group = group});
  exchange.offer(requests(0, 2), 3);
  EXPECT_EQ(send(exchange, 2, 3), serve::live::Arrival::not_offered);
  EXPECT_EQ(send(exchange, 1, 3), serve::live::Arrival::accepted);
  EXPECT_EQ(send(exchange, 1, 3), serve::live::Arrival::duplicate);
  EXPECT_EQ(taken(exchange), Ids{1});
  EXPECT_EQ(send(exchange, 1, 3), serve::live::Arrival::duplicate);
  EXPECT_TRUE(taken(exchange).empty());
}

TEST(SampleExchange, RefusesSamplesOfOlderVersions) {
  serve::live::SampleExchange exchange({.group = group});
  exchange.offer(requests(0, 2), 3);
  EXPECT_EQ(send(exchange, 0, 2), serve::live::Arrival::too_old);
  exchange.offer(requests(0, 4), 5);  // the version with which a sample was offered first counts
  EXPECT_EQ(send(exchange, 0, 3), serve::live::Arrival::accepted);
  EXPECT_EQ(send(exchange, 2, 4), serve::live::Arrival::too_old);
  EXPECT_EQ(send(exchange, 2, 5), serve::live::Arrival::accepted);
}

TEST(SampleExchange, WhatIsNotOfferedAnyMoreIsNotAccepted) {
  serve::live::SampleExchange exchange({.group = group});
  exchange.offer(requests(0, 4), 0);
  EXPECT_EQ(send(exchange, 0, 0), serve::live::Arrival::accepted);
  exchange.offer(requests(2, 4), 0);
  EXPECT_TRUE(taken(exchange).empty());
  EXPECT_EQ(ids_of(exchange.lease(9, "client")), (Ids{4, 5}));  // 2 and 3 are leased
  EXPECT_EQ(send(exchange, 1, 0), serve::live::Arrival::not_offered);
}

TEST(SampleExchange, AnIncompleteGroupIsLeasedAgain) {
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  serve::live::SampleExchange exchange({.group = group, .now = [&] { return now; }});
  exchange.offer(requests(0, 4), 0);
  const auto first = exchange.lease(1, "client");
  EXPECT_EQ(ids_of(first), (Ids{0, 1}));
  EXPECT_EQ(exchange.accept(sample(0, 0), {0, first[0].leases[0], "client"}),
            serve::live::Arrival::accepted);
  now += std::chrono::seconds(599);
  EXPECT_EQ(exchange.check({1, first[0].leases[1], "client"}), serve::live::Arrival::accepted);
  EXPECT_EQ(ids_of(exchange.lease(1, "client")), (Ids{2, 3}));
  now += std::chrono::seconds(1);
  EXPECT_EQ(exchange.check({1, first[0].leases[1], "client"}), serve::live::Arrival::not_leased);
  const auto again = exchange.lease(1, "client");
  EXPECT_EQ(ids_of(again), Ids{1});
  EXPECT_EQ(exchange.check({1, first[0].leases[1], "client"}), serve::live::Arrival::not_leased);
  EXPECT_EQ(exchange.accept(sample(1, 0), {1, again[0].leases[0], "client"}),
            serve::live::Arrival::accepted);
}

TEST(SampleExchange, WhatAClientLetExpireIsForOthersFirst) {
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  serve::live::SampleExchange exchange({.group = group, .clients = 2, .now = [&] { return now; }});
  exchange.offer(requests(0, 2), 0);
  EXPECT_EQ(ids_of(exchange.lease(9, "mallory")), (Ids{0, 1}));
  now += std::chrono::seconds(600);
  EXPECT_TRUE(exchange.lease(9, "mallory").empty());
  now += std::chrono::seconds(600);
  EXPECT_EQ(ids_of(exchange.lease(9, "mallory")), (Ids{0, 1})) << "nobody else wanted them";
  now += std::chrono::seconds(600);
  EXPECT_EQ(ids_of(exchange.lease(9, "alice")), (Ids{0, 1}));
}

TEST(SampleExchange, AClientHasItsShareAtATime) {
  serve::live::SampleExchange exchange({.group = group, .clients = 2});
  exchange.offer(requests(0, 10), 0);
  EXPECT_EQ(exchange.lease(1024, "mallory").size(), 3u);  // of 5 prompts
  EXPECT_TRUE(exchange.lease(1024, "mallory").empty());
  EXPECT_EQ(exchange.lease(1024, "alice").size(), 2u);
  serve::live::SampleExchange bounded({.group = group, .max_leases = 1});
  bounded.offer(requests(0, 4), 0);
  EXPECT_EQ(ids_of(bounded.lease(9, "alice")), (Ids{0, 1}));
  EXPECT_TRUE(bounded.lease(9, "alice").empty());
}

}  // namespace
}  // namespace troupe::launch::serve::live
