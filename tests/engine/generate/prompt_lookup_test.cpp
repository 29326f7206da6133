// Prompt lookup and draft models: the drafts, and bit equality of everything that is generated with
// them.
#include "engine/generate/prompt_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/constraints/compile.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/same_generation.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::generate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PromptLookup, CopiesWhatFollowedTheLastTokensBefore) {
  const auto draft = [](std::vector<std::int32_t> tokens, std::size_t count) {
    return look_up_draft(tokens, count);
  };
  EXPECT_THAT(draft({1, 2, 3, 4, 5, 9, 1, 2, 3}, 3), ElementsAre(4, 5, 9));
  EXPECT_THAT(draft({1, 2, 3, 4, 2, 3, 5, 2, 3}, 1), ElementsAre(5)) << "the latest one";
  EXPECT_THAT(draft({1, 2, 3, 4, 2, 3, 5, 1, 2, 3}, 1), ElementsAre(4)) << "three tokens first";
  EXPECT_THAT(draft({1, 2, 1, 2}, 5), ElementsAre(1, 2, 1, 2, 1)) << "a period continues";
  EXPECT_THAT(draft({7, 7, 7}, 2), ElementsAre(7, 7));
  EXPECT_THAT(draft({1, 2, 3, 4, 3}, 2), IsEmpty()) << "one token is not enough";
  EXPECT_THAT(draft({1, 2, 1, 2}, 0), IsEmpty());
  EXPECT_THAT(draft({1, 1}, 2), IsEmpty());
  EXPECT_THAT(draft({1}, 2), IsEmpty());
}

constexpr std::int32_t eos_token = 36;

std::string letters_of(std::span<const std::int32_t> ids) {
  std::string out;
  for (const std::int32_t id : ids)
    if (id != eos_token) out += static_cast<char>(id < 26 ? 'a' + id : '0' + id - 26);
  return out;
}

std::shared_ptr<constraints::Constraint> matching(const char* pattern) {
  std::vector<std::string> tokens;
  for (std::int32_t id = 0; id < eos_token; ++id) tokens.push_back(letters_of({&id, 1}));
  tokens.emplace_back();
  return std::make_shared<constraints::Constraint>(
      value_or_throw(constraints::compile_regex(pattern)),
      std::make_shared<const constraints::TokenTable>(std::move(tokens)));
}

/// Only the tokens below `count` are sampled: greedy outputs become periodic soon.
void use_few_tokens(SamplingParams& params, std::int32_t count) {
  for (std::int32_t id = count; id < 37; ++id) params.token_rules.suppress_tokens.push_back(id);
}

/// Repetitive prompts with settings of all kinds.
std::vector<Request> repetitive_requests(std::mt19937& random, int count) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request r;
    r.id = i;
    r.sample_id = below(4);
    std::vector<std::int32_t> phrase;
    for (int n = 1 + below(6); n > 0; --n) phrase.push_back(below(37));
    for (int n = 1 + below(5); n > 0; --n)
      r.prompt.insert(r.prompt.end(), phrase.begin(), phrase.end());
    SamplingParams& p = r.params;
    p.max_new_tokens = 1 + below(50);
    p.temperature = std::array{0.0, 0.3, 1.0}[below(3)];
    p.top_k = below(3) * 3;
    p.repetition_penalty = below(3) == 0 ? 1.1 : 1;
    p.frequency_penalty = below(4) == 0 ? 0.2 : 0;
    p.no_repeat_ngram = i % 2 == 1 && below(4) == 0 ? 3 : 0;
    p.ignore_eos = below(2) == 0;
    p.min_new_tokens = below(2) == 0 ? p.max_new_tokens / 2 : 0;
    p.top_logprobs = below(3);
    p.seed = 5;
    if (i % 2 == 0) use_few_tokens(p, 2 + below(4));
    if (below(3) == 0) p.stop_strings = {letters_of(std::vector{below(36), below(36)}), "a", "7"};
    if (below(4) == 0) p.stop_tokens = {below(36)};
    if (i % 2 == 1 && below(2) == 0)
      r.constraint = matching(std::array{"[a-z]*", "(abc|[0-9]{3})+"}[below(2)]);
    requests.push_back(std::move(r));
  }
  return requests;
}

/// Runs requests that arrive one after another, some of which are cancelled, with the drafts of
/// `config`.
GeneratorStats run_with_drafts(models::Decoder& model, GeneratorConfig config, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<Request> requests = repetitive_requests(random, 16);
  config.eos_ids = {eos_token};
  config.decode = letters_of;
  const auto expected = test::generated_alone(model, requests, config);
  std::map<std::uint64_t, std::size_t> seen;
  config.on_token = [&](const TokenEvent& event) {
    const Generation& alone = expected.at(event.id);
    EXPECT_EQ(event.index, seen[event.id]++);
    EXPECT_EQ(event.token, alone.ids.at(event.index));
    EXPECT_EQ(event.logp, alone.logp.at(event.index));
  };
  auto generator = value_or_throw(Generator::create(model, config));
  std::size_t next = 0;
  while (next < requests.size() || !generator.idle()) {
    for (auto n = random() % 4; n > 0 && next < requests.size(); --n)
      EXPECT_TRUE(generator.submit(requests[next++]));
    if (random() % 10 == 0) generator.cancel(random() % requests.size());
    for (const Generation& done : generator.step())
      if (done.finish != FinishReason::cancelled)
        test::expect_same_bits(done, expected.at(done.id));
  }
  EXPECT_EQ(generator.free_pages() + generator.idle_pages(), generator.pages());
  return generator.stats();
}

GeneratorConfig drafting_config(unsigned seed) {
  GeneratorConfig config;
  config.page_size = std::array{1, 4, 8}[seed % 3];
  config.pages = (96 + 20 * static_cast<std::int32_t>(seed % 4)) / config.page_size;
  config.max_sequences = std::array{1, 3, 8}[seed % 3];
  config.tokens_per_step = config.max_sequences + 16;
  config.precision = seed % 3 == 2 ? ops::Precision::bf16 : ops::Precision::f32;
  if (seed % 4 == 3) config.weights = models::WeightFormat::int8;
  config.prefix_cache = seed % 2 == 0;
  return config;
}

GeneratorConfig lookup_config(unsigned seed) {
  GeneratorConfig config = drafting_config(seed);
  config.lookup = 1 + static_cast<std::int32_t>(seed % 7);
  return config;
}

GeneratorConfig draft_model_config(unsigned seed, models::Decoder& draft) {
  GeneratorConfig config = drafting_config(seed);
  config.draft = &draft;
  config.draft_tokens = 1 + static_cast<std::int32_t>(seed % 5);
  return config;
}

/// Runs of several settings, which config_of(seed) gives; right and wrong drafts both occur.
template <class ConfigOf>
void expect_no_bit_changes(models::Decoder& model, const ConfigOf& config_of) {
  GeneratorStats sum;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const GeneratorStats stats = run_with_drafts(model, config_of(seed), seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    sum.drafted += stats.drafted;
    sum.accepted += stats.accepted;
    sum.preemptions += stats.preemptions;
  }
  EXPECT_GT(sum.accepted, 300) << "or these runs show little";
  EXPECT_GT(sum.drafted - sum.accepted, 300);
  EXPECT_GT(sum.preemptions, 0);
}

TEST(PromptLookup, ChangesNoBitWhateverTheSettings) {
  for (const auto& device : {ops::make_reference_device(), ops::make_cpu_device({.threads = 2})}) {
    const auto model = test::tiny_model(*device);
    expect_no_bit_changes(*model, lookup_config);
  }
}

TEST(PromptLookup, HoldsForWhatTheOtherFamiliesHave) {
  const auto device = ops::make_reference_device();
  auto families = test::family_models();
  families.push_back(test::mixture_model());
  for (const test::GridModel& family : families) {
    const auto model = test::tiny_model(*device, 1, family.spec);
    const GeneratorStats stats = run_with_drafts(*model, lookup_config(5), 5);
    ASSERT_FALSE(testing::Test::HasFailure()) << family.title;
    EXPECT_EQ(stats.drafted == 0, family.spec.keys_depend_on_length()) << family.title;
  }
}

TEST(PromptLookup, RepetitionNeedsFewSteps) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  Request request;
  request.prompt = {3, 1, 4};
  request.params.greedy = true;
  request.params.max_new_tokens = 80;
  use_few_tokens(request.params, 1);
  std::int64_t steps[2] = {0, 0};
  for (const int lookup : {0, 8}) {
    auto generator = value_or_throw(Generator::create(*model, {.lookup = lookup}));
    value_or_throw(test::generate_all(generator, {request}));
    EXPECT_EQ(generator.stats().sampled, 80);
    EXPECT_EQ(generator.stats().steps + generator.stats().accepted, 80);
    steps[lookup > 0] = generator.stats().steps;
  }
  EXPECT_LT(steps[1], steps[0] / 3);
}

TEST(PromptLookup, ACallbackMayCancelInTheMiddleOfADraft) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  Generator* running = nullptr;
  GeneratorConfig config{.lookup = 8};
  config.on_token = [&](const TokenEvent& event) {
    if (event.index == 70) running->cancel(event.id);
  };
  auto generator = value_or_throw(Generator::create(*model, config));
  running = &generator;
  Request request;
  request.prompt = {3, 1, 4};
  request.params.greedy = true;
  request.params.max_new_tokens = 80;
  use_few_tokens(request.params, 1);
  const Generation done = value_or_throw(test::generate_all(generator, {request})).at(0);
  EXPECT_EQ(done.finish, FinishReason::cancelled);
  EXPECT_EQ(done.ids.size(), 71U);
  EXPECT_EQ(generator.free_pages(), generator.pages());
}

TEST(DraftModel, ChangesNoBitWhateverTheSettings) {
  for (const auto& device : {ops::make_reference_device(), ops::make_cpu_device({.threads = 2})}) {
    const auto model = test::tiny_model(*device);
    models::DecoderSpec small = test::tiny_spec();
    small.layers = 1;
    const auto draft = test::tiny_model(*device, 1, small);
    expect_no_bit_changes(*model, [&](unsigned seed) { return draft_model_config(seed, *draft); });
  }
}

TEST(DraftModel, OfTheSameWeightsIsAlwaysRight) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device), same = test::tiny_model(*device);
  GeneratorConfig config{.pages = 30, .max_sequences = 4, .draft = same.get(), .draft_tokens = 4};
  auto generator = value_or_throw(Generator::create(*model, config));
  std::vector<Request> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].id = requests[i].sample_id = i;
    requests[i].prompt = {3, 1, static_cast<std::int32_t>(i / 2)};
    requests[i].params.max_new_tokens = 41;
    requests[i].params.temperature = 1;
  }
  const auto expected = test::generated_alone(*model, requests, {});
  for (const Generation& found : value_or_throw(test::generate_all(generator, requests)))
    test::expect_same_bits(found, expected.at(found.id));
  EXPECT_EQ(generator.stats().drafted, generator.stats().accepted);
  EXPECT_EQ(generator.stats().accepted, 6 * 40 * 4 / 5);
}

TEST(DraftModel, HoldsForWhatTheOtherFamiliesHave) {
  const auto device = ops::make_reference_device();
  for (const test::GridModel& family : test::family_models()) {
    const auto model = test::tiny_model(*device, 1, family.spec);
    models::DecoderSpec small = test::tiny_spec();
    small.vocabulary = family.spec.vocabulary;
    small.max_positions = family.spec.max_positions;
    const auto draft = test::tiny_model(*device, 1, small);
    const GeneratorStats stats = run_with_drafts(*model, draft_model_config(5, *draft), 5);
    ASSERT_FALSE(testing::Test::HasFailure()) << family.title;
    EXPECT_EQ(stats.drafted == 0, family.spec.keys_depend_on_length()) << family.title;
  }
}

TEST(DraftModel, MustSuitTheModel) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  models::DecoderSpec other = test::tiny_spec();
  other.vocabulary = 40;
  const auto wide = test::tiny_model(*device, 1, other);
  other = test::tiny_spec();
  other.max_positions = 50;
  const auto brief = test::tiny_model(*device, 1, other);
  const auto refusal = [&](GeneratorConfig config) {
    const auto found = Generator::create(*model, std::move(config));
    return found ? std::string() : found.error().what;
  };
  EXPECT_THAT(refusal({.draft = wide.get()}), testing::HasSubstr("vocabulary has 40 tokens"));
  EXPECT_THAT(refusal({.draft = brief.get()}), testing::HasSubstr("limited to 50 tokens"));
  EXPECT_THAT(refusal({.draft = model.get(), .draft_tokens = 0}),
              testing::HasSubstr("draft_tokens is 0"));
  EXPECT_THAT(refusal({.lookup = 2, .draft = model.get()}),
              testing::HasSubstr("exclude each other"));
}

TEST(PromptLookup, TheLengthOfADraftIsLimited) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  EXPECT_EQ(Generator::create(*model, {.lookup = -1}).error().code, Errc::usage);
  EXPECT_EQ(Generator::create(*model, {.lookup = 257}).error().code, Errc::usage);
}

}  // namespace
}  // namespace troupe::engine::generate
