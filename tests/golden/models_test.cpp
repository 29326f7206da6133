// The models of golden/models: logits, log-probabilities, gradients, AdamW steps and greedy tokens as transformers computes them in
// float64.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/losses/sft_loss.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/generate/generator.h"
#include "engine/train/trainer.h"
#include "tests/support/golden.h"

namespace troupe::engine {
namespace {

constexpr const char* names[] = {"llama",       "llama-tied",          "llama-linear-rope",        "llama-bias-headdim",
                                 "llama3-rope", "llama3-rope-config4", "internlm-style-llama-mha", "qwen2",
                                 "qwen3"};

std::string file_of(const std::string& name) { return "models/" + name + "/golden.safetensors"; }

class GoldenModel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_GOLDEN(file_of(GetParam()));
    folder_ = test::golden_folder() + "/models/" + GetParam();
    golden_.emplace(value_or_throw(checkpoint::SafetensorsFile::open(folder_ + "/golden.safetensors")));
    for (int i = 0; golden_->find("tokens." + std::to_string(i)); ++i) {
      tokens_.push_back(integers("tokens." + std::to_string(i)));
      batch_.append(tokens_.back(), std::vector<float>(tokens_.back().size(), 1.0f));
      batch_.count += static_cast<double>(tokens_.back().size()) - 1;
    }
  }

  std::unique_ptr<models::Decoder> load(bool with_gradients) {
    return value_or_throw(checkpoint::load_decoder(*device_, folder_, with_gradients));
  }
  train::Trainer trainer() {
    optim::AdamWConfig adamw;
    adamw.beta1 = 0.9, adamw.beta2 = 0.95, adamw.eps = 1e-8, adamw.weight_decay = 0.1, adamw.max_grad_norm = 1;
    return {load(true), {.optimizer = adamw}};
  }
  std::vector<double> doubles(const std::string& name) {
    std::vector<double> values(static_cast<std::size_t>(golden_->find(name)->count()));
    value_or_throw(golden_->read_f64(name, values));
    return values;
  }
  std::vector<std::int32_t> integers(const std::string& name) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(golden_->find(name)->count()));
    value_or_throw(golden_->read_i32(name, values));
    return values;
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::string folder_;
  std::optional<checkpoint::SafetensorsFile> golden_;
  std::vector<std::vector<std::int32_t>> tokens_;
  data::Experience batch_;
};

double relative_distance(const std::vector<float>& found, const std::vector<double>& wanted) {
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    distance += std::pow(static_cast<double>(found[i]) - wanted[i], 2);
    size += wanted[i] * wanted[i];
  }
  return std::sqrt(distance) / std::max(std::sqrt(size), 1e-12);
}

TEST_P(GoldenModel, Logits) {
  auto model = load(false);
  const auto layout = train::layout_of(batch_);
  nn::Saved nothing = nn::Saved::nothing();
  const auto logits =
      ops::to_host(*device_, model->head().logits(model->forward(batch_.tokens, {*device_, layout}, nothing), ops::Precision::f32));
  std::size_t at = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    double largest = 0;
    const auto wanted = doubles("logits." + std::to_string(i));
    for (const double z : wanted) largest = std::max(largest, std::abs(z));
    for (const double z : wanted) ASSERT_NEAR(static_cast<double>(logits[at++]), z, 2e-5 * largest) << "sequence " << i;
  }
}

TEST_P(GoldenModel, LogProbabilities) {
  auto model = load(false);
  const auto logp = train::logprobs(*model, batch_, {.every_token = true});
  for (std::size_t i = 0, at = 0; i < tokens_.size(); ++i) {
    at += 1;
    for (const double wanted : doubles("logp." + std::to_string(i))) ASSERT_NEAR(static_cast<double>(logp[at++]), wanted, 2e-5);
  }
}

TEST_P(GoldenModel, Gradients) {
  auto trained = trainer();
  trained.forward_backward(batch_, algorithms::SftLoss{});
  for (const auto& parameter : trained.model().parameters().all()) {
    ASSERT_TRUE(golden_->find("grad." + parameter.name)) << parameter.name;
    EXPECT_LT(relative_distance(ops::to_host(*device_, parameter.grad), doubles("grad." + parameter.name)), 1e-4) << parameter.name;
  }
}

TEST_P(GoldenModel, FiveAdamWSteps) {
  auto trained = trainer();
  const auto losses = doubles("adamw_losses"), norms = doubles("adamw_grad_norms");
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(trained.forward_backward(batch_, algorithms::SftLoss{}).loss, losses[step], 1e-5) << "step " << step;
    const auto update = value_or_throw(trained.update(1e-3));
    EXPECT_NEAR(update.grad_norm, norms[step], 1e-4 * norms[step]) << "step " << step;
  }
  for (const auto& parameter : trained.model().parameters().all())
    EXPECT_LT(relative_distance(ops::to_host(*device_, parameter.value), doubles("after5." + parameter.name)), 1e-4) << parameter.name;
}

TEST_P(GoldenModel, GreedyTokens) {
  auto model = load(false);
  auto generator = value_or_throw(generate::Generator::create(*model, {}));
  std::vector<generate::Request> requests;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto wanted = integers("greedy." + std::to_string(i));
    generate::Request request{.id = i, .prompt = {wanted.begin(), wanted.begin() + 6}};
    request.params.greedy = true, request.params.max_new_tokens = 16, request.params.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  const auto done = value_or_throw(generator.generate_all(std::move(requests)));
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (doubles("greedy_margin." + std::to_string(i))[0] < 1e-4) continue;
    const auto wanted = integers("greedy." + std::to_string(i));
    EXPECT_EQ(done[i].ids, std::vector<std::int32_t>(wanted.begin() + 6, wanted.end())) << "prompt " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(names), [](const auto& param) {
  std::string name = param.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(GoldenModels, SomeOfThemAreThere) {
  std::vector<std::string> files;
  for (const char* name : names) files.push_back(file_of(name));
  test::expect_some_golden(files);
}

}  // namespace
}  // namespace troupe::engine
