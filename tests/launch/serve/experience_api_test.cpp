// /v1/lease and /v1/experience as programs use them: who may send a sample, and which values.
#include "launch/serve/live/experience_api.h"

#include <gtest/gtest.h>

#include "engine/base/sets/id_sets.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "launch/serve/http/router.h"
#include "tests/launch/serve/posted_request.h"

namespace troupe::launch::serve::live {
namespace {

struct Answer {
  int status = 0;
  Json body;
  std::string code() const { return body.find("error")->find("code")->string(); }
  std::string param() const { return body.find("error")->find("param")->string(); }
};

constexpr std::uint64_t version = 3;

/// Two prompts of two samples each, which alice and bob make.
class ExperienceService : public testing::Test {
 protected:
  ExperienceService() { offer({0, 1, 2, 3}); }

  void offer(const std::vector<std::uint64_t>& ids) {
    std::vector<actors::protocol::SampleRequest> requests;
    for (const std::uint64_t id : ids)
      requests.push_back({{static_cast<std::int32_t>(id / 2), 5}, id, Json("answer")});
    exchange.offer(requests, version);
  }

  Answer ask(const std::string& client, const std::string& path, const Json& body) {
    serve::http::Router router;
    api.add_to(router);
    PostedRequest sent(client, body.dump());
    router.match("POST", path).route->handler(sent.request, sent.responder());
    const int status = sent.status();
    return {status, value_or_throw(parse_json(sent.body(), "the answer"))};
  }

  /// The secrets of what is leased, by sample id.
  std::map<std::uint64_t, std::string> lease(const std::string& client, std::int64_t groups = 8) {
    const Answer answer = ask(client, "/v1/lease", Json::Object{{"groups", groups}});
    std::map<std::uint64_t, std::string> out;
    for (const Json& group : answer.body.find("groups")->array()) {
      const auto& ids = group.find("sample_ids")->array();
      const auto& leases = group.find("leases")->array();
      EXPECT_EQ(ids.size(), leases.size());
      for (std::size_t i = 0; i < ids.size(); ++i)
        out[static_cast<std::uint64_t>(ids[i].integer())] = leases[i].string();
    }
    return out;
  }

  /// A sample of which the server has sampled the last two tokens.
  Json sample(std::uint64_t id, const std::string& secret) {
    const auto first = static_cast<std::int32_t>(id / 2);
    auto chain = sampled.after(std::vector<std::int32_t>{first, 5});
    sampled.add(chain = sampled.next(chain, 7), -0.5f, version);
    sampled.add(sampled.next(chain, 1), -0.25f, version);
    return value_or_throw(parse_json(
        cat(R"({"sample_id": )", id, R"(, "lease": ")", secret, R"(", "token_ids": [)", first,
            R"(, 5, 7, 1], "loss_mask": [0, 0, 1, 1], "logprobs": [null, null, -0.5, -0.25],
              "weight_versions": [null, null, 3, 3], "reward": 1})"),
        "a sample"));
  }

  Answer send(const std::string& client, const Json& body) {
    return ask(client, "/v1/experience", body);
  }

  double refused(const std::string& reason) const {
    const std::string name = cat("refused_total{reason=\"", reason, "\"} ");
    const std::string text = api.metrics();
    return std::stod(text.substr(text.find(name) + name.size()));
  }

  serve::live::SampleExchange exchange{
      {.group = 2, .lease_time = std::chrono::seconds(600), .clients = 2}};
  serve::api::SampledTokens sampled;
  std::atomic<std::uint64_t> newest = version;
  serve::live::ExperienceApi api{
      exchange, sampled, newest, {.vocabulary = 10, .length = 8, .mask_bytes = 64}};
};

TEST_F(ExperienceService, ASampleIsOfTheClientThatLeasedIt) {
  const auto alice = lease("alice"), bob = lease("bob");
  ASSERT_EQ(alice.size(), 2u) << "a client has its share of the prompts";
  ASSERT_EQ(bob.size(), 2u);
  EXPECT_TRUE(lease("alice").empty());
  const std::uint64_t id = alice.begin()->first;
  const std::string own = alice.at(id);
  for (const auto& [client, secret] :
       {std::pair("bob", own), std::pair("alice", bob.begin()->second),
        std::pair("alice", alice.rbegin()->second), std::pair("alice", std::string()),
        std::pair("alice", own.substr(1)), std::pair("alice", own + "0")}) {
    const Answer answer = send(client, sample(id, secret));
    EXPECT_EQ(answer.status, 409) << client << " " << secret;
    EXPECT_EQ(answer.code(), "not_leased");
    EXPECT_EQ(answer.param(), "lease");
  }
  EXPECT_EQ(refused("not_leased"), 6);
  EXPECT_EQ(send("alice", sample(id, own)).status, 200);
  EXPECT_EQ(send("alice", sample(id, own)).code(), "duplicate");
  EXPECT_EQ(send("alice", sample(9, own)).code(), "not_offered");
}

TEST_F(ExperienceService, TokensOfOldVersionsAreNotWanted) {
  newest = version + 1;
  exchange.offer({{{4, 5}, 8, Json()}}, newest);
  const auto leases = lease("alice");
  EXPECT_EQ(send("alice", sample(8, leases.at(8))).code(), "too_old");
  EXPECT_EQ(refused("too_old"), 1);
}

TEST_F(ExperienceService, TheLeaseIsNeeded) {
  const auto leases = lease("alice");
  Json body = sample(0, leases.at(0));
  std::erase_if(body.object(), [](const auto& member) { return member.first == "lease"; });
  const Answer answer = send("alice", body);
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.param(), "lease");
  EXPECT_EQ(refused("field"), 1);
}

TEST_F(ExperienceService, LogProbabilitiesAreThoseThatTheServerGaveOut) {
  const auto leases = lease("alice");
  const std::string secret = leases.at(0);
  const auto with = [&](const std::string& name, std::size_t at, const Json& value) {
    Json body = sample(0, secret);
    for (auto& [key, list] : body.object())
      if (key == name) list.array()[at] = value;
    return send("alice", body);
  };
  int forged = 0;
  for (const double logp : {-1e38, -90.0, -0.50001, -0.4, 0.0}) {
    const Answer answer = with("logprobs", 2, logp);
    EXPECT_EQ(answer.status, 409) << logp;
    EXPECT_EQ(answer.code(), "not_sampled_here");
    EXPECT_EQ(answer.param(), "logprobs[2]");
    EXPECT_EQ(refused("logprobs"), ++forged);
  }
  EXPECT_EQ(with("weight_versions", 3, 2).param(), "logprobs[3]");  // another version
  EXPECT_EQ(with("token_ids", 2, 8).param(), "logprobs[2]");        // another token
  EXPECT_EQ(with("loss_mask", 2, 0).status, 200);  // a token of others, and what follows is known
}

TEST_F(ExperienceService, SamplingMasksAreThoseThatTheServerGaveOut) {
  const auto set = [](std::vector<std::int32_t> ids) { return encode_id_set(ids, 10); };
  const auto leases = lease("alice");
  Json body = sample(0, leases.at(0));
  auto chain = sampled.after(std::vector<std::int32_t>{0, 5});
  sampled.add(sampled.next(chain, 7), -0.125f, version, set({2, 7}));
  for (auto& [key, list] : body.object())
    if (key == "logprobs") list.array()[2] = -0.125;
  const auto with = [&](const Json& mask) {
    body.set("sampling_masks", Json::Array{Json(), Json(), mask, Json("")});
    return send("alice", body);
  };
  const auto of = [&](std::vector<std::int32_t> ids) { return Json(encode_base64(set(ids))); };
  for (const Json& other : {of({3, 7}), of({7}), Json("")}) {
    const Answer answer = with(other);
    EXPECT_EQ(answer.status, 409) << other.dump();
    EXPECT_EQ(answer.code(), "not_sampled_here");
    EXPECT_EQ(answer.param(), "logprobs[2]");
  }
  EXPECT_EQ(with(of({3, 4})).param(), "sampling_masks[2]");
  EXPECT_EQ(with(of({2, 7})).status, 200);
}

TEST_F(ExperienceService, RewardsHaveTheBoundOfCommands) {
  const auto leases = lease("alice");
  const auto with = [&](const Json& reward) {
    Json body = sample(0, leases.at(0));
    body.set("reward", reward);
    return send("alice", body);
  };
  for (const double reward : {1.1e6, -1.1e6, 3.4e38, 1e300}) {
    EXPECT_EQ(with(reward).status, 400) << reward;
    EXPECT_EQ(with(reward).param(), "reward");
  }
  EXPECT_EQ(with(-1e6).status, 200);
}

TEST_F(ExperienceService, OnlyNamedKeysLeaseAndSeeAnswers) {
  serve::live::ExperienceApi named(exchange, sampled, newest,
                                   {.vocabulary = 10, .length = 8, .keys = {"alice"}});
  serve::http::Router router;
  named.add_to(router);
  for (const auto& [client, status] : {std::pair("alice", 200), std::pair("evaluation", 403)}) {
    PostedRequest sent(client, "{}");
    router.match("POST", "/v1/lease").route->handler(sent.request, sent.responder());
    EXPECT_EQ(sent.status(), status) << client;
  }
}

TEST(SampledTokens, KnowsTheNewestOnes) {
  serve::api::SampledTokens record(100);
  const auto chain = [&](std::int32_t token) { return record.next(0, token); };
  for (std::int32_t token = 0; token < 1000; ++token) {
    record.add(chain(token), -1, 0);
    for (std::int32_t before = std::max(0, token - 99); before <= token; ++before)
      ASSERT_TRUE(record.contains(chain(before), -1, 0)) << before << " after " << token;
  }
  EXPECT_FALSE(record.contains(chain(1), -1, 0));
  EXPECT_FALSE(record.contains(chain(999), -2, 0));
  EXPECT_FALSE(record.contains(chain(999), -1, 1));
  record.add(chain(5), -0.0f, 0);
  EXPECT_TRUE(record.contains(chain(5), 0.0f, 0)) << "zero has two signs";
  EXPECT_EQ(record.after(std::vector<std::int32_t>{1, 2}), record.next(record.next(0, 1), 2));
}

}  // namespace
}  // namespace troupe::launch::serve::live
