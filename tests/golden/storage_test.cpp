// Every family's files: read, written and read again they are the same to the bit, whole or in
// shards, and so are the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/golden/dense_models.h"
#include "tests/golden/mixture_models.h"
#include "tests/support/golden.h"

namespace troupe::engine::checkpoint {
namespace {

struct EveryFamily : testing::TestWithParam<const char*> {
  void SetUp() override {
    SKIP_WITHOUT_GOLDEN(cat("models/", GetParam(), "/config.json"));
    source = cat(test::golden_folder(), "/models/", GetParam());
  }
  std::vector<float> values(const std::string& folder) {
    return ops::to_host(
        *device, value_or_throw(load_decoder(*device, folder, false))->parameters().values());
  }
  std::string save(const Scratch& to, const std::string& from, SaveOptions options) {
    const auto model = value_or_throw(load_decoder(*device, from, false));
    options.source = from;
    options.tied = model->spec().tied;
    value_or_throw(save_parameters(to.path(), model->parameters(), options));
    return to.path();
  }
  std::string source;
  std::unique_ptr<ops::Device> device = ops::make_cpu_device({.threads = 1});
};

TEST_P(EveryFamily, IsSavedUnderTheNamesAndWithTheBytesThatItWasReadFrom) {
  const Scratch scratch;
  save(scratch, source, {});
  const auto before = value_or_throw(SafetensorsFolder::open(source)),
             after = value_or_throw(SafetensorsFolder::open(scratch.path()));
  ASSERT_EQ(before.all().size(), after.all().size());
  for (const auto& place : before.all()) {
    const auto again = after.find(place.tensor->name);
    ASSERT_TRUE(again) << place.tensor->name;
    EXPECT_EQ(again->tensor->shape, place.tensor->shape) << place.tensor->name;
    EXPECT_TRUE(
        std::ranges::equal(again->file->bytes(*again->tensor), place.file->bytes(*place.tensor)))
        << place.tensor->name;
  }
}

TEST_P(EveryFamily, ComesBackFromShardsToTheBit) {
  const Scratch scratch;
  save(scratch, source, {.shard_bytes = 20000});
  EXPECT_GT(value_or_throw(SafetensorsFolder::open(scratch.path())).files().size(), 3u);
  EXPECT_EQ(values(scratch.path()), values(source));
}

TEST_P(EveryFamily, RoundsOnceToSixteenBits) {
  for (const StoredType type : {StoredType::bf16, StoredType::f16}) {
    const Scratch once, twice;
    save(twice, save(once, source, {.type = type}), {.type = type});
    EXPECT_EQ(slurp(once / "model.safetensors"), slurp(twice / "model.safetensors"));
    EXPECT_NE(values(once.path()), values(source));
  }
}

// The files of openai-community/gpt2: without the prefix, and with the causal mask that
// transformers once stored as a buffer.
TEST(Storage, FilesOfABaseModelWithBuffersLoad) {
  SKIP_WITHOUT_GOLDEN("models/gpt2/config.json");
  const std::string source = cat(test::golden_folder(), "/models/gpt2");
  const auto weights = value_or_throw(SafetensorsFolder::open(source));
  std::map<std::string, std::vector<float>> values{{"h.0.attn.bias", std::vector<float>(16, 1.0f)}};
  std::vector<SafetensorsWriter::Plan> plans{{"h.0.attn.bias", StoredType::f32, {1, 1, 4, 4}}};
  for (const auto& place : weights.all()) {
    const std::string bare = place.tensor->name.substr(std::string_view("transformer.").size());
    values[bare].resize(static_cast<std::size_t>(place.tensor->count()));
    value_or_throw(place.file->read_f32(place.tensor->name, values[bare]));
    plans.push_back({bare, StoredType::f32, place.tensor->shape});
  }
  const Scratch scratch;
  auto writer = value_or_throw(SafetensorsWriter::create(scratch / "model.safetensors", plans));
  for (const auto& tensor : writer.tensors())
    value_or_throw(writer.write(tensor.name, values.at(tensor.name)));
  value_or_throw(writer.finish());
  put(scratch / "config.json", slurp(source + "/config.json"));
  const auto device = ops::make_cpu_device({.threads = 1});
  EXPECT_EQ(
      ops::to_host(
          *device,
          value_or_throw(load_decoder(*device, scratch.path(), false))->parameters().values()),
      ops::to_host(*device,
                   value_or_throw(load_decoder(*device, source, false))->parameters().values()));
}

INSTANTIATE_TEST_SUITE_P(Models, EveryFamily, testing::ValuesIn(test::dense_models),
                         test::name_of_case);
INSTANTIATE_TEST_SUITE_P(Mixtures, EveryFamily, testing::ValuesIn(test::mixture_models),
                         test::name_of_case);

}  // namespace
}  // namespace troupe::engine::checkpoint
