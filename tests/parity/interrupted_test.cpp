// Weights that arrive while a rollout generates: when they are used, and the bits of the tokens
// before and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include "actors/roles/rollout.h"
#include "actors/roles/trainer.h"
#include "actors/runtime/node.h"
#include "actors/runtime/run.h"
#include "actors/runtime/thread_scheduler.h"
#include "algorithms/catalog.h"
#include "algorithms/losses/sft_loss.h"
#include "engine/nn/logical_tensors.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/scoring.h"
#include "tests/support/random_decoder.h"
#include "transports/inproc/loopback.h"

namespace troupe::interrupted_test {
namespace {

namespace protocol = actors::protocol;
using actors::roles::Rollout;
using actors::roles::Trainer;
using engine::generate::CacheUse;
using engine::generate::FinishReason;
using engine::models::Decoder;
using Versions = std::vector<protocol::VersionRun>;

struct Interrupted : testing::Test {
  engine::models::DecoderSpec spec = test::llama_spec({.vocabulary = 37,
                                                       .width = 16,
                                                       .layers = 2,
                                                       .inner = 24,
                                                       .heads = 2,
                                                       .kv_heads = 1,
                                                       .head_size = 8},
                                                      2100);
  std::unique_ptr<engine::ops::Device> device = engine::ops::make_cpu_device({.threads = 1});

  std::unique_ptr<Decoder> decoder(bool with_gradients) {
    auto model = std::make_unique<Decoder>(*device, spec, with_gradients);
    test::randomize(model->parameters(), 7, 0.5);
    return model;
  }
  Rollout rollout(engine::generate::GeneratorConfig config, CacheUse cache) {
    auto made = value_or_throw(Rollout::create(decoder(false), decoder(false), std::move(config)));
    made.interrupt_generation({.cache = cache});
    return made;
  }
  static protocol::Generate question(std::int32_t tokens, std::size_t samples) {
    protocol::Generate message;
    message.sampling.max_new_tokens = tokens;
    message.sampling.seed = 3;
    for (std::size_t i = 0; i < samples; ++i) {
      protocol::SampleRequest& request = message.requests.emplace_back();
      request.prompt = {4, 9, 11};
      request.sample_id = 70 + i;
    }
    return message;
  }
};

struct Training : Interrupted {
  Trainer trainer{std::make_unique<engine::train::Trainer>(
                      decoder(true), engine::train::TrainerOptions{.micro_batch_tokens = 64}),
                  algorithms::losses(), nullptr};

  /// One update, published as `version`.
  protocol::Weights trained(std::uint64_t version) {
    auto batch = test::random_batch(version, 4, 12, spec.vocabulary);
    value_or_throw(
        trainer.on(protocol::TrainStep{std::move(batch), spec_of(algorithms::SftLoss()), 1e-2}));
    return trainer.on(protocol::Publish{version});
  }
  std::unique_ptr<Decoder> of(const protocol::Weights& weights) {
    auto model = decoder(false);
    engine::nn::scatter_logical(*weights.values, model->parameters(), model->parameters());
    return model;
  }
};

// Four versions sample 2,000 tokens; a forward pass of each over the whole sample gives the
// recorded bits of its tokens.
TEST_F(Training, ALongSampleHasTheBitsOfEachOfItsVersions) {
  Rollout sampler = rollout({.pages = 160}, CacheUse::recompute);
  auto steps = sampler.in_steps(question(2000, 1));
  std::vector<protocol::Weights> weights{trainer.on(protocol::Publish{0})};
  std::optional<std::vector<protocol::Completion>> done;
  for (int step = 1; !done; ++step) {
    done = steps.next();
    if (step % 500 != 0 || done || weights.size() == 4) continue;
    weights.push_back(trained(weights.size()));
    ASSERT_TRUE(sampler.on(protocol::PrepareWeights{weights.back()}));
    ASSERT_TRUE(sampler.on(protocol::CommitWeights{weights.back().version}));
  }
  const protocol::Completion& sample = done->at(0);
  EXPECT_EQ(sample.interruptions, weights.size() - 1);
  EXPECT_EQ(sample.updates, 0u) << "of the oldest version";
  std::vector<std::int32_t> ids{4, 9, 11};
  ids.insert(ids.end(), sample.ids.begin(), sample.ids.end());
  std::vector<float> mask(ids.size(), 1);
  mask[0] = 0;
  engine::data::Experience batch;
  batch.append(ids, mask);
  ASSERT_EQ(sample.versions.size(), weights.size());
  std::size_t t = 0;
  for (std::size_t version = 0; version < weights.size(); ++version) {
    ASSERT_EQ(sample.versions[version].version, version);
    const auto model = of(weights[version]);
    const auto logp = engine::train::logprobs(*model, batch, {});
    for (const std::size_t end = t + sample.versions[version].count; t < end; ++t)
      ASSERT_EQ(sample.logp[t], logp[3 + t]) << "token " << t << " of version " << version;
    if (t < sample.ids.size()) {
      EXPECT_NE(sample.logp[t], logp[3 + t]) << t;
    }
  }
  EXPECT_EQ(t, 2000u);
}

/// A rollout on a node, and messages that arrive within a step of its generation.
struct OnNode : Training {
  actors::ThreadScheduler scheduler;
  transports::Loopback network;
  actors::Node node{"main", scheduler, network};
  using Ref = actors::ActorRef<protocol::Generate, protocol::PrepareWeights,
                               protocol::CommitWeights, protocol::CancelSamples>;
  std::function<void(const engine::generate::TokenEvent&)> at_token;
  std::optional<Ref> sampler;
  std::vector<std::shared_ptr<void>> replies;

  void spawn(CacheUse cache) {
    sampler = node.spawn(
        "rollout",
        rollout({.pages = 40, .on_token = [this](const auto& token) { at_token(token); }}, cache));
  }
  /// Returns when the node has received the message.
  template <class M>
  void send(M message) {
    std::promise<void> received;
    node.control().post([&] {
      replies.push_back(
          std::make_shared<actors::Reply<typename M::Reply>>(sampler->ask(std::move(message))));
      node.control().post([&] { received.set_value(); });
    });
    received.get_future().wait();
  }
  std::vector<protocol::Completion> generate(protocol::Generate message) {
    const auto asked =
        [](Ref to, protocol::Generate what) -> actors::Task<std::vector<protocol::Completion>> {
      auto reply = to.ask(std::move(what));
      co_return co_await reply.get();
    };
    auto drawn = actors::run(node, asked(*sampler, std::move(message)));
    node.stop();
    return drawn;
  }
};

TEST_F(OnNode, WeightsAreCommittedBetweenTwoTokens) {
  spawn(CacheUse::recompute);
  const auto weights = trained(1);
  at_token = [&](const auto& token) {
    if (token.id == 0 && token.index == 4) send(protocol::PrepareWeights{weights});
    if (token.id == 0 && token.index == 5) send(protocol::CommitWeights{1});
  };
  const auto drawn = generate(question(40, 2));
  EXPECT_EQ(drawn[0].versions, (Versions{{0, 6}, {1, 34}})) << "from the next token on";
  EXPECT_EQ(drawn[0].interruptions, 1u);
  EXPECT_EQ(drawn[1].versions.size(), 2u);
}

// Publishes versions one after the other while a slow model generates. TROUPE_GENERATE_SECONDS: how
// long the Generate takes; tests/long.sh asks for 30.
TEST_F(OnNode, ACommitIsAcknowledgedWithinTwoSteps) {
  constexpr int tokens = 60;
  const char* wanted = std::getenv("TROUPE_GENERATE_SECONDS");
  const std::chrono::duration<double> token_time((wanted ? std::atof(wanted) : 1.0) / tokens);
  spawn(CacheUse::recompute);
  std::atomic<int> steps = 0;
  at_token = [&](const auto&) {
    std::this_thread::sleep_for(token_time);
    ++steps;
  };
  std::vector<int> prepared, committed;  // steps until the reply
  const auto publish = [&](Ref to, protocol::Weights weights) -> actors::Task<void> {
    for (weights.version = 1; steps < tokens; ++weights.version) {
      const int before_prepare = steps;
      protocol::PrepareWeights prepare{weights};
      auto preparing = to.ask(std::move(prepare));
      co_await preparing.get();
      const int before_commit = steps;
      prepared.push_back(before_commit - before_prepare);
      protocol::CommitWeights commit{weights.version};
      auto committing = to.ask(std::move(commit));
      co_await committing.get();
      committed.push_back(steps - before_commit);
    }
  };
  const auto generate_and_publish = [&](Ref to, protocol::Weights weights) -> actors::Task<void> {
    auto reply = to.ask(question(tokens, 1));
    co_await publish(to, std::move(weights));
    const auto drawn = co_await reply.get();
    EXPECT_EQ(drawn[0].ids.size(), static_cast<std::size_t>(tokens));
    EXPECT_GT(drawn[0].versions.size(), 10u);
  };
  actors::run(node, generate_and_publish(*sampler, trained(1)));
  node.stop();
  EXPECT_GT(committed.size(), 10u);
  EXPECT_LE(std::ranges::max(prepared), 2);
  EXPECT_LE(std::ranges::max(committed), 2);
  RecordProperty("commits", static_cast<int>(committed.size()));
}

TEST_F(OnNode, ACancelledSampleReturnsItsTokens) {
  spawn(CacheUse::keep);
  at_token = [&](const auto& token) {
    if (token.id == 1 && token.index == 7) send(protocol::CancelSamples{{71}});
  };
  const auto drawn = generate(question(40, 3));
  EXPECT_EQ(drawn[0].finish_reason, FinishReason::length);
  EXPECT_EQ(drawn[0].ids.size(), 40u);
  EXPECT_EQ(drawn[1].finish_reason, FinishReason::cancelled);
  EXPECT_EQ(drawn[1].sample_id, 71u);
  EXPECT_EQ(drawn[1].ids.size(), 8u);
  EXPECT_EQ(drawn[1].logp.size(), 8u);
  EXPECT_EQ(drawn[1].versions, (Versions{{0, 8}}));
  EXPECT_EQ(drawn[2].ids.size(), 40u);
}

TEST_F(OnNode, AllSamplesAreCancelledByAMessageWithoutIds) {
  spawn(CacheUse::keep);
  at_token = [&](const auto& token) {
    if (token.id == 2 && token.index == 3) send(protocol::CancelSamples{});
  };
  // A sample whose prompt was processed in an earlier step is a token ahead.
  for (const auto& each : generate(question(40, 3))) {
    EXPECT_EQ(each.finish_reason, FinishReason::cancelled);
    EXPECT_GE(each.ids.size(), 4u);
    EXPECT_LE(each.ids.size(), 5u);
  }
}

}  // namespace
}  // namespace troupe::interrupted_test
