// --lora-load: adapters of MindSpeed-LLM's training beside a checkpoint of Megatron.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "engine/checkpoint/pickle/torch_writer.h"
#include "engine/checkpoint/safetensors.h"
#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::checkpoint::PickleValue;
using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::StoredType;
using engine::checkpoint::TensorSlot;
using engine::checkpoint::TorchWriter;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::int64_t rank = 2, width = 32, inner = 24;
constexpr double alpha = 3;

/// Random values of a tensor by its name, the same on every call.
std::vector<float> values_of(const std::string& name, std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  std::normal_distribution<float> normal(0, 0.3F);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& value : out) value = normal(random);
  return out;
}

/// Two tensor ranks of an adapter of layer 1: of fc1, whose rows are divided, and of the
/// attention's output, whose columns are.
class LoraLoad : public testing::Test {
 protected:
  LoraLoad() {
    fs::create_directory(hf_);
    Json config = small_config("LlamaForCausalLM");
    put_small_model(hf_, config);
    tools::convert::ConvertOptions options;
    options.load_dir = hf_;
    options.save_dir = root_ + "/mg";
    options.tensor = 2;
    options.use_mcore = true;
    options.params_dtype = "fp32";
    value_or_throw(tools::convert::convert(options));
    for (int tensor = 0; tensor < 2; ++tensor) put_rank(tensor);
    value_or_throw(write_file_durably(root_ + "/lora/latest_checkpointed_iteration.txt", "1"));
  }

  void put_rank(int tensor) const {
    const std::string folder = cat(root_, "/lora/iter_0000001/mp_rank_0", tensor);
    fs::create_directories(folder);
    const std::string layer = "base_model.model.decoder.layers.1.";
    const std::vector<std::pair<std::string, TensorSlot>> tensors{
        {layer + "mlp.linear_fc1.lora_A.default.weight", {StoredType::f32, {rank, width}}},
        {layer + "mlp.linear_fc1.lora_B.default.weight", {StoredType::f32, {inner, rank}}},
        {layer + "self_attention.linear_proj.lora_A.default.weight",
         {StoredType::f32, {rank, width / 2}}},
        {layer + "self_attention.linear_proj.lora_B.default.weight",
         {StoredType::f32, {width, rank}}}};
    PickleValue::Dict model, root;
    for (const auto& [name, slot] : tensors) model.items.emplace_back(name, slot);
    root.items = {{"checkpoint_version", 3}, {"iteration", 1}, {"model", std::move(model)}};
    auto writer =
        value_or_throw(TorchWriter::create(folder + "/model_optim_rng.pt", std::move(root)));
    for (const auto& [name, slot] : tensors) {
      const std::vector<float> values = values_of(key(name, tensor), slot.count());
      value_or_throw(writer.write(std::as_bytes(std::span(values))));
    }
    value_or_throw(writer.finish());
  }
  /// A of fc1 and B of the output are the same on both ranks.
  static std::string key(const std::string& name, int tensor) {
    const bool same = name.ends_with("linear_fc1.lora_A.default.weight") ||
                      name.ends_with("linear_proj.lora_B.default.weight");
    return cat(name.substr(name.find("decoder")), same ? 0 : tensor);
  }
  static std::vector<float> lora(const std::string& module, int tensor, std::int64_t count) {
    return values_of(key(cat("decoder.layers.1.", module, ".default.weight"), tensor), count);
  }

  tools::convert::ConvertOptions to_hf() const {
    tools::convert::ConvertOptions options{.load_type = "mg", .save_type = "hf"};
    options.load_dir = root_ + "/mg";
    options.save_dir = hf_;
    options.adapter = {.folder = root_ + "/lora", .rank = rank, .alpha = alpha, .targets = {}};
    return options;
  }
  std::string refusal(const tools::convert::ConvertOptions& options) const {
    const auto done = tools::convert::convert(options);
    return done ? "converted" : done.error().what;
  }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

std::vector<float> weight(const SafetensorsFile& file, const std::string& name) {
  const auto all = file.bytes(*file.find(name));
  std::vector<float> out(all.size() / sizeof(float));
  std::memcpy(out.data(), all.data(), all.size());
  return out;
}

/// A stored weight of BF16 as f32.
std::vector<float> wide(const SafetensorsFile& file, const std::string& name) {
  const auto all = file.bytes(*file.find(name));
  std::vector<float> out;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    std::uint32_t bits = 0;
    std::memcpy(reinterpret_cast<char*>(&bits) + 2, all.data() + i, 2);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    out.push_back(value);
  }
  return out;
}

TEST_F(LoraLoad, AddsTheProductOfEachRank) {
  const std::string folder = value_or_throw(tools::convert::convert(to_hf()));
  const auto before = value_or_throw(SafetensorsFile::open(hf_ + "/model.safetensors")),
             after = value_or_throw(SafetensorsFile::open(folder + "/model.safetensors"));
  const std::string layer = "model.layers.1.";
  // fc1 of rank t holds the rows 12 t .. 12 t + 11 of gate, then those of up.
  for (const bool up : {false, true}) {
    const std::string name = cat(layer, up ? "mlp.up_proj.weight" : "mlp.gate_proj.weight");
    const auto old = wide(before, name), found = weight(after, name);
    for (std::int64_t row = 0; row < inner; ++row) {
      const int tensor = static_cast<int>(row / (inner / 2));
      const auto a = lora("mlp.linear_fc1.lora_A", tensor, rank * width),
                 b = lora("mlp.linear_fc1.lora_B", tensor, inner * rank);
      const std::int64_t local = row % (inner / 2) + (up ? inner / 2 : 0);
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = 0;
        for (std::int64_t r = 0; r < rank; ++r)
          sum += double{b[static_cast<std::size_t>(local * rank + r)]} *
                 a[static_cast<std::size_t>(r * width + c)];
        const auto at = static_cast<std::size_t>(row * width + c);
        EXPECT_EQ(found[at], static_cast<float>(old[at] + alpha / rank * sum)) << name << at;
      }
    }
  }
  const std::string name = layer + "self_attn.o_proj.weight";
  const auto old = wide(before, name), found = weight(after, name);
  for (std::int64_t row = 0; row < width; ++row)
    for (std::int64_t c = 0; c < width; ++c) {
      const int tensor = static_cast<int>(c / (width / 2));
      const auto a = lora("self_attention.linear_proj.lora_A", tensor, rank * width / 2),
                 b = lora("self_attention.linear_proj.lora_B", tensor, width * rank);
      double sum = 0;
      for (std::int64_t r = 0; r < rank; ++r)
        sum += double{b[static_cast<std::size_t>(row * rank + r)]} *
               a[static_cast<std::size_t>(r * width / 2 + c % (width / 2))];
      const auto at = static_cast<std::size_t>(row * width + c);
      EXPECT_EQ(found[at], static_cast<float>(old[at] + alpha / rank * sum)) << at;
    }
  for (const char* same :
       {"model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.q_proj.weight"})
    EXPECT_EQ(weight(after, same), wide(before, same));
}

TEST_F(LoraLoad, ToAnotherDivisionIsTheSameModel) {
  tools::convert::ConvertOptions options = to_hf();
  options.save_type = "mg";
  options.save_dir = root_ + "/merged";
  options.layers.pipeline = 2;
  options.use_mcore = true;
  fs::copy(hf_ + "/config.json", root_ + "/mg/config.json", fs::copy_options::skip_existing);
  value_or_throw(tools::convert::convert(options));
  const std::string direct =
      content(value_or_throw(tools::convert::convert(to_hf())) + "/model.safetensors");
  fs::remove_all(hf_ + "/mg2hf");
  tools::convert::ConvertOptions back = to_hf();
  back.load_dir = root_ + "/merged";
  back.adapter = {};
  EXPECT_TRUE(content(value_or_throw(tools::convert::convert(back)) + "/model.safetensors") ==
              direct);
}

TEST_F(LoraLoad, ChecksTheAdapter) {
  tools::convert::ConvertOptions options = to_hf();
  options.adapter.rank = 8;
  EXPECT_THAT(refusal(options), HasSubstr("--lora-r 8, found rank 2"));
  options = to_hf();
  options.adapter.targets = {"linear_fc1"};
  EXPECT_THAT(refusal(options), HasSubstr("does not name linear_proj"));
  options = to_hf();
  options.adapter.alpha = 0;
  EXPECT_THAT(refusal(options), HasSubstr("--lora-alpha"));
  fs::remove_all(root_ + "/lora/iter_0000001/mp_rank_01");
  EXPECT_THAT(refusal(to_hf()), HasSubstr("1 x 1 ranks, and --load-dir has 2 x 1"));
  options = to_hf();
  options.load_type = "hf";
  options.save_type = "mg";
  EXPECT_THAT(refusal(options), HasSubstr("troupe merge"));
}

}  // namespace
}  // namespace troupe::launch
