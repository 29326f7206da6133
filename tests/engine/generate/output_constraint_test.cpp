#include "engine/generate/output_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "engine/constraints/compile.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"

namespace troupe::engine::generate {
namespace {

constexpr std::int32_t end_token = 36;

/// Tokens 0 to 25 are letters, 26 to 35 digits; the end token has no bytes.
std::shared_ptr<const constraints::TokenTable> letters_and_digits() {
  std::vector<std::string> tokens;
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  for (char digit = '0'; digit <= '9'; ++digit) tokens.emplace_back(1, digit);
  tokens.emplace_back();
  return std::make_shared<const constraints::TokenTable>(std::move(tokens));
}

class ConstrainedGeneratorTest : public testing::Test {
 protected:
  Request request(std::uint64_t id, const char* pattern, std::int32_t tokens) {
    Request out;
    out.id = id;
    out.prompt = {3, 1, static_cast<std::int32_t>(id % 7)};
    out.params.seed = id;
    out.params.max_new_tokens = tokens;
    if (pattern == nullptr) return out;
    auto grammar = value_or_throw(constraints::compile_regex(pattern));
    out.constraint = std::make_shared<constraints::Constraint>(std::move(grammar), table_);
    return out;
  }
  std::vector<Generation> generate(std::vector<Request> requests) {
    GeneratorConfig config;
    config.eos_ids = {end_token};
    auto generator = value_or_throw(Generator::create(*model_, config));
    return value_or_throw(test::generate_all(generator, std::move(requests)));
  }
  std::string text(const Generation& done) const {
    std::string out;
    for (const std::int32_t id : done.ids) out += table_->bytes_of(id);
    return out;
  }

  std::shared_ptr<const constraints::TokenTable> table_ = letters_and_digits();
  std::unique_ptr<ops::Device> device_ = ops::make_reference_device();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
};

TEST(OutputConstraint, EndTokensFollowWholeTextsOnly) {
  auto grammar = value_or_throw(constraints::compile_regex("ab?"));
  OutputConstraint output(
      std::make_shared<constraints::Constraint>(std::move(grammar), letters_and_digits()), false);
  const std::vector<std::int32_t> ends = {end_token};
  const auto has = [&](std::int32_t id) { return output.allowed(ends)->has(id); };
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(has(end_token));
  output.append(0, ends);
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(end_token));
  EXPECT_FALSE(output.must_end());
  output.append(1, ends);
  EXPECT_FALSE(has(0));
  EXPECT_TRUE(has(end_token));
  EXPECT_TRUE(output.must_end());
}

TEST_F(ConstrainedGeneratorTest, OutputsMatchAndOthersAreAsAlone) {
  const char* patterns[] = {"[a-c]{3}[0-9]+", "(yes|no|maybe[0-9])", "x*", "[0-9]{5}"};
  std::vector<Request> requests;
  for (std::uint64_t id = 0; id < 80; ++id)
    requests.push_back(request(id, id % 5 == 4 ? nullptr : patterns[id % 5], 60));
  const auto results = generate(requests);
  for (std::uint64_t id = 0; id < 80; ++id) {
    const Generation& done = results[id];
    if (id % 5 == 4) {
      EXPECT_EQ(done.ids, generate({request(id, nullptr, 60)}).at(0).ids);
    } else if (done.finish == FinishReason::stop) {
      EXPECT_TRUE(std::regex_match(text(done), std::regex(patterns[id % 5]))) << text(done);
    } else {
      EXPECT_EQ(done.ids.size(), 60U);
    }
  }
}

TEST_F(ConstrainedGeneratorTest, EndsWhereNothingMayFollow) {
  Request wanted = request(1, "[0-9]{5}", 60);
  wanted.params.ignore_eos = true;
  const Generation done = generate({wanted}).at(0);
  EXPECT_EQ(done.ids.size(), 5U);
  EXPECT_EQ(done.finish, FinishReason::stop);
}

TEST_F(ConstrainedGeneratorTest, ATruncatedOutputIsTheBeginningOfOne) {
  const Generation done = generate({request(1, "[a-z]{20}", 7)}).at(0);
  EXPECT_EQ(done.finish, FinishReason::length);
  EXPECT_TRUE(std::regex_match(text(done), std::regex("[a-z]{7}")));
}

TEST_F(ConstrainedGeneratorTest, GreedyOutputsAreTheMostLikelyOfTheAllowed) {
  Request free = request(2, nullptr, 8), same = request(2, "[a-z0-9]*", 8);
  free.params.greedy = same.params.greedy = true;
  free.params.token_rules.suppress_tokens = {end_token};
  same.params.token_rules.suppress_tokens = {end_token};
  const Generation expected = generate({free}).at(0), found = generate({same}).at(0);
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.logp, expected.logp);
}

TEST_F(ConstrainedGeneratorTest, AllowedTokensHaveTheBitsOfSuppressingTheOthers) {
  const auto vocabulary = static_cast<std::int32_t>(model_->spec().vocabulary);
  for (const char* pattern : {static_cast<const char*>(nullptr), "[a-z0-9]*"}) {
    Request suppressing = request(3, pattern, 20), allowing = request(3, pattern, 20);
    auto mask = std::make_shared<constraints::TokenMask>(static_cast<std::size_t>(vocabulary));
    for (std::int32_t id = 0; id < vocabulary; ++id) {
      if (id % 3 == 0 || id == end_token)
        mask->set(id);
      else
        suppressing.params.token_rules.suppress_tokens.push_back(id);
    }
    allowing.allowed = mask;
    const Generation expected = generate({suppressing}).at(0), found = generate({allowing}).at(0);
    EXPECT_EQ(found.ids, expected.ids);
    EXPECT_EQ(found.logp, expected.logp);
  }
}

TEST_F(ConstrainedGeneratorTest, AVocabularyWithoutTheCharactersIsAnError) {
  try {
    generate({request(1, "a[A-Z]", 7)});
    FAIL() << "expected an error";
  } catch (const RequestFailure& failure) {
    EXPECT_EQ(failure.error().code, Errc::bad_input);
    EXPECT_THAT(failure.what(), testing::HasSubstr("no token of the vocabulary continues"));
  }
}

TEST_F(ConstrainedGeneratorTest, AFailureOfOneRequestDropsNothingOfTheOthers) {
  for (const bool prefix_cache : {false, true}) {
    auto generator = value_or_throw(Generator::create(
        *model_,
        {.page_size = 4, .pages = 60, .prefix_cache = prefix_cache, .eos_ids = {end_token}}));
    std::map<std::uint64_t, Generation> done;
    for (std::uint64_t id = 0; id < 3; ++id) {
      Request each = request(id, nullptr, 20);
      each.prompt = {3, 1, static_cast<std::int32_t>(id), 5, 2, 6, 5};
      value_or_throw(generator.submit(each));
      done[id] = generate({each}).at(0);
    }
    value_or_throw(generator.submit(request(9, "a[b-d]{6}[A-Z]", 20)));
    int failures = 0;
    while (!generator.idle()) {
      try {
        for (const Generation& each : generator.step()) {
          if (each.id == 9) continue;
          EXPECT_EQ(each.ids, done.at(each.id).ids);
          EXPECT_EQ(each.logp, done.at(each.id).logp);
        }
      } catch (const RequestFailure& failure) {
        EXPECT_EQ(failure.id(), 9U);
        generator.cancel(failure.id());
        ++failures;
      }
    }
    EXPECT_EQ(failures, 1);
    // A step is repeated for three sequences; a page that the prefix cache keeps, too.
    EXPECT_LE(generator.stats().rows, 3 * (7 + 19) + 3 + 6 + 1 + 3 * (prefix_cache ? 4 : 1));
  }
}

TEST_F(ConstrainedGeneratorTest, ASequenceWaitsForItsMaskWhileOthersContinue) {
  const char* patterns[] = {"([a-z]*a[a-z0-9]{9}|[0-9]{3,9}b){2,5}", "([a-z]{0,9}[0-9]?){0,30}"};
  std::vector<Generation> expected;
  for (std::uint64_t id = 0; id < 4; ++id)
    expected.push_back(generate({request(id, id < 2 ? patterns[id] : nullptr, 25)}).at(0));
  for (const std::int32_t lookup : {0, 3}) {
    GeneratorConfig config;
    config.eos_ids = {end_token};
    config.lookup = lookup;
    config.constraint_work = 20;
    std::map<std::uint64_t, std::int64_t> first_step, last_step;
    std::int64_t step = 0;
    config.on_token = [&](const TokenEvent& event) {
      first_step.try_emplace(event.id, step);
      last_step[event.id] = step;
    };
    auto generator = value_or_throw(Generator::create(*model_, config));
    for (std::uint64_t id = 0; id < 4; ++id)
      value_or_throw(generator.submit(request(id, id < 2 ? patterns[id] : nullptr, 25)));
    for (; !generator.idle(); ++step) {
      for (const Generation& done : generator.step()) {
        EXPECT_EQ(done.ids, expected[done.id].ids) << done.id;
        EXPECT_EQ(done.logp, expected[done.id].logp) << done.id;
      }
    }
    for (const std::uint64_t free : {2, 3}) {
      EXPECT_EQ(first_step.at(free), 0);
      EXPECT_LT(last_step.at(free), 25);
    }
    EXPECT_GT(first_step.at(0), 0);
    EXPECT_GT(step, 30);
  }
}

TEST_F(ConstrainedGeneratorTest, WorkBeyondALimitEndsOnlyItsRequest) {
  auto generator = value_or_throw(Generator::create(*model_, {.eos_ids = {end_token}}));
  Request hostile = request(1, nullptr, 60);
  hostile.constraint = std::make_shared<constraints::Constraint>(
      value_or_throw(constraints::compile_regex("([a-z]*a){40}")), table_,
      constraints::AutomatonLimits{.work = 500});
  value_or_throw(generator.submit(hostile));
  value_or_throw(generator.submit(request(2, nullptr, 20)));
  std::size_t tokens = 0;
  int failures = 0;
  while (!generator.idle()) {
    try {
      for (const Generation& done : generator.step())
        if (done.id == 2) tokens = done.ids.size();
    } catch (const RequestFailure& failure) {
      EXPECT_EQ(failure.id(), 1U);
      EXPECT_EQ(failure.error().code, Errc::bad_input);
      EXPECT_THAT(failure.what(), testing::HasSubstr("more work than is allowed"));
      generator.cancel(failure.id());
      ++failures;
    }
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(tokens, 20U);
}

TEST_F(ConstrainedGeneratorTest, BytesOfAllConstraintsAreBounded) {
  GeneratorConfig config;
  config.eos_ids = {end_token};
  config.constraint_bytes = 5'500;
  auto generator = value_or_throw(Generator::create(*model_, config));
  value_or_throw(generator.submit(request(1, "[a-z]{3}", 30)));
  value_or_throw(generator.submit(request(2, "[a-z]{30}", 30)));
  std::size_t tokens = 0;
  int failures = 0;
  while (!generator.idle()) {
    try {
      for (const Generation& done : generator.step())
        if (done.id == 1) tokens = done.ids.size();
    } catch (const RequestFailure& failure) {
      EXPECT_EQ(failure.id(), 2U);
      EXPECT_THAT(failure.what(), testing::HasSubstr("the constraints of all requests need more"));
      generator.cancel(failure.id());
      ++failures;
    }
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(tokens, 3U);
}

TEST_F(ConstrainedGeneratorTest, ALimitEndsTheRequest) {
  Request hostile = request(1, nullptr, 60);
  auto grammar = value_or_throw(constraints::compile_regex("(a|b)*a(a|b){40}c"));
  hostile.constraint = std::make_shared<constraints::Constraint>(
      std::move(grammar), table_, constraints::AutomatonLimits{.bytes = 1 << 14});
  try {
    generate({hostile});
    FAIL() << "expected an error";
  } catch (const RequestFailure& failure) {
    EXPECT_EQ(failure.error().code, Errc::bad_input);
    EXPECT_THAT(failure.what(), testing::HasSubstr("simplify it"));
  }
}

}  // namespace
}  // namespace troupe::engine::generate
