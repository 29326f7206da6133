#include "engine/checkpoint/safetensors_writer.h"

#include <gmock/gmock.h>

#include <bit>

#include "engine/base/errors/check.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/half.h"
#include "engine/checkpoint/load_parameters.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {
namespace {

using ::testing::HasSubstr;

// Files of the Rust library are the oracle: what it wrote, we write again byte for byte.
TEST(SafetensorsWriter, WritesTheBytesOfTheRustLibrary) {
  for (const std::string name : {"digit-completion", "tinystories-656k"}) {
    Scratch scratch;
    const auto file = SafetensorsFile::open(data_folder + name + "/model.safetensors");
    ASSERT_TRUE(file);
    std::vector<SafetensorsWriter::Plan> plans;
    for (const auto& tensor : file->tensors())
      plans.insert(plans.begin(), {tensor.name, tensor.type, tensor.shape});  // any order
    auto writer = SafetensorsWriter::create(scratch / "x", plans, file->metadata());
    ASSERT_TRUE(writer) << writer.error().what;
    for (const auto& tensor : writer->tensors())
      ASSERT_TRUE(writer->write_bytes(tensor.name, file->bytes(*file->find(tensor.name))));
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ(slurp(scratch / "x"), slurp(data_folder + name + "/model.safetensors")) << name;
  }
}

TEST(SafetensorsWriter, EveryBitPatternOfEachTypeComesBack) {
  Scratch scratch;
  std::vector<float> f16(65536), bf16(65536), f32(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    f16[i] = f16_to_float(static_cast<std::uint16_t>(i));
    bf16[i] = bf16_to_float(static_cast<std::uint16_t>(i));
    f32[i] = std::bit_cast<float>(i * 65537u);
  }
  auto writer = SafetensorsWriter::create(scratch / "x", {{"half", StoredType::f16, {256, 256}},
                                                          {"brain", StoredType::bf16, {65536}},
                                                          {"float", StoredType::f32, {65536}}});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write("float", f32));  // wider types come first
  ASSERT_TRUE(writer->write("brain", bf16));
  ASSERT_TRUE(writer->write("half", f16));
  ASSERT_TRUE(writer->finish());
  const auto file = SafetensorsFile::open(scratch / "x");
  ASSERT_TRUE(file) << file.error().what;
  const auto same_bits = [&](std::string_view name, const std::vector<float>& values) {
    std::vector<float> read(values.size());
    EXPECT_TRUE(file->read_f32(name, read));
    return std::memcmp(read.data(), values.data(), values.size() * sizeof(float)) == 0;  // NaN too
  };
  EXPECT_TRUE(same_bits("half", f16));
  EXPECT_TRUE(same_bits("brain", bf16));
  EXPECT_TRUE(same_bits("float", f32));
}

TEST(SafetensorsWriter, AnAbandonedFileIsRemovedAndAnExistingOneKept) {
  Scratch scratch;
  { const auto writer = SafetensorsWriter::create(scratch / "x", {{"a", StoredType::f32, {1}}}); }
  EXPECT_FALSE(std::filesystem::exists(scratch / "x"));
  put(scratch / "y", "mine");
  EXPECT_THAT(SafetensorsWriter::create(scratch / "y", {{"a", StoredType::f32, {1}}}).error().what,
              HasSubstr("cannot create: File exists"));
  EXPECT_EQ(slurp(scratch / "y"), "mine");
}

TEST(SafetensorsWriter, MisuseIsABug) {
  Scratch scratch;
  EXPECT_THROW(SafetensorsWriter::create(scratch / "x",
                                         {{"a", StoredType::f32, {1}}, {"a", StoredType::f32, {1}}})
                   .value(),
               Bug);
  auto writer = SafetensorsWriter::create(scratch / "x", {{"a", StoredType::f32, {1}}});
  EXPECT_THROW((void)writer->finish(), Bug);
  EXPECT_THROW((void)writer->write("b", std::vector<float>(1)), Bug);
  EXPECT_THROW((void)writer->write("a", std::vector<float>(2)), Bug);
}

struct Save : ::testing::Test {
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  Scratch scratch;
  nn::Parameters load(const std::string& folder) {
    std::vector<nn::ParameterSpec> wanted;
    const auto weights = SafetensorsFolder::open(folder);
    for (const auto& place : weights->all()) {
      const auto& s = place.tensor->shape;
      wanted.push_back({place.tensor->name, s.size() == 1 ? Shape{s[0]} : Shape{s[0], s[1]}});
    }
    nn::Parameters out(*device, wanted, false);
    EXPECT_TRUE(load_parameters(folder, out));
    return out;
  }
};

TEST_F(Save, AModelSavedInItsOwnTypeHasItsOwnBytes) {
  const std::string digits = data_folder + "digit-completion",
                    stories = data_folder + "stories260k/hf";
  const auto bf16 = load(digits);
  ASSERT_TRUE(save_parameters(scratch.path(), bf16, {.source = digits, .type = StoredType::bf16}));
  EXPECT_EQ(slurp(scratch / "model.safetensors"), slurp(digits + "/model.safetensors"));
  Scratch other;
  const auto f32 = load(stories);
  ASSERT_TRUE(save_parameters(other.path(), f32, {.source = stories, .tied = true}));
  EXPECT_EQ(slurp(other / "model.safetensors"), slurp(stories + "/model.safetensors"));
  for (const std::string name :
       {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    EXPECT_EQ(slurp(other / name), slurp(stories + "/" + name)) << name;
  EXPECT_FALSE(std::filesystem::exists(other / "merges.txt"));
}

TEST_F(Save, ConfigStatesWhatIsStored) {
  const auto model = load(data_folder + "digit-completion");
  ASSERT_TRUE(save_parameters(scratch.path(), model, {.source = data_folder + "digit-completion"}));
  const auto before = read_json(data_folder + "digit-completion/config.json"),
             after = read_json(scratch / "config.json");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->find("torch_dtype")->string(), "float32");
  Json expected = *before;
  expected.set("torch_dtype", "float32");
  EXPECT_EQ(*after, expected);  // nothing else changed
  Scratch modern, out;
  put(modern / "config.json", R"({"dtype":"float32","eps":1e-06})");
  ASSERT_TRUE(save_parameters(out.path(), model,
                              {.source = modern.path(), .tied = true, .type = StoredType::bf16}));
  EXPECT_EQ(read_json(out / "config.json")->dump(),
            R"({"dtype":"bfloat16","eps":1e-06,"tie_word_embeddings":true})");
}

TEST_F(Save, ALargeModelBecomesShardsThatLoadTheSame) {
  const auto model = load(data_folder + "stories260k/hf");
  ASSERT_TRUE(save_parameters(scratch.path(), model, {.shard_bytes = 300000}));
  EXPECT_FALSE(std::filesystem::exists(scratch / "model.safetensors"));
  const auto weights = SafetensorsFolder::open(scratch.path());
  ASSERT_TRUE(weights) << weights.error().what;
  EXPECT_EQ(weights->files().size(), 4u);  // 1,040,128 bytes
  for (const auto& file : weights->files())
    EXPECT_LE(std::filesystem::file_size(file.path()), 303000u);
  nn::Parameters again(
      *device,
      [&] {
        std::vector<nn::ParameterSpec> wanted;
        for (const auto& p : model.all()) wanted.push_back({p.name, p.value.shape()});
        return wanted;
      }(),
      false);
  ASSERT_TRUE(load_parameters(scratch.path(), again));
  EXPECT_EQ(ops::to_host(*device, again.values()), ops::to_host(*device, model.values()));
  EXPECT_EQ(read_json(scratch / "model.safetensors.index.json")
                ->find("metadata")
                ->find("total_size")
                ->integer(),
            1040128);
}

TEST_F(Save, NothingIsOverwritten) {
  const auto model = load(data_folder + "stories260k/hf");
  put(scratch / "model.safetensors", "mine");
  EXPECT_THAT(save_parameters(scratch.path(), model, {}).error().what, HasSubstr("File exists"));
  EXPECT_EQ(slurp(scratch / "model.safetensors"), "mine");
}

}  // namespace
}  // namespace troupe::engine::checkpoint
