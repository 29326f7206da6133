// Log-probabilities of real models on real text compared with a float64 forward pass: the first
// twelve stories of TinyStories, with the start token.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/base/files/file.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/train/scoring.h"

namespace troupe::engine {
namespace {

std::vector<std::string> stories() {
  const std::string text =
      value_or_throw(read_file(TROUPE_TEST_DATA "/datasets/pretrain/tinystories_train_head.txt"));
  const std::string separator = "<|endoftext|>", space = " \n";
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string story = text.substr(begin, end - begin);
    const std::size_t first = story.find_first_not_of(space), last = story.find_last_not_of(space);
    all.push_back(story.substr(first, last + 1 - first));
    begin = end + separator.size();
  }
  return all;
}

struct Model {
  const char *title, *name, *folder;
};
void PrintTo(const Model& model, std::ostream* out) {
  *out << model.name;
}

class GoldenStories : public testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const Json all = value_or_throw(read_json(TROUPE_TEST_DATA "/expected/models/nll.json"));
    for (const Json& entry : all.array())
      if (entry.find("model")->string() == GetParam().name) expected_ = entry;
    ASSERT_FALSE(expected_.is_null());
    const auto text = value_or_throw(tokenizer::Tokenizer::load(folder_));
    for (const std::string& story : stories()) {
      std::vector<std::int32_t> ids{text.bos_id().value()};
      for (const auto id : text.encode(story, false)) ids.push_back(static_cast<std::int32_t>(id));
      ids.resize(std::min<std::size_t>(ids.size(), 512));
      batch_.append(ids, std::vector<float>(ids.size(), 1.0f));
    }
  }

  std::string folder_ = std::string(TROUPE_TEST_DATA "/models/") + GetParam().folder;
  Json expected_;
  data::Experience batch_;
};

TEST_P(GoldenStories, EachOnesLogLikelihoodIsThatOfAFloat64Pass) {
  const auto device = ops::make_cpu_device();
  const auto model = value_or_throw(checkpoint::load_decoder(*device, folder_, false));
  const auto logp =
      train::logprobs(*model, batch_, {.micro_batch_tokens = 1000, .every_token = true});
  const auto &tokens = expected_.find("tokens")->array(), &nll = expected_.find("nll")->array();
  ASSERT_EQ(static_cast<std::size_t>(batch_.sequences()), nll.size());
  double sum = 0, count = 0;
  for (std::size_t n = 0; n < nll.size(); ++n) {
    const auto begin = logp.begin() + batch_.offsets[n], end = logp.begin() + batch_.offsets[n + 1];
    const double story = -std::accumulate(begin, end, 0.0),
                 length = static_cast<double>(end - begin) - 1;
    EXPECT_EQ(length, tokens[n].number()) << "story " << n;
    EXPECT_NEAR(story / length, nll[n].number() / length, 1e-5) << "story " << n;
    sum += story;
    count += length;
  }
  EXPECT_NEAR(sum / count, expected_.find("mean_nll")->number(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenStories,
                         testing::Values(Model{"Stories260k", "stories260k", "stories260k/hf"},
                                         Model{"Tinystories656k", "tinystories-656k",
                                               "tinystories-656k"}),
                         [](const auto& each) { return each.param.title; });

}  // namespace
}  // namespace troupe::engine
