// The prefix cache: the tree of pages, and bit equality of everything that is generated with it.
#include "engine/generate/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/base/errors/check.h"
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
using Tokens = std::vector<std::int32_t>;

TEST(PagePool, AKeptPageIsIdleWithoutHolders) {
  PagePool pool(2);
  const std::int32_t page = pool.take();
  pool.keep(page);
  EXPECT_THROW(pool.keep(page), Bug);
  EXPECT_FALSE(pool.is_idle(page));
  pool.release(page);
  EXPECT_TRUE(pool.is_idle(page));
  EXPECT_EQ(pool.idle_pages(), 1);
  EXPECT_EQ(pool.free_pages(), 1);
  pool.share(page);
  EXPECT_EQ(pool.idle_pages(), 0);
  pool.release(page);
  pool.end_keeping(page);
  EXPECT_EQ(pool.idle_pages(), 0);
  EXPECT_EQ(pool.free_pages(), 2);
  EXPECT_THROW(pool.end_keeping(page), Bug);
}

TEST(PrefixCache, FindsTheLongestPrefixOfFullPages) {
  PagePool pool(8);
  PrefixCache cache(2, 8);
  const auto insert = [&](std::int32_t before, const Tokens& tokens) {
    const std::int32_t page = pool.take();
    cache.insert(before, tokens, page, pool);
    return page;
  };
  const std::int32_t a = insert(PrefixCache::no_page, {1, 2}), ab = insert(a, {3, 4}),
                     ac = insert(a, {3, 5}), b = insert(PrefixCache::no_page, {3, 4});
  EXPECT_THAT(cache.match(Tokens{1, 2, 3, 4, 5}), ElementsAre(a, ab));
  EXPECT_THAT(cache.match(Tokens{1, 2, 3, 5}), ElementsAre(a, ac));
  EXPECT_THAT(cache.match(Tokens{1, 2, 3}), ElementsAre(a));
  EXPECT_THAT(cache.match(Tokens{3, 4, 3, 4}), ElementsAre(b));
  EXPECT_THAT(cache.match(Tokens{2, 1}), IsEmpty());
  EXPECT_THROW(cache.insert(a, Tokens{3, 4}, pool.take(), pool), Bug);
}

TEST(PrefixCache, ContextsShareNoPage) {
  PagePool pool(8);
  PrefixCache cache(2, 8);
  const std::int32_t a = pool.take(), ab = pool.take(), other = pool.take();
  cache.insert(PrefixCache::no_page, Tokens{1, 2}, a, pool);
  cache.insert(a, Tokens{3, 4}, ab, pool);
  cache.insert(PrefixCache::no_page, Tokens{1, 2}, other, pool, {7});
  EXPECT_THAT(cache.match(Tokens{1, 2, 3, 4}), ElementsAre(a, ab));
  EXPECT_THAT(cache.match(Tokens{1, 2, 3, 4}, {7}), ElementsAre(other));
  EXPECT_THAT(cache.match(Tokens{1, 2, 3, 4}, {7, 0}), IsEmpty());
}

TEST(PrefixCache, EvictsTheLeastRecentlyUsedEndOfABranch) {
  PagePool pool(4);
  PrefixCache cache(1, 4);
  Tokens pages;
  const auto insert = [&](std::int32_t before, std::int32_t token) {
    pages.push_back(pool.take());
    cache.insert(before, Tokens{token}, pages.back(), pool);
    return pages.back();
  };
  const std::int32_t a = insert(PrefixCache::no_page, 1), ab = insert(a, 2), ac = insert(a, 3),
                     d = insert(PrefixCache::no_page, 4);
  for (const std::int32_t page : pages)
    if (page != d) pool.release(page);
  EXPECT_THAT(cache.match(Tokens{1, 2}), ElementsAre(a, ab));  // later than {1, 3}
  cache.evict(pool);
  EXPECT_THAT(cache.match(Tokens{1, 3}), ElementsAre(a)) << "page " << ac << " was the oldest";
  EXPECT_THAT(cache.match(Tokens{4}), ElementsAre(d)) << "in use";
  cache.evict(pool);
  EXPECT_THAT(cache.match(Tokens{1, 2}), ElementsAre(a)) << "the end goes before the beginning";
  cache.evict(pool);
  EXPECT_THROW(cache.evict(pool), Bug) << "the last page is in use";
  pool.release(d);
  EXPECT_EQ(pool.idle_pages(), 1);
  cache.clear(pool);
  EXPECT_EQ(pool.free_pages(), 4);
}

/// Prompts that grow out of a few beginnings, as conversations do.
std::vector<Request> conversations(std::mt19937& random, int count) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
  std::vector<Tokens> known(3);
  for (Tokens& each : known)
    for (int n = 5 + below(30); n > 0; --n) each.push_back(below(37));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request r;
    r.id = i;
    r.sample_id = below(3);
    r.prompt = known[below(static_cast<int>(known.size()))];
    for (int n = below(12); n > 0; --n) r.prompt.push_back(below(37));
    if (below(3) == 0) known.push_back(r.prompt);
    r.params.max_new_tokens = 1 + below(16);
    r.params.temperature = below(3) == 0 ? 0 : 0.9;
    r.params.repetition_penalty = below(2) == 0 ? 1 : 1.2;
    r.params.top_logprobs = below(3);
    r.params.seed = 5;
    requests.push_back(std::move(r));
  }
  return requests;
}

/// Runs requests that arrive one after another, some of which are cancelled. Returns the counters.
GeneratorStats run_with_cache(models::Decoder& model, GeneratorConfig config,
                              const std::vector<Request>& requests, std::mt19937& random) {
  const auto expected = test::generated_alone(model, requests, config);
  config.prefix_cache = true;
  auto generator = value_or_throw(Generator::create(model, config));
  std::size_t next = 0;
  while (next < requests.size() || !generator.idle()) {
    for (auto n = random() % 4; n > 0 && next < requests.size(); --n)
      EXPECT_TRUE(generator.submit(requests[next++]));
    if (random() % 5 == 0) generator.cancel(random() % requests.size());
    for (const Generation& done : generator.step()) {
      EXPECT_LT(done.cached_tokens, std::ssize(requests[done.id].prompt));
      if (done.finish != FinishReason::cancelled)
        test::expect_same_bits(done, expected.at(done.id));
    }
    EXPECT_LE(generator.free_pages() + generator.idle_pages(), generator.pages());
  }
  EXPECT_EQ(generator.free_pages() + generator.idle_pages(), generator.pages());
  EXPECT_EQ(generator.stats().prefix_hits > 0, generator.idle_pages() > 0);
  generator.weights_changed(1);
  EXPECT_EQ(generator.free_pages(), generator.pages()) << "new weights empty the cache";
  return generator.stats();
}

GeneratorConfig small_cache_config(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
  GeneratorConfig config;
  config.page_size = std::array{1, 3, 8}[below(3)];
  config.pages = (80 + config.page_size - 1) / config.page_size + below(200 / config.page_size);
  config.max_sequences = 1 + below(8);
  config.tokens_per_step = config.max_sequences + below(40);
  config.precision = below(3) == 0 ? ops::Precision::bf16 : ops::Precision::f32;
  return config;
}

TEST(PrefixCache, ChangesNoBitWhateverIsCachedEvictedPreemptedOrCancelled) {
  for (const auto& device : {ops::make_reference_device(), ops::make_cpu_device({.threads = 2})}) {
    const auto model = test::tiny_model(*device);
    std::int64_t hits = 0, preemptions = 0;
    for (unsigned seed = 0; seed < 8; ++seed) {
      std::mt19937 random(seed);
      const std::vector<Request> requests = conversations(random, 24);
      const GeneratorConfig config = small_cache_config(random);
      const GeneratorStats stats = run_with_cache(*model, config, requests, random);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
      hits += stats.prefix_hits;
      preemptions += stats.preemptions;
    }
    EXPECT_GT(hits, 8 * 24 * 5) << "or these runs show little";
    EXPECT_GT(preemptions, 0);
  }
}

TEST(PrefixCache, HoldsForWhatTheOtherFamiliesHave) {
  const auto device = ops::make_reference_device();
  auto families = test::family_models();
  families.push_back(test::mixture_model());
  for (const test::GridModel& family : families) {
    const auto model = test::tiny_model(*device, 1, family.spec);
    std::mt19937 random(3);
    const std::vector<Request> requests = conversations(random, 12);
    const GeneratorStats stats =
        run_with_cache(*model, {.page_size = 4, .pages = 40}, requests, random);
    ASSERT_FALSE(testing::Test::HasFailure()) << family.title;
    EXPECT_EQ(stats.prefix_hits == 0, family.spec.keys_depend_on_length()) << family.title;
  }
}

TEST(PrefixCache, OnlyTheRestOfAPromptIsComputed) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  auto generator = value_or_throw(
      Generator::create(*model, {.page_size = 8, .pages = 40, .prefix_cache = true}));
  Request request;
  request.prompt.resize(60, 7);
  request.params.max_new_tokens = 1;
  EXPECT_EQ(value_or_throw(test::generate_all(generator, {request})).at(0).cached_tokens, 0);
  EXPECT_EQ(generator.stats().rows, 60);
  EXPECT_EQ(value_or_throw(test::generate_all(generator, {request})).at(0).cached_tokens, 56);
  EXPECT_EQ(generator.stats().rows, 64);
  request.prompt.resize(56);  // the last token is computed, hence its page
  EXPECT_EQ(value_or_throw(test::generate_all(generator, {request})).at(0).cached_tokens, 48);
  EXPECT_EQ(generator.stats().rows, 72);
  EXPECT_EQ(generator.stats().prefix_queries, 176);
  EXPECT_EQ(generator.stats().prefix_hits, 104);
}

TEST(PrefixCache, SaltsSeparateRequestsOneAfterAnotherAndAtOnce) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  auto generator = value_or_throw(
      Generator::create(*model, {.page_size = 8, .pages = 80, .prefix_cache = true}));
  Request request;
  request.prompt.resize(60, 7);
  request.params.max_new_tokens = 1;
  const auto cached = [&](const std::string& salt) {
    request.cache_salt = salt;
    return value_or_throw(test::generate_all(generator, {request})).at(0).cached_tokens;
  };
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("b"), 0);
  EXPECT_EQ(cached(""), 0);
  EXPECT_EQ(cached("a"), 56);
  EXPECT_EQ(cached("ab"), 0);
  EXPECT_EQ(cached("b"), 56);
  std::vector<Request> both(4, request);
  for (std::uint64_t n = 0; n < both.size(); ++n) {
    both[n].id = n;
    both[n].cache_salt = n < 2 ? "x" : "y";
  }
  const std::int64_t rows = generator.stats().rows;
  value_or_throw(test::generate_all(generator, both));
  EXPECT_GE(generator.stats().rows - rows, 2 * 60) << "one prompt for each salt";
  EXPECT_LT(generator.stats().rows - rows, 3 * 60);
}

TEST(PrefixCache, RequestsOfOneStepShareTheirBeginning) {
  const auto device = ops::make_reference_device();
  const auto model = test::tiny_model(*device);
  auto generator = value_or_throw(
      Generator::create(*model, {.page_size = 8, .pages = 40, .prefix_cache = true}));
  std::vector<Request> requests(4);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].id = i;
    requests[i].prompt.resize(64, 7);
    requests[i].prompt.push_back(static_cast<std::int32_t>(i));
    requests[i].params.max_new_tokens = 1;
  }
  const auto expected = test::generated_alone(*model, requests, {});
  for (const Generation& found : value_or_throw(test::generate_all(generator, requests)))
    test::expect_same_bits(found, expected.at(found.id));
  EXPECT_EQ(generator.stats().rows, 64 + 4);
  EXPECT_EQ(generator.stats().steps, 1);
}

}  // namespace
}  // namespace troupe::engine::generate
