// The adapters of golden/peft over golden/models, and those of tests/data/peft_experts: logits,
// merged weights and AdamW steps of the adapter alone, as PEFT computes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "algorithms/losses/sft_loss.h"
#include "engine/adapter/adapter.h"
#include "engine/adapter/peft_file.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_parts.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/golden.h"

namespace troupe::engine {
namespace {

constexpr const char* names[] = {"llama-q-v",          "llama-rslora",  "llama-dora",
                                 "llama-layer-1-only", "llama-lm-head", "qwen2-all-linear",
                                 "qwen3-rank-pattern"};
// Of experts, in both of PEFT's forms.
constexpr const char* of_experts[] = {"modules", "parameters"};

std::string file_of(const std::string& name) {
  return "peft/" + name + "/golden.safetensors";
}
bool is_of_experts(std::string_view name) {
  return std::ranges::find(of_experts, name) != std::end(of_experts);
}

class GoldenAdapter : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool own = is_of_experts(GetParam());
    if (!own) SKIP_WITHOUT_GOLDEN(file_of(GetParam()));
    const std::string data = TROUPE_TEST_DATA "/peft_experts/";
    folder_ = own ? data + GetParam() : test::golden_folder() + "/peft/" + GetParam();
    const auto config = value_or_throw(read_json(folder_ + "/adapter_config.json"));
    base_ = (own ? data : test::golden_folder() + "/models/") +
            value_or_throw(get_string(config, "base_model_name_or_path", folder_));
    golden_.emplace(
        value_or_throw(checkpoint::SafetensorsFile::open(folder_ + "/golden.safetensors")));
    for (int i = 0; golden_->find("tokens." + std::to_string(i)); ++i) {
      const std::string name = "tokens." + std::to_string(i);
      std::vector<std::int32_t> ids(static_cast<std::size_t>(golden_->find(name)->count()));
      value_or_throw(golden_->read_i32(name, ids));
      batch_.append(ids, std::vector<float>(ids.size(), 1.0f));
      batch_.count += static_cast<double>(ids.size()) - 1;
    }
  }

  std::unique_ptr<models::Decoder> load(bool with_gradients) {
    auto spec = value_or_throw(checkpoint::read_folder_spec(base_));
    spec.lora = value_or_throw(adapter::read_adapter(folder_, spec)).lora;
    auto model = value_or_throw(checkpoint::load_decoder(*device_, base_, spec, with_gradients));
    value_or_throw(adapter::load_adapter(folder_, *model));
    return model;
  }
  std::vector<float> logits(models::Decoder& model) {
    const auto layout = device_->prepare(train::layout_of(batch_));
    nn::Saved nothing = nn::Saved::nothing();
    return ops::to_host(
        *device_, model.head().logits(model.forward(batch_.tokens, {*device_, layout}, nothing),
                                      ops::Precision::f32));
  }
  void expect_golden_logits(const std::vector<float>& found) {
    std::size_t at = 0;
    for (int i = 0; golden_->find("logits." + std::to_string(i)); ++i) {
      const auto wanted = doubles("logits." + std::to_string(i));
      double largest = 0;
      for (const double z : wanted) largest = std::max(largest, std::abs(z));
      for (const double z : wanted)
        ASSERT_NEAR(static_cast<double>(found.at(at++)), z, 2e-5 * largest) << "sequence " << i;
    }
    EXPECT_EQ(at, found.size());
  }
  std::vector<double> doubles(const std::string& name) {
    std::vector<double> values(static_cast<std::size_t>(golden_->find(name)->count()));
    value_or_throw(golden_->read_f64(name, values));
    return values;
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::string folder_, base_;
  std::optional<checkpoint::SafetensorsFile> golden_;
  data::Experience batch_;
};

TEST_P(GoldenAdapter, Logits) {
  expect_golden_logits(logits(*load(false)));
}

TEST_P(GoldenAdapter, TheBaseAloneAnswersAsTheBaseDoes) {
  auto model = load(false);
  auto base = value_or_throw(checkpoint::load_decoder(*device_, base_, false));
  const models::AdapterDisabled alone(*model);
  EXPECT_EQ(logits(*model), logits(*base));
}

TEST_P(GoldenAdapter, MergedWeights) {
  auto model = value_or_throw(checkpoint::load_decoder(*device_, base_, false));
  value_or_throw(adapter::merge_adapter(*model, folder_));
  for (const auto& tensor : golden_->tensors()) {
    if (!tensor.name.starts_with("merged.")) continue;
    const nn::Parameter* stored = model->parameters().find(tensor.name.substr(7));
    if (!stored && model->spec().tied)
      stored = model->parameters().find("model.embed_tokens.weight");
    ASSERT_TRUE(stored) << tensor.name;
    const auto found = ops::to_host(*device_, stored->value);
    const auto wanted = doubles(tensor.name);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(static_cast<double>(found.at(i)), wanted[i], 1e-6) << tensor.name;
  }
  expect_golden_logits(logits(*model));
}

TEST_P(GoldenAdapter, FiveAdamWSteps) {
  const optim::AdamWConfig adamw{
      .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = 0, .max_grad_norm = 1};
  train::Trainer trained(load(true), {.optimizer = adamw});
  const auto losses = doubles("adamw_losses"), norms = doubles("adamw_grad_norms");
  ASSERT_EQ(losses.size(), 5u);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(trained.forward_backward(batch_, algorithms::SftLoss{}).loss, losses[step], 1e-5)
        << "step " << step;
    const auto update = value_or_throw(trained.update(5e-3));
    EXPECT_NEAR(update.grad_norm, norms[step], 1e-5 * std::max(1.0, norms[step]))
        << "step " << step;
  }
}

// Names, shapes and values: PEFT loads what it would have written.
TEST_P(GoldenAdapter, IsSavedAsPeftSavesIt) {
  const auto model = load(true);
  const auto config = value_or_throw(adapter::read_adapter(folder_,
                                                           [&] {
                                                             auto base = model->spec();
                                                             base.lora.reset();
                                                             return base;
                                                           }()))
                          .config;
  const std::string out = testing::TempDir() + "saved_adapter_" + GetParam();
  std::filesystem::remove_all(out);
  std::filesystem::create_directories(out);
  checkpoint::TensorParts tensors(model->parameters().trained(),
                                  {model->parameters().trained().values()});
  value_or_throw(adapter::save_adapter(out, tensors, config, model->spec(), "base"));
  const auto theirs = value_or_throw(
                 checkpoint::SafetensorsFile::open(folder_ + "/adapter_model.safetensors")),
             ours = value_or_throw(
                 checkpoint::SafetensorsFile::open(out + "/adapter_model.safetensors"));
  for (const auto& tensor : theirs.tensors()) {
    if (tensor.name.find("lora_") == tensor.name.npos) continue;  // copies of the base
    const auto* found = ours.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    std::vector<float> mine(static_cast<std::size_t>(tensor.count())), wanted = mine;
    value_or_throw(ours.read_f32(tensor.name, mine));
    value_or_throw(theirs.read_f32(tensor.name, wanted));
    EXPECT_EQ(mine, wanted) << tensor.name;
  }
  const auto saved = value_or_throw(read_json(out + "/adapter_config.json"));
  if (GetParam() == std::string_view("parameters")) {
    EXPECT_EQ(saved.find("target_parameters")->array().size(), 2U);
  } else {
    EXPECT_EQ(saved.find("target_parameters"), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Adapters, GoldenAdapter, ::testing::ValuesIn(names), test::name_of_case);
INSTANTIATE_TEST_SUITE_P(Experts, GoldenAdapter, ::testing::ValuesIn(of_experts),
                         test::name_of_case);

TEST(GoldenAdapters, SomeOfThemAreThere) {
  std::vector<std::string> files;
  for (const char* name : names) files.push_back(file_of(name));
  test::expect_some_golden(files);
}

}  // namespace
}  // namespace troupe::engine
