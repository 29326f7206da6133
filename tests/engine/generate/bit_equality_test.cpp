// Bit equality of generation: a token's log-probability has the bits of one full forward pass for
// any batch, chunks, pages, preemptions and order of arrival, and (seed, sample id) determine the
// tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <random>

#include "engine/generate/generator.h"
#include "engine/generate/sampler.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/temperature.h"
#include "tests/engine/generate/tiny_model.h"
#include "tests/support/generate_all.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::generate {
namespace {

struct Machine {
  const char* name;
  std::function<std::unique_ptr<ops::Device>()> make;
};
void PrintTo(const Machine& machine, std::ostream* out) {
  *out << machine.name;
}

const Machine machines[] = {
    {"reference", [] { return ops::make_reference_device(); }},
    {"cpu_one_thread", [] { return ops::make_cpu_device({.threads = 1}); }},
    {"cpu_two_threads", [] { return ops::make_cpu_device({.threads = 2}); }},
    {"cpu_baseline", [] { return ops::make_cpu_device({.threads = 1, .isa = "baseline"}); }}};

class BitEquality : public testing::TestWithParam<Machine> {
 protected:
  std::unique_ptr<ops::Device> device_ = GetParam().make();
  std::unique_ptr<models::Decoder> model_ = test::tiny_model(*device_);
};
INSTANTIATE_TEST_SUITE_P(Devices, BitEquality, testing::ValuesIn(machines),
                         [](const auto& each) { return std::string(each.param.name); });

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

/// Requests of all kinds: shared prompts, lengths from one token to many, settings of all sorts.
std::vector<Request> random_requests(std::mt19937& random, int count, std::int32_t vocabulary) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
  std::vector<std::vector<std::int32_t>> prompts(4);
  for (auto& prompt : prompts) {
    for (int n = 1 + below(40); n > 0; --n) prompt.push_back(below(vocabulary));
  }
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request r;
    r.id = 1000 + i;
    r.sample_id = i;
    r.prompt = prompts[below(4)];
    r.params.max_new_tokens = 1 + below(24);
    r.params.temperature = std::array{1.0, 1.0, 0.7, 1.3, 0.0}[below(5)];
    r.params.top_k = below(3) * 5;
    r.params.repetition_penalty = below(2) == 0 ? 1 : 1.2;
    r.params.top_logprobs = below(3) == 0 ? vocabulary : 0;
    r.params.seed = 77;
    requests.push_back(std::move(r));
  }
  return requests;
}

/// Compares everything that was reported with one forward pass without a cache.
void expect_as_full_forward(models::Decoder& model, const Request& request, const Generation& got,
                            ops::Precision precision) {
  ASSERT_EQ(std::ssize(got.ids), request.params.max_new_tokens);
  std::vector<std::int32_t> all = request.prompt;
  all.insert(all.end(), got.ids.begin(), got.ids.end());
  const std::size_t prompt = request.prompt.size();
  const auto tail = [&](const std::vector<float>& x) {
    return std::vector<float>(x.begin() + static_cast<std::ptrdiff_t>(prompt), x.end());
  };
  EXPECT_TRUE(same_bits(got.logp, tail(test::trainer_logp(model, all, 1, precision))));
  const float inverse = ops::inverse_temperature(request.params.temperature);
  EXPECT_TRUE(
      same_bits(got.sampling_logp, tail(test::trainer_logp(model, all, inverse, precision))));

  ops::Device& device = model.device();
  const Tensor logits = model.head().logits(test::full_forward(model, all, precision), precision);
  const std::vector<float> host = ops::to_host(device, logits);
  const auto width = static_cast<std::size_t>(model.spec().vocabulary);
  for (std::size_t i = 0; i < got.ids.size(); ++i) {
    const std::span<const float> row(host.data() + (prompt + i - 1) * width, width);
    const std::span<const std::int32_t> before(all.data(), prompt + i);
    const ProcessorContext context{request.params, before, prompt, {}};
    EXPECT_EQ(got.ids[i], sample_token(row, context, sampling_row(context, request.sample_id)));
    if (got.top.empty()) continue;
    const auto chosen = std::ranges::find(got.top[i], got.ids[i], &Alternative::id);
    ASSERT_NE(chosen, got.top[i].end());
    const float lse = row[got.ids[i]] - chosen->logp;
    for (const Alternative& a : got.top[i]) EXPECT_NEAR(a.logp, row[a.id] - lse, 1e-5);
  }
}

GeneratorConfig random_config(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<std::int32_t>(random() % n); };
  GeneratorConfig config;
  config.page_size = std::array{1, 3, 8, 16}[below(4)];
  config.pages = (64 + config.page_size - 1) / config.page_size + below(1 + 128 / config.page_size);
  config.max_sequences = 1 + below(8);
  config.tokens_per_step = config.max_sequences + below(40);
  return config;
}

/// Runs requests and compares each with the full pass.
GeneratorStats run_against_full_forward(models::Decoder& model, unsigned seed) {
  std::mt19937 random(seed);
  GeneratorConfig config = random_config(random);
  config.precision = seed % 3 == 2 ? ops::Precision::bf16 : ops::Precision::f32;
  Generator generator = value_or_throw(Generator::create(model, config));
  std::map<std::uint64_t, Request> requests;
  std::vector<Request> waiting = random_requests(random, 10, 37);
  for (const Request& r : waiting) requests[r.id] = r;
  std::size_t done = 0;
  while (!waiting.empty() || !generator.idle()) {
    for (auto n = random() % 4; n > 0 && !waiting.empty(); --n) {
      EXPECT_TRUE(generator.submit(std::move(waiting.back())));
      waiting.pop_back();
    }
    for (const Generation& got : generator.step()) {
      expect_as_full_forward(model, requests.at(got.id), got, config.precision);
      ++done;
    }
  }
  EXPECT_EQ(done, requests.size());
  return generator.stats();
}

TEST_P(BitEquality, DecodingIsTheFullForwardPassWhateverTheBatch) {
  GeneratorStats sum;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const GeneratorStats stats = run_against_full_forward(*model_, seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    sum.preemptions += stats.preemptions;
    sum.copied_pages += stats.copied_pages;
  }
  EXPECT_GT(sum.preemptions, 0) << "some of these runs must preempt, or they show little";
  EXPECT_GT(sum.copied_pages, 0) << "some of these runs must share prompts";
}

TEST_P(BitEquality, HoldsForWhatTheOtherFamiliesHave) {
  for (const test::GridModel& family : test::family_models()) {
    const auto model = test::tiny_model(*device_, 1, family.spec);
    for (unsigned seed = 0; seed < 4; ++seed) run_against_full_forward(*model, seed);
    ASSERT_FALSE(HasFailure()) << family.title;
  }
}

// In f32 and, with packed weights, in bf16.
TEST_P(BitEquality, HoldsForMixturesOfExperts) {
  using ops::Renormalize, ops::RouterScore;
  for (const ops::Router& router :
       {ops::Router{.experts = 4, .chosen = 2},
        {.experts = 6,
        .chosen = 3,
        .score = RouterScore::sigmoid,
        .groups = 3,
        .kept_groups = 2,
        .renormalize = Renormalize::sum},
        {.experts = 4, .chosen = 2, .score = RouterScore::sparse_mixer, .jitter = 0.01}}) {
    models::DecoderSpec spec = test::tiny_spec();
    spec.experts = models::ExpertsSpec{.router = router,
                                       .choice_bias = router.groups > 1,
                                       .inner = 12,
                                       .shared_inner = 20,
                                       .shared_gate = router.experts == 4,
                                       .sparse = {false, true}};
    const auto model = test::tiny_model(*device_, 1, std::move(spec));
    for (unsigned seed = 0; seed < 4; ++seed) run_against_full_forward(*model, seed);
    ASSERT_FALSE(HasFailure()) << router.experts;
  }
}

TEST_P(BitEquality, SeedAndSampleDecideTheTokensWhateverTheBatch) {
  std::mt19937 random(9);
  const std::vector<Request> requests = random_requests(random, 8, 37);
  Generator together = value_or_throw(
      Generator::create(*model_, {.pages = 12, .max_sequences = 8, .tokens_per_step = 20}));
  const std::vector<Generation> crowd = value_or_throw(test::generate_all(together, requests));
  EXPECT_GT(together.stats().preemptions, 0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Generator alone =
        value_or_throw(Generator::create(*model_, {.page_size = 4, .max_sequences = 1}));
    const Generation one = value_or_throw(test::generate_all(alone, {requests[i]})).at(0);
    EXPECT_EQ(crowd[i].id, requests[i].id) << "results stand in the order of the requests";
    EXPECT_EQ(one.ids, crowd[i].ids);
    EXPECT_TRUE(same_bits(one.logp, crowd[i].logp));
    EXPECT_TRUE(same_bits(one.sampling_logp, crowd[i].sampling_logp));
  }
}

TEST(Threads, DoNotChangeWhatIsGenerated) {
  std::vector<std::vector<Generation>> runs;
  for (const int threads : {1, 2}) {
    const auto device = ops::make_cpu_device({.threads = threads});
    const auto model = test::tiny_model(*device);
    std::mt19937 random(4);
    Generator generator = value_or_throw(
        Generator::create(*model, {.pages = 20, .max_sequences = 6, .tokens_per_step = 30}));
    runs.push_back(value_or_throw(test::generate_all(generator, random_requests(random, 12, 37))));
  }
  for (std::size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].ids, runs[1][i].ids);
    EXPECT_TRUE(same_bits(runs[0][i].logp, runs[1][i].logp));
  }
}

}  // namespace
}  // namespace troupe::engine::generate
