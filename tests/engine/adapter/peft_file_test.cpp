// Adapter files: what is written is read again, and hostile ones are refused with words before
// anything is allocated for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>

#include "engine/adapter/peft_file.h"
#include "engine/base/files/file.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/support/grid_decoder.h"

namespace troupe::engine::adapter {
namespace {

using testing::HasSubstr;

struct AdapterFile : testing::Test {
  AdapterFile() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    model.spec.lora = value_or_throw(resolve_targets(config, model.spec, ""));
    decoder = test::grid_decoder(*device, model, 3, test::Mesh(), false);
  }
  ~AdapterFile() override { std::filesystem::remove_all(folder); }

  void save() {
    checkpoint::TensorParts tensors(decoder->parameters().trained(),
                                    {decoder->parameters().trained().values()});
    value_or_throw(save_adapter(folder, tensors, config, decoder->spec(), "base"));
  }
  // The saved file with one tensor changed, added (no such name) or left out (no values).
  void rewrite(const std::string& name, std::vector<std::int64_t> shape,
               std::vector<float> values) {
    const std::string path = folder + "/adapter_model.safetensors";
    std::map<std::string, std::vector<float>> all;
    std::vector<checkpoint::SafetensorsWriter::Plan> plans;
    {
      const auto file = value_or_throw(checkpoint::SafetensorsFile::open(path));
      for (const auto& tensor : file.tensors()) {
        if (tensor.name == name) continue;
        plans.push_back({tensor.name, tensor.type, tensor.shape});
        all[tensor.name].resize(static_cast<std::size_t>(tensor.count()));
        value_or_throw(file.read_f32(tensor.name, all[tensor.name]));
      }
    }
    if (!values.empty()) {
      plans.push_back({name, checkpoint::StoredType::f32, std::move(shape)});
      all[name] = std::move(values);
    }
    std::filesystem::remove(path);
    auto writer = value_or_throw(checkpoint::SafetensorsWriter::create(path, plans));
    for (const auto& tensor : std::vector(writer.tensors()))
      value_or_throw(writer.write(tensor.name, all[tensor.name]));
    value_or_throw(writer.finish());
  }
  std::string refusal() {
    auto base = decoder->spec();
    base.lora.reset();
    const auto read = read_adapter(folder, base);
    if (!read) return read.error().what;
    const auto loaded = load_adapter(folder, *decoder);
    return loaded ? "taken" : loaded.error().what;
  }

  const std::string folder = testing::TempDir() + "troupe_adapter_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
  std::unique_ptr<ops::Device> device = ops::make_cpu_device({.threads = 1});
  LoraConfig config{.targets = {"q_proj", "down_proj"}, .rank = 2, .alpha = 4, .dora = true};
  test::GridModel model = test::grid_model("", 4, 2, 1, false, false);
  std::unique_ptr<models::Decoder> decoder;
  const std::string q_a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
};

TEST_F(AdapterFile, ThatIsWrittenIsReadAgainToTheBit) {
  save();
  const auto before = ops::to_host(*device, decoder->parameters().values());
  device->fill(decoder->parameters().trained().values(), 0);
  EXPECT_EQ(refusal(), "taken");
  EXPECT_EQ(ops::to_host(*device, decoder->parameters().values()), before);
  EXPECT_TRUE(is_adapter(folder));
}

// Cohere's pairs are neighbours in its files: rows 2i and 2i + 1 of a head of 6 there are rows i
// and i + 3 here.
TEST_F(AdapterFile, HasItsRowsInTheOrderOfItsBase) {
  model.spec.architecture = "CohereForCausalLM";
  model.spec.head_order = {6, 6, true};
  decoder = test::grid_decoder(*device, model, 3, test::Mesh(), false);
  save();
  const auto file =
      value_or_throw(checkpoint::SafetensorsFile::open(folder + "/adapter_model.safetensors"));
  for (const std::string tensor :
       {"self_attn.q_proj.lora_B.weight", "self_attn.q_proj.lora_magnitude_vector"}) {
    const std::string name = "model.layers.1." + tensor;
    const auto inside = ops::to_host(*device, decoder->parameters().at(name).value);
    std::vector<float> stored(inside.size());
    value_or_throw(file.read_f32("base_model.model." + name, stored));
    const std::size_t columns = inside.size() / 24;
    for (std::size_t row = 0; row < 24; ++row)
      for (std::size_t c = 0; c < columns; ++c)
        EXPECT_EQ(stored[row * columns + c],
                  inside[(row / 6 * 6 + row % 6 / 2 + row % 2 * 3) * columns + c])
            << tensor << " row " << row;
  }
  const auto before = ops::to_host(*device, decoder->parameters().values());
  device->fill(decoder->parameters().trained().values(), 0);
  value_or_throw(load_adapter(folder, *decoder));
  EXPECT_EQ(ops::to_host(*device, decoder->parameters().values()), before);
}

TEST_F(AdapterFile, WithAnotherShapeIsRefused) {
  save();
  rewrite(q_a, {3, 20}, std::vector<float>(60, 0.5f));
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("q_proj.lora_A.weight"),
                                        HasSubstr("expected [2, 20]"), HasSubstr("found [3, 20]")));
}

TEST_F(AdapterFile, WithoutATensorIsRefused) {
  save();
  rewrite(q_a, {}, {});
  EXPECT_THAT(refusal(), HasSubstr("expected tensor \"" + q_a));
}

TEST_F(AdapterFile, WithATensorTooManyIsRefused) {
  save();
  rewrite("base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", {2, 20},
          std::vector<float>(40, 0.5f));
  EXPECT_THAT(refusal(), HasSubstr("do not describe tensor"));
}

TEST_F(AdapterFile, WithANameOfAnotherKindIsRefused) {
  save();
  rewrite("model.layers.0.x", {1}, {1});
  EXPECT_THAT(refusal(), HasSubstr("names that begin with"));
}

TEST_F(AdapterFile, WithNanIsRefused) {
  save();
  std::vector<float> values(40, 0.5f);
  values[17] = std::numeric_limits<float>::quiet_NaN();
  rewrite(q_a, {2, 20}, values);
  EXPECT_THAT(refusal(), HasSubstr("q_proj.lora_A.weight"));
}

TEST_F(AdapterFile, WithAnotherBasesWeightIsRefusedAndWithItsOwnTaken) {
  save();
  const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight";
  auto values = ops::to_host(
      *device, decoder->parameters().at("model.layers.0.self_attn.q_proj.weight").value);
  rewrite(name, {24, 20}, values);
  EXPECT_EQ(refusal(), "taken");
  values[5] += 1;
  rewrite(name, {24, 20}, values);
  EXPECT_THAT(refusal(), HasSubstr("differs from the base model's"));
}

TEST_F(AdapterFile, ThatIsAPickleIsNeverOpened) {
  save();
  std::filesystem::rename(folder + "/adapter_model.safetensors", folder + "/adapter_model.bin");
  EXPECT_THAT(refusal(), HasSubstr("pickle"));
}

TEST_F(AdapterFile, CutShortIsRefused) {
  save();
  const auto size = std::filesystem::file_size(folder + "/adapter_model.safetensors");
  std::filesystem::resize_file(folder + "/adapter_model.safetensors", size - 4);
  EXPECT_THAT(refusal(), HasSubstr("adapter_model.safetensors"));
}

}  // namespace
}  // namespace troupe::engine::adapter
