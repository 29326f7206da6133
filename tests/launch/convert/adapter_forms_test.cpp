// PEFT's adapters in the form of Megatron's checkpoints, and back.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "engine/adapter/peft_file.h"
#include "engine/checkpoint/safetensors.h"
#include "launch/tools/convert/adapter_forms.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::checkpoint::SafetensorsFile;
using engine::checkpoint::SafetensorsWriter;
using engine::checkpoint::StoredType;
using testing::HasSubstr;
namespace convert = tools::convert;

using Values = std::map<std::string, std::vector<float>>;

Values tensors_of(const std::string& path) {
  const auto file = value_or_throw(SafetensorsFile::open(path));
  Values out;
  for (const auto& tensor : file.tensors()) {
    std::vector<float>& values = out[tensor.name];
    values.resize(static_cast<std::size_t>(tensor.count()));
    value_or_throw(file.read_f32(tensor.name, values));
  }
  return out;
}

/// An adapter of rank 3 of the modules that end as the parameter says, beside a model of five
/// layers, in f32.
class AdapterForms : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  AdapterForms() {
    for (const std::string& folder : {hf_, peft_}) std::filesystem::create_directory(folder);
    const auto spec = put_small_model(hf_, small_config("LlamaForCausalLM"));
    std::vector<SafetensorsWriter::Plan> plans;
    for (const auto& weight : engine::models::stored_tensors(spec)) {
      const std::string module = weight.name.substr(0, weight.name.rfind('.'));
      if (std::ranges::none_of(GetParam(), [&](const auto& end) { return module.ends_with(end); }))
        continue;
      const auto shape = weight.shape();
      plans.push_back(
          {cat("base_model.model.", module, ".lora_A.weight"), StoredType::f32, {rank, shape[1]}});
      plans.push_back(
          {cat("base_model.model.", module, ".lora_B.weight"), StoredType::f32, {shape[0], rank}});
    }
    auto writer = value_or_throw(SafetensorsWriter::create(weights(peft_), plans));
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0, 0.3F);
    for (const auto& tensor : writer.tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.count()));
      for (float& value : values) value = normal(random);
      value_or_throw(writer.write(tensor.name, values));
    }
    value_or_throw(writer.finish());
    Json::Array targets;
    for (const auto& end : GetParam()) targets.emplace_back(end);
    const Json config = Json::Object{{"peft_type", "LORA"},
                                     {"r", std::int64_t{rank}},
                                     {"lora_alpha", alpha},
                                     {"target_modules", std::move(targets)}};
    value_or_throw(write_file_durably(peft_ + "/adapter_config.json", config.dump()));
  }

  static std::string weights(const std::string& folder) {
    return folder + "/adapter_model.safetensors";
  }
  void to_megatron(int tensor, int pipeline, const std::string& to) const {
    convert::ConvertOptions options;
    options.save_dir = to;
    options.use_mcore = true;
    options.tensor = tensor;
    options.layers.pipeline = pipeline;
    value_or_throw(convert::adapter_to_megatron(peft_, hf_, options, 4));
  }

  static constexpr std::int64_t rank = 3;
  static constexpr double alpha = 7;
  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf", peft_ = root_ + "/peft";
};

TEST_P(AdapterForms, ComeBackWithTheSameNumbers) {
  for (const auto& [tensor, pipeline] : {std::pair{1, 1}, {2, 2}, {4, 1}}) {
    const std::string to = cat(root_, "/mg", tensor, pipeline), back = to + "-peft";
    to_megatron(tensor, pipeline, to);
    EXPECT_EQ(content(to + "/latest_checkpointed_iteration.txt"), "4");
    value_or_throw(
        convert::adapter_to_peft({.folder = to, .rank = rank, .alpha = alpha}, hf_, back));
    EXPECT_EQ(tensors_of(weights(back)), tensors_of(weights(peft_)));
    const Json config = value_or_throw(parse_json(content(back + "/adapter_config.json"), back));
    EXPECT_EQ(config.find("r")->integer(), rank);
    EXPECT_EQ(config.find("lora_alpha")->number(), alpha);
  }
}

// base + alpha / rank * B A in f64, rounded once.
TEST_P(AdapterForms, AreMergedAsTheProductOfTheirMatrices) {
  to_megatron(2, 1, root_ + "/lora");
  convert::ConvertOptions options;
  options.load_dir = hf_;
  options.save_dir = root_ + "/mg";
  options.use_mcore = true;
  options.tensor = 2;
  options.params_dtype = "fp32";
  value_or_throw(convert::convert(options));
  options = {.load_type = "mg", .save_type = "hf"};
  options.load_dir = root_ + "/mg";
  options.save_dir = hf_;
  options.params_dtype = "fp32";
  options.adapter = {.folder = root_ + "/lora", .rank = rank, .alpha = alpha};
  const Values merged =
                   tensors_of(value_or_throw(convert::convert(options)) + "/model.safetensors"),
               adapter = tensors_of(weights(peft_));
  Values expected = tensors_of(hf_ + "/model.safetensors");
  for (const auto& [name, a] : adapter) {
    const auto at = name.find(".lora_A.weight");
    if (at == std::string::npos) continue;
    const std::string module = name.substr(17, at - 17);
    const auto& b = adapter.at(cat("base_model.model.", module, ".lora_B.weight"));
    std::vector<float>& weight = expected.at(module + ".weight");
    const std::size_t columns = a.size() / rank;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      double sum = 0;
      for (std::size_t r = 0; r < rank; ++r)
        sum += double{b[i / columns * rank + r]} * a[r * columns + i % columns];
      weight[i] = static_cast<float>(weight[i] + alpha / rank * sum);
    }
  }
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(merged.at(name).size(), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(merged.at(name)[i], values[i], std::abs(values[i]) * 1.2e-7F) << name << ' ' << i;
  }
}

TEST_P(AdapterForms, NameWhatContradictsThem) {
  to_megatron(1, 1, root_ + "/lora");
  const auto problem = [&](const engine::checkpoint::AdapterSettings& settings) {
    const auto read = convert::adapter_to_peft(settings, hf_, root_ + "/other");
    return read ? std::string("taken") : read.error().what;
  };
  EXPECT_THAT(problem({.folder = root_ + "/lora", .rank = 2, .alpha = alpha}),
              HasSubstr("--lora-r 2, found rank"));
  EXPECT_THAT(problem({.folder = root_ + "/lora", .rank = rank}), HasSubstr("--lora-alpha"));
}

INSTANTIATE_TEST_SUITE_P(
    Modules, AdapterForms,
    testing::Values(std::vector<std::string>{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                                             "up_proj", "down_proj"},
                    std::vector<std::string>{"v_proj"},
                    std::vector<std::string>{"gate_proj", "up_proj", "o_proj"}));

}  // namespace
}  // namespace troupe::launch
