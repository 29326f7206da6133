// Scores of the tokens of prompts, computed beside sequences that are generated.
#include "engine/generate/prompt_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/scoring.h"
#include "tests/engine/generate/same_generation.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

const std::vector<std::int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

Request scoring(std::uint64_t id, std::vector<std::int32_t> prompt, int alternatives) {
  Request out;
  out.id = id;
  out.prompt = std::move(prompt);
  out.params.max_new_tokens = 1;
  out.prompt_alternatives = alternatives;
  out.generates = false;
  return out;
}

/// The scores of a prompt without anything beside it.
PromptScores scores_of(models::Decoder& model, const std::vector<std::int32_t>& prompt,
                       int alternatives, GeneratorConfig config = {}) {
  PromptScores out;
  config.on_prompt = [&](std::uint64_t id, const PromptScores& scores) {
    EXPECT_EQ(id, 7U);
    out = scores;
  };
  auto generator = value_or_throw(Generator::create(model, std::move(config)));
  const auto done =
      value_or_throw(test::generate_all(generator, {scoring(7, prompt, alternatives)}));
  EXPECT_TRUE(done.at(0).ids.empty());
  EXPECT_EQ(done.at(0).finish, FinishReason::length);
  EXPECT_EQ(generator.free_pages(), generator.pages());
  return out;
}

TEST(PromptScores, HaveTheBitsOfTheTrainersLogProbabilities) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  data::Experience batch;
  batch.append(tokens, std::vector<float>(tokens.size(), 1.0F));
  auto expected = train::logprobs(*model, batch, {.every_token = true});
  expected[0] = 0;
  for (const std::int32_t rows : {1, 3, 5, 16, 100}) {
    const PromptScores scores =
        scores_of(*model, tokens, 0,
                  {.page_size = 4, .pages = 10, .max_sequences = 1, .tokens_per_step = rows});
    EXPECT_EQ(scores.logp, expected) << rows;
    EXPECT_TRUE(scores.top.empty());
  }
}

TEST(PromptScores, ABoundOnTheLogitsOfAStepChangesNoBit) {
  const auto device = ops::make_cpu_device({.threads = 2});
  const auto model = test::tiny_model(*device);
  const std::int64_t vocabulary = model->spec().vocabulary;
  const PromptScores expected = scores_of(*model, tokens, 5);
  EXPECT_EQ(expected.logp, test::trainer_logp(*model, tokens, 1.0F));
  for (const std::int64_t rows : {1, 2, 4, 15}) {
    std::int64_t steps = 0;
    GeneratorConfig config{.scored_logits = rows * vocabulary};
    PromptScores scores;
    config.on_prompt = [&](std::uint64_t, const PromptScores& all) { scores = all; };
    auto generator = value_or_throw(Generator::create(*model, config));
    value_or_throw(generator.submit(scoring(1, tokens, 5)));
    for (; scores.logp.empty(); ++steps) generator.step();
    EXPECT_EQ(steps, (15 + rows - 1) / rows) << "of the 15 rows that are scored";
    EXPECT_EQ(scores.logp, expected.logp) << rows;
    ASSERT_EQ(scores.top.size(), expected.top.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (std::size_t k = 0; k < expected.top[t].size(); ++k) {
        EXPECT_EQ(scores.top[t].at(k).id, expected.top[t][k].id);
        EXPECT_EQ(scores.top[t].at(k).logp, expected.top[t][k].logp);
      }
    }
  }
}

TEST(PromptScores, AlternativesContainTheTokenWithItsLogProbability) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  const auto all = static_cast<int>(model->spec().vocabulary);
  const PromptScores scores = scores_of(*model, tokens, all);
  EXPECT_TRUE(scores.top[0].empty());
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    const auto& top = scores.top[t];
    ASSERT_EQ(std::ssize(top), all);
    EXPECT_TRUE(std::ranges::is_sorted(
        top, [](const Alternative& a, const Alternative& b) { return a.logp > b.logp; }));
    const auto own = std::ranges::find(top, tokens[t], &Alternative::id);
    ASSERT_NE(own, top.end());
    EXPECT_EQ(own->logp, scores.logp[t]) << t;
    EXPECT_EQ(scores.rank[t], own - top.begin() + 1) << t;
  }
}

/// The scores of prompts by their ids.
std::map<std::uint64_t, PromptScores> scored_together(models::Decoder& model,
                                                      const std::vector<Request>& requests,
                                                      GeneratorConfig config,
                                                      GeneratorStats& stats) {
  std::map<std::uint64_t, PromptScores> out;
  config.on_prompt = [&](std::uint64_t id, const PromptScores& scores) { out[id] = scores; };
  auto generator = value_or_throw(Generator::create(model, std::move(config)));
  value_or_throw(test::generate_all(generator, requests));
  stats = generator.stats();
  return out;
}

TEST(PromptScores, FromATokenOnShareWhatIsBeforeItAndKeepTheirBits) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  constexpr std::int32_t context = 13;
  std::vector<Request> requests;
  for (std::int32_t ending = 0; ending < 4; ++ending) {
    std::vector<std::int32_t> prompt(tokens.begin(), tokens.begin() + context);
    for (std::int32_t n = 0; n <= ending; ++n) prompt.push_back(1 + ending);
    requests.push_back(scoring(static_cast<std::uint64_t>(ending), prompt, 1));
    requests.back().scored_from = context;
  }
  GeneratorConfig config{.page_size = 4, .pages = 40, .max_sequences = 4, .prefix_cache = true};
  for (const std::int64_t rows : {1, 2, 1000}) {
    config.scored_logits = rows * model->spec().vocabulary;
    GeneratorStats stats;
    auto found = scored_together(*model, requests, config, stats);
    for (const Request& request : requests) {
      const PromptScores whole = scores_of(*model, request.prompt, 1);
      const PromptScores& part = found[request.id];
      for (std::size_t t = 0; t < request.prompt.size(); ++t) {
        EXPECT_EQ(part.logp[t], t < context ? 0 : whole.logp[t]) << rows << " token " << t;
        EXPECT_EQ(part.rank[t], t < context ? 0 : whole.rank[t]) << rows << " token " << t;
      }
    }
    EXPECT_EQ(stats.prefix_hits, 3 * 12) << "three full pages of the context";
  }
}

TEST(PromptScores, OfOneTokenAreEmpty) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  EXPECT_THAT(scores_of(*model, {7}, 2).logp, testing::ElementsAre(0.0F));
}

TEST(PromptScores, OfALongPromptStallNoRunningSequence) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  bool scored = false;
  int tokens_seen = 0, steps = 0;
  GeneratorConfig config{.page_size = 4, .pages = 60, .max_sequences = 2, .tokens_per_step = 8};
  config.on_prompt = [&](std::uint64_t, const PromptScores&) { scored = true; };
  config.on_token = [&](const TokenEvent&) { ++tokens_seen; };
  auto generator = value_or_throw(Generator::create(*model, config));
  Request running = scoring(1, {3, 1, 4}, -1);
  running.generates = true;
  running.params.max_new_tokens = 50;
  value_or_throw(generator.submit(running));
  generator.step();
  value_or_throw(generator.submit(scoring(2, std::vector<std::int32_t>(70, 5), 1)));
  for (; !scored; ++steps) generator.step();
  EXPECT_EQ(steps, 10) << "seven rows of the prompt in each";
  EXPECT_EQ(tokens_seen, 1 + steps);
  generator.discard_all();
}

TEST(PromptScores, ChangeNoBitWhateverIsComputedBesideThem) {
  const auto device = ops::make_cpu_device({.threads = 2});
  const auto model = test::tiny_model(*device);
  for (unsigned seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
    std::vector<Request> requests;
    for (std::uint64_t id = 0; id < 20; ++id) {
      Request each = scoring(id, tokens, below(3) - 1);
      each.prompt.resize(1 + below(16));
      for (int n = below(30); n > 0; --n) each.prompt.push_back(below(37));
      each.generates = !each.scores_prompt() || below(2) == 0;
      each.params.max_new_tokens = each.generates ? 1 + below(12) : 1;
      requests.push_back(std::move(each));
    }
    std::map<std::uint64_t, PromptScores> found;
    GeneratorConfig config{.page_size = 4,
                           .pages = 18 + below(20),
                           .max_sequences = 1 + below(6),
                           .prefix_cache = true};
    config.tokens_per_step = config.max_sequences + below(12);
    config.scored_logits = model->spec().vocabulary * (1 + below(6));
    config.on_prompt = [&](std::uint64_t id, const PromptScores& scores) {
      EXPECT_TRUE(found.emplace(id, scores).second) << "once per request";
    };
    auto generator = value_or_throw(Generator::create(*model, config));
    const auto done = value_or_throw(test::generate_all(generator, requests));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Request plain = requests[i];
      plain.prompt_alternatives = -1;
      if (plain.generates)
        test::expect_same_bits(done[i], test::generated_alone(*model, {plain}, config).at(i));
      if (!requests[i].scores_prompt()) continue;
      EXPECT_EQ(found.at(i).logp, test::trainer_logp(*model, plain.prompt, 1.0F)) << seed << i;
    }
    EXPECT_EQ(generator.free_pages() + generator.idle_pages(), generator.pages());
  }
}

}  // namespace
}  // namespace troupe::engine::generate
