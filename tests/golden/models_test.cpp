// The models of golden/models: logits, log-probabilities, gradients, AdamW steps and greedy tokens
// as transformers computes them in float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "algorithms/losses/sft_loss.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/generate/generator.h"
#include "engine/models/storage.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/golden/dense_models.h"
#include "tests/golden/mixture_models.h"
#include "tests/support/assemble_stored.h"
#include "tests/support/generate_all.h"
#include "tests/support/golden.h"

namespace troupe::engine {
namespace {

std::string file_of(const std::string& name) {
  return "models/" + name + "/golden.safetensors";
}

double relative_distance(const std::vector<float>& found, const std::vector<double>& wanted) {
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    distance += std::pow(static_cast<double>(found[i]) - wanted[i], 2);
    size += wanted[i] * wanted[i];
  }
  return std::sqrt(distance) / std::max(std::sqrt(size), 1e-12);
}

class GoldenModel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_GOLDEN(file_of(GetParam()));
    folder_ = test::golden_folder() + "/models/" + GetParam();
    stored_ = models::stored_tensors(value_or_throw(checkpoint::read_folder_spec(folder_)));
    golden_.emplace(
        value_or_throw(checkpoint::SafetensorsFile::open(folder_ + "/golden.safetensors")));
    for (int i = 0; golden_->find("tokens." + std::to_string(i)); ++i) {
      tokens_.push_back(integers("tokens." + std::to_string(i)));
      batch_.append(tokens_.back(), std::vector<float>(tokens_.back().size(), 1.0f));
      batch_.count += static_cast<double>(tokens_.back().size()) - 1;
    }
  }

  std::unique_ptr<models::Decoder> load(bool with_gradients) {
    return value_or_throw(checkpoint::load_decoder(*device_, folder_, with_gradients));
  }
  std::unique_ptr<train::Trainer> trainer_of(std::unique_ptr<models::Decoder> model) {
    const optim::AdamWConfig adamw{
        .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = 0.1, .max_grad_norm = 1};
    return std::make_unique<train::Trainer>(std::move(model),
                                            train::TrainerOptions{.optimizer = adamw});
  }
  /// transformers' dynamic positions are scaled by the longest sequence seen so far, 24 tokens
  /// here, for every later sequence beyond the trained length, until a shorter one follows. Here
  /// the scaling depends on the sequence's own length only; transformers' results from the second
  /// step on equal those of a model with these frequencies for all longer sequences.
  std::unique_ptr<train::Trainer> remembering(train::Trainer& before) {
    models::DecoderSpec spec = before.model().spec();
    spec.rotary[0].long_inverse_frequencies = spec.rotary[0].frequencies(24);
    auto model = std::make_unique<models::Decoder>(*device_, std::move(spec), true);
    device_->copy(before.model().parameters().values(), model->parameters().values());
    auto after = trainer_of(std::move(model));
    auto& moments = before.optimizer();
    after->optimizer().restore(ops::to_host(*device_, moments.exp_avg()),
                               ops::to_host(*device_, moments.exp_avg_sq()), moments.steps());
    return after;
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

  /// The softmax ignores terms common to all keys: in channels that are not rotated, or hardly
  /// rotated, the gradient of a bias of keys is 0, or far below the rounding error of a float32
  /// sum, and AdamW amplifies that error. (torch in float32 differs as much from the golden
  /// numbers.) Returns the elements of `tensor`, a vector, whose float64 gradient is that small.
  std::vector<bool> lost(const models::StoredTensor& tensor) {
    const std::vector<float> one(static_cast<std::size_t>(tensor.row_count()), 1.0f),
        none(one.size(), 0.0f);
    const auto keys = test::assemble_stored(tensor, [&](const std::string& name) {
      return (name.ends_with("k_proj.bias") ? one : none).data();
    });
    const auto gradient = doubles("grad." + tensor.name);
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    std::vector<bool> out;
    for (std::size_t i = 0; i < keys.size(); ++i)
      out.push_back(keys[i] == 1.0f && std::abs(gradient[i]) < 64 * 0x1p-24 * largest);
    return out;
  }

  /// Compares the file's tensors `prefix`NAME with the gradients or the values of the parameters.
  void expect_stored(train::Trainer& trained, const std::string& prefix,
                     Tensor nn::Parameter::*which) {
    for (const auto& tensor : stored_) {
      std::map<std::string, std::vector<float>> parts;
      const auto found = test::assemble_stored(tensor, [&](const std::string& name) {
        if (!parts.contains(name))
          parts[name] = ops::to_host(*device_, trained.model().parameters().at(name).*which);
        return parts[name].data();
      });
      if (!golden_->find(prefix + tensor.name)) {  // a buffer
        ASSERT_TRUE(prefix == "grad." && tensor.name.ends_with("e_score_correction_bias"));
        EXPECT_THAT(found, testing::Each(0.0F)) << tensor.name;
        continue;
      }
      auto wanted = doubles(prefix + tensor.name);
      if (prefix == "after5." && tensor.vector && golden_->find("grad." + tensor.name)) {
        const auto skipped = lost(tensor);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          if (skipped[i]) wanted[i] = static_cast<double>(found[i]);
      }
      EXPECT_LT(relative_distance(found, wanted), 1e-4) << tensor.name;
    }
  }

  std::unique_ptr<ops::Device> device_ = ops::make_cpu_device();
  std::string folder_;
  std::vector<models::StoredTensor> stored_;
  std::optional<checkpoint::SafetensorsFile> golden_;
  std::vector<std::vector<std::int32_t>> tokens_;
  data::Experience batch_;
};

TEST_P(GoldenModel, Logits) {
  auto model = load(false);
  const auto layout = device_->prepare(train::layout_of(batch_));
  nn::Saved nothing = nn::Saved::nothing();
  const auto logits = ops::to_host(
      *device_, model->head().logits(model->forward(batch_.tokens, {*device_, layout}, nothing),
                                     ops::Precision::f32));
  std::size_t at = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    double largest = 0;
    const auto wanted = doubles("logits." + std::to_string(i));
    for (const double z : wanted) largest = std::max(largest, std::abs(z));
    for (const double z : wanted)
      ASSERT_NEAR(static_cast<double>(logits[at++]), z, 2e-5 * largest) << "sequence " << i;
  }
}

TEST_P(GoldenModel, LogProbabilities) {
  auto model = load(false);
  const auto logp = train::logprobs(*model, batch_, {.every_token = true});
  for (std::size_t i = 0, at = 0; i < tokens_.size(); ++i) {
    at += 1;
    for (const double wanted : doubles("logp." + std::to_string(i)))
      ASSERT_NEAR(static_cast<double>(logp[at++]), wanted, 2e-5);
  }
}

TEST_P(GoldenModel, Gradients) {
  const auto trained = trainer_of(load(true));
  trained->forward_backward(batch_, algorithms::SftLoss{});
  trained->model().parameters().complete_gradients();
  expect_stored(*trained, "grad.", &nn::Parameter::grad);
}

TEST_P(GoldenModel, FiveAdamWSteps) {
  auto trained = trainer_of(load(true));
  const auto losses = doubles("adamw_losses"), norms = doubles("adamw_grad_norms");
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(trained->forward_backward(batch_, algorithms::SftLoss{}).loss, losses[step], 1e-5)
        << "step " << step;
    const auto update = value_or_throw(trained->update(1e-3));
    EXPECT_NEAR(update.grad_norm, norms[step], 1e-4 * norms[step]) << "step " << step;
    if (step == 0 && std::string_view(GetParam()) == "llama-dynamic-rope")
      trained = remembering(*trained);
  }
  expect_stored(*trained, "after5.", &nn::Parameter::value);
}

TEST_P(GoldenModel, GreedyTokens) {
  auto model = load(false);
  auto generator = value_or_throw(generate::Generator::create(*model, {}));
  std::vector<generate::Request> requests;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto wanted = integers("greedy." + std::to_string(i));
    generate::Request request{.id = i, .prompt = {wanted.begin(), wanted.begin() + 6}};
    request.params.greedy = true;
    request.params.max_new_tokens = 16;
    request.params.ignore_eos = true;
    requests.push_back(std::move(request));
  }
  const auto done = value_or_throw(test::generate_all(generator, std::move(requests)));
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (doubles("greedy_margin." + std::to_string(i))[0] < 1e-4) continue;
    const auto wanted = integers("greedy." + std::to_string(i));
    EXPECT_EQ(done[i].ids, std::vector<std::int32_t>(wanted.begin() + 6, wanted.end()))
        << "prompt " << i;
  }
}

TEST_P(GoldenModel, SampledTokensHaveTheBitsOfScoring) {
  std::vector<float> first;  // of all samples, on the first device
  for (const int threads : {1, 2}) {
    const auto device = ops::make_cpu_device({.threads = threads});
    const auto model = value_or_throw(checkpoint::load_decoder(*device, folder_, false));
    if (model->spec().keys_depend_on_length())
      GTEST_SKIP() << "the rotary factors of a text change with its length (docs/parity.md)";
    auto generator = value_or_throw(
        generate::Generator::create(*model, {.max_sequences = 2, .tokens_per_step = 5}));
    std::vector<generate::Request> requests;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      generate::Request request{.id = i, .prompt = {tokens_[i].begin(), tokens_[i].begin() + 7}};
      request.params.max_new_tokens = 12;
      request.params.ignore_eos = true;
      requests.push_back(std::move(request));
    }
    std::vector<float> all;
    for (const auto& sample : value_or_throw(test::generate_all(generator, std::move(requests)))) {
      auto ids = std::vector(tokens_[sample.id].begin(), tokens_[sample.id].begin() + 7);
      ids.insert(ids.end(), sample.ids.begin(), sample.ids.end());
      data::Experience one;
      one.append(ids, std::vector<float>(ids.size(), 1.0f));
      const auto scored = train::logprobs(*model, one, {.every_token = true});
      EXPECT_EQ(std::vector(scored.begin() + 7, scored.end()), sample.logp) << threads;
      all.insert(all.end(), sample.logp.begin(), sample.logp.end());
    }
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(test::dense_models),
                         test::name_of_case);
INSTANTIATE_TEST_SUITE_P(Mixtures, GoldenModel, ::testing::ValuesIn(test::mixture_models),
                         test::name_of_case);

TEST(GoldenModels, SomeOfThemAreThere) {
  std::vector<std::string> files;
  for (const char* name : test::dense_models) files.push_back(file_of(name));
  for (const char* name : test::mixture_models) files.push_back(file_of(name));
  test::expect_some_golden(files);
}

}  // namespace
}  // namespace troupe::engine
