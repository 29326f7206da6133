// Adapters beside a model without one of its own: in one batch, every sequence has the bits that it
// has alone in a model with its adapter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/adapter/peft_file.h"
#include "engine/generate/generator.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/generate/same_generation.h"
#include "tests/engine/generate/tiny_model.h"

namespace troupe::engine::adapter {
namespace {

using generate::Generation;
using generate::Generator;
using generate::GeneratorConfig;
using generate::Request;

/// An adapter in a folder, and the base with this adapter as its own.
struct Adapted {
  std::string folder;
  std::unique_ptr<models::Decoder> alone;
};

const std::vector<LoraConfig>& configs() {
  static const std::vector<LoraConfig> all = {
      {.targets = {"q_proj", "v_proj"}, .rank = 2, .alpha = 3},
      {.targets = {"k_proj", "down_proj", "lm_head"}, .rank = 3, .alpha = 4, .rslora = true},
      {.targets = {"all-linear"}, .rank = 2, .alpha = 2, .dora = true}};
  return all;
}

class LoraModels : public testing::Test {
 protected:
  ~LoraModels() override { std::filesystem::remove_all(root_); }

  Adapted make(ops::Device& device, const models::Decoder& base, const LoraConfig& config,
               unsigned seed) const {
    models::DecoderSpec spec = base.spec();
    spec.lora = value_or_throw(resolve_targets(config, base.spec(), ""));
    Adapted out{root_ + std::to_string(seed), test::tiny_model(device, seed, spec)};
    for (const auto& parameter : base.parameters().all())
      device.copy(parameter.value, out.alone->parameters().at(parameter.name).value);
    std::filesystem::remove_all(out.folder);
    std::filesystem::create_directories(out.folder);
    checkpoint::TensorParts tensors(out.alone->parameters().trained(),
                                    {out.alone->parameters().trained().values()});
    value_or_throw(save_adapter(out.folder, tensors, config, spec, "base"));
    return out;
  }

  const std::string root_ = testing::TempDir() + "troupe_lora_model/";
};

/// Prompts that begin alike, so that a shared page of another adapter would be noticed.
Request request(std::uint64_t id) {
  Request out;
  out.id = id;
  out.sample_id = id % 3;
  for (std::int32_t n = 0; n < static_cast<std::int32_t>(9 + id % 4); ++n) out.prompt.push_back(n);
  out.params.max_new_tokens = static_cast<std::int32_t>(4 + id % 7);
  out.params.temperature = id % 5 == 0 ? 0 : 0.9;
  out.params.top_logprobs = static_cast<int>(id % 3);
  out.params.seed = 5;
  return out;
}

/// The requests in one generator, of which a few join in each step.
std::map<std::uint64_t, Generation> together(models::Decoder& base, GeneratorConfig config,
                                             const std::vector<Request>& requests) {
  config.prefix_cache = true;
  auto generator = value_or_throw(Generator::create(base, config));
  std::map<std::uint64_t, Generation> out;
  std::size_t next = 0;
  while (next < requests.size() || !generator.idle()) {
    for (int n = 0; n < 3 && next < requests.size(); ++n)
      value_or_throw(generator.submit(requests[next++]));
    for (Generation& done : generator.step()) out[done.id] = std::move(done);
  }
  EXPECT_EQ(generator.free_pages() + generator.idle_pages(), generator.pages());
  return out;
}

TEST_F(LoraModels, InOneBatchHaveTheBitsThatEachHasAlone) {
  for (const auto& device : {ops::make_reference_device(), ops::make_cpu_device({.threads = 2})}) {
    const auto base = test::tiny_model(*device);
    const auto before = ops::to_host(*device, base->parameters().values());
    for (const auto precision : {ops::Precision::f32, ops::Precision::bf16}) {
      const GeneratorConfig config{
          .page_size = 4, .pages = 60, .max_sequences = 7, .precision = precision};
      std::vector<Request> all;
      std::map<std::uint64_t, Generation> expected;
      for (std::size_t k = 0; k <= configs().size(); ++k) {
        std::vector<Request> own;
        for (std::uint64_t n = 0; n < 9; ++n) own.push_back(request(4 * n + k));
        const bool plain = k == configs().size();
        const Adapted adapted =
            plain ? Adapted() : make(*device, *base, configs()[k], static_cast<unsigned>(k) + 2);
        expected.merge(test::generated_alone(plain ? *base : *adapted.alone, own, config));
        const auto beside =
            plain ? nullptr : value_or_throw(load_lora_model(adapted.folder, *base));
        for (Request& each : own) each.adapter = beside;
        all.insert(all.end(), own.begin(), own.end());
      }
      std::ranges::sort(all, {}, &Request::id);  // adapters alternate
      GeneratorConfig with_lookup = config;
      with_lookup.lookup = 3;
      for (const GeneratorConfig& each : {config, with_lookup})
        for (const auto& [id, found] : together(*base, each, all))
          test::expect_same_bits(found, expected.at(id));
    }
    EXPECT_EQ(ops::to_host(*device, base->parameters().values()), before);
  }
}

TEST_F(LoraModels, ChangeTheTokens) {
  const auto device = ops::make_reference_device();
  const auto base = test::tiny_model(*device);
  Request greedy = request(5);
  greedy.params.max_new_tokens = 12;
  std::vector<std::vector<std::int32_t>> seen;
  for (const auto& config : configs()) {
    const auto adapted = make(*device, *base, config, static_cast<unsigned>(seen.size()) + 2);
    greedy.adapter = value_or_throw(load_lora_model(adapted.folder, *base));
    seen.push_back(together(*base, {.pages = 40}, {greedy}).at(5).ids);
  }
  greedy.adapter = nullptr;
  seen.push_back(together(*base, {.pages = 40}, {greedy}).at(5).ids);
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST_F(LoraModels, ScoresOfAPromptAreThoseOfItsAdapter) {
  const auto device = ops::make_reference_device();
  const auto base = test::tiny_model(*device);
  for (const auto& config : configs()) {
    const auto adapted = make(*device, *base, config, 2);
    Request wanted = request(3);
    wanted.adapter = value_or_throw(load_lora_model(adapted.folder, *base));
    wanted.prompt_alternatives = 0;
    generate::PromptScores scores;
    GeneratorConfig how{.page_size = 4, .pages = 20, .max_sequences = 1, .tokens_per_step = 5};
    how.on_prompt = [&](std::uint64_t, const generate::PromptScores& found) { scores = found; };
    together(*base, how, {wanted});
    EXPECT_EQ(scores.logp, test::trainer_logp(*adapted.alone, wanted.prompt, 1.0F));
  }
}

TEST_F(LoraModels, HaveOnlyTheTensorsOfTheAdapter) {
  const auto device = ops::make_reference_device();
  const auto base = test::tiny_model(*device);
  const auto adapted = make(*device, *base, configs()[0], 2);
  const auto beside = value_or_throw(load_lora_model(adapted.folder, *base));
  const auto& spec = base->spec();
  const std::int64_t q = spec.heads * spec.head_size, v = spec.kv_heads * spec.head_size;
  EXPECT_EQ(beside->parameters(), 2 * spec.layers * (2 * spec.width + q + v));
  EXPECT_NE(beside->number(), value_or_throw(load_lora_model(adapted.folder, *base))->number());
}

TEST_F(LoraModels, OfANormalizedHeadAreRefused) {
  const auto device = ops::make_reference_device();
  const auto base = test::tiny_model(*device);
  const auto adapted = make(*device, *base, configs()[1], 2);
  models::DecoderSpec spec = base->spec();
  spec.tied = false;
  spec.normalized_head = true;
  const auto other = test::tiny_model(*device, 1, spec);
  const auto refused = load_lora_model(adapted.folder, *other);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, testing::HasSubstr("NormHead"));
}

}  // namespace
}  // namespace troupe::engine::adapter
