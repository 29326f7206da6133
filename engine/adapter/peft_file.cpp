#include "engine/adapter/peft_file.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "engine/adapter/peft_config.h"
#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/output_file.h"
#include "engine/nn/logical_tensors.h"

namespace troupe::engine::adapter {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::StoredTensor;

constexpr std::string_view base_layer = ".base_layer";
constexpr std::string_view embedding = "model.embed_tokens.weight";

constexpr std::string_view experts = ".mlp.experts";

// The projection of experts whose adapter PEFT stores as that of the module of all experts: the
// second one of a layer wraps the first, "experts.base_layer.lora_A.weight".
std::string_view fused_projection(const std::string& layer, bool inner,
                                  const models::LoraSpec& lora) {
  const auto has = [&](std::string_view projection) {
    const std::string module = cat(layer, experts, ".", projection);
    return std::ranges::any_of(lora.targets,
                               [&](const auto& target) { return target.module == module; });
  };
  return inner || !has("down_proj") ? "gate_up_proj" : "down_proj";
}

// The name of the parameter. "base_model.model.lm_head.base_layer.weight" gives "lm_head.weight":
// PEFT stores the base's matrix beside the adapter of an output head.
// The head of a tied model is its embedding, of which a file may have two copies.
std::string name_of(const StoredTensor& tensor, const models::DecoderSpec& spec) {
  std::string name = tensor.name.substr(prefix.size());
  for (const bool inner : {true, false})
    if (const auto at = name.find(cat(experts, inner ? base_layer : "", ".lora_"));
        at != name.npos && spec.lora) {
      const std::string layer = name.substr(0, at);
      return cat(layer, experts, ".", fused_projection(layer, inner, *spec.lora),
                 name.substr(name.find(".lora_")));
    }
  if (const auto at = name.find(base_layer); at != std::string::npos)
    name.erase(at, base_layer.size());
  return spec.tied && name == "lm_head.weight" ? std::string(embedding) : name;
}

// Checks that the file has all trained tensors and, besides, only copies of frozen weights.
Result<> check_tensors(const SafetensorsFile& file, const models::DecoderSpec& spec) {
  std::unordered_map<std::string, const StoredTensor*> stored;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix))
      return fail(Errc::corrupt, cat(file.path(), ": expected names that begin with ",
                                     quote(prefix), ", found ", quote(tensor.name)));
    const auto [known, first] = stored.emplace(name_of(tensor, spec), &tensor);
    const bool second_copy = spec.tied && known->first == embedding &&
                             known->second->name != tensor.name &&
                             known->second->shape == tensor.shape;
    if (!first && !second_copy)
      return fail(Errc::corrupt,
                  cat(file.path(), ": tensor ", quote(tensor.name), " is there twice"));
  }
  for (const auto& wanted : models::parameter_list(spec)) {
    const auto found = stored.find(wanted.name);
    if (found == stored.end()) {
      if (!wanted.trainable) continue;
      return fail(Errc::corrupt, cat(file.path(), ": expected tensor \"", prefix, wanted.name,
                                     "\" (", stored.size(),
                                     " tensors found); adapter_config.json "
                                     "describes another adapter"));
    }
    const auto shape = stored_layout(wanted.name, wanted.shape, spec).shape();
    if (found->second->shape != shape)
      return fail(Errc::corrupt, cat(file.path(), ": tensor ", quote(found->second->name),
                                     ": expected ", checkpoint::shape_text(shape),
                                     " (from adapter_config.json and the base model), found ",
                                     checkpoint::shape_text(found->second->shape)));
    stored.erase(found);
  }
  if (stored.empty()) return {};
  const auto& [name, tensor] =
      *std::ranges::min_element(stored, {}, [](const auto& each) { return each.first; });
  return fail(Errc::corrupt,
              cat(file.path(), ": adapter_config.json and the base model do not describe tensor ",
                  quote(tensor->name), " ", checkpoint::shape_text(tensor->shape)));
}

}  // namespace

std::string stored_name(const std::string& name, const models::DecoderSpec& spec) {
  const auto at = name.find(cat(experts, "."));
  const auto end = name.find(".lora_");
  if (at == name.npos || end == name.npos || !models::fused_experts(name.substr(0, end), spec))
    return name;
  const std::string layer = name.substr(0, at);
  const std::string_view projection =
      std::string_view(name).substr(at + experts.size() + 1, end - at - experts.size() - 1);
  const bool outer = fused_projection(layer, false, *spec.lora) == projection;
  return cat(layer, experts, outer ? "" : base_layer, name.substr(end));
}

models::StoredTensor stored_layout(const std::string& name, const Shape& shape,
                                   const models::DecoderSpec& spec) {
  const auto ends =
      [&](std::string_view projection) {  // A has the base's columns, which are not reordered
        return name.ends_with(cat(projection, models::lora_b)) ||
               name.ends_with(cat(projection, models::lora_magnitude));
      };
  const auto part = name.find(".lora_B.");
  if (const auto fused = models::fused_experts(name.substr(0, part), spec);
      fused && part != name.npos) {
    // [outputs, R * E], of which columns E j + e are those of expert e.
    const std::int64_t count = shape[0], rank = shape[1] / fused->outputs;
    return {.name = name,
            .transposed = true,
            .rows = {{name, 0, count, {}}},
            .columns = shape[1],
            .axes = {fused->outputs, rank * count}};
  }
  const bool rotated = ends(".self_attn.q_proj") || ends(".self_attn.k_proj");
  const bool vector = shape.rank() == 1;
  return {name,
          false,
          {{name, 0, shape[0], rotated ? spec.head_order : models::HeadOrder{}}},
          vector ? 1 : shape[1],
          vector};
}

std::vector<float> from_file(const models::StoredTensor& form, std::vector<float> values) {
  if (form.plain()) return values;
  std::vector<float> out(values.size());
  models::extract_parameter(form, values.data(), form.name, out.data());
  return out;
}

bool is_adapter(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(cat(folder, "/", config_file), ignored);
}

Result<AdapterSpec> read_adapter(const std::string& folder, const models::DecoderSpec& base) {
  const std::string where = cat(folder, "/", config_file);
  const auto json = read_json(where, {.bytes = 16u << 20});
  RETURN_IF_ERROR(json);
  auto config = read_peft_config(*json, where);
  RETURN_IF_ERROR(config);
  auto lora = resolve_targets(*config, base, cat(where, ": "));
  RETURN_IF_ERROR(lora);
  const auto file = SafetensorsFile::open(cat(folder, "/", weights_file));
  if (!file && file.error().code == Errc::not_found &&
      std::filesystem::exists(folder + "/adapter_model.bin"))
    return fail(Errc::not_found, cat(folder,
                                     ": adapter_model.bin is a pickle, which is never opened: save "
                                     "the adapter as safetensors"));
  RETURN_IF_ERROR(file);
  models::DecoderSpec spec = base;
  spec.lora = std::move(*lora);
  RETURN_IF_ERROR(check_tensors(*file, spec));
  const Json* name = json->find("base_model_name_or_path");
  return AdapterSpec{std::move(*config), std::move(*spec.lora),
                     name && name->is_string() ? name->string() : ""};
}

namespace {

/// This rank's part of a tensor, in the order of the parameter.
Result<std::vector<float>> read_values(const SafetensorsFile& file, const StoredTensor& tensor,
                                       const nn::Parameter& parameter,
                                       const models::DecoderSpec& spec) {
  const auto form = stored_layout(parameter.name, parameter.logical_shape(), spec);
  std::vector<float> values(
      static_cast<std::size_t>(form.plain() ? parameter.value.count() : tensor.count()));
  RETURN_IF_ERROR(form.plain() ? file.read_part(tensor.name, parameter.shard, values)
                               : file.read_f32(tensor.name, values));
  RETURN_IF_ERROR(checkpoint::check_finite(values, file.path(), tensor.name));
  if (form.plain()) return values;
  const auto whole = from_file(form, std::move(values));
  values.assign(static_cast<std::size_t>(parameter.value.count()), 0);
  nn::copy_shard(whole, parameter, values);
  return values;
}

Result<> check_copy(const SafetensorsFile& file, const StoredTensor& tensor,
                    const nn::Parameter& parameter, ops::Device& device,
                    const std::vector<float>& values) {
  if (ops::to_host(device, parameter.value) == values) return {};
  return fail(Errc::unsupported, cat(file.path(), ": tensor ", quote(tensor.name),
                                     " differs from the base model's: the adapter belongs to "
                                     "another base, or its embedding was changed"));
}

/// A module of the adapter, and the weight of the base that it belongs to.
struct AdaptedWeight {
  const models::LoraTarget* target = nullptr;
  const nn::Parameter* weight = nullptr;
};

/// The modules whose weights this pipeline stage has.
std::vector<AdaptedWeight> adapted_weights(const models::LoraSpec& lora,
                                           const models::Decoder& base) {
  std::vector<AdaptedWeight> out;
  for (const auto& target : lora.targets) {
    const bool of_head = target.module == "lm_head";
    const std::string name = target.module + ".weight";
    const nn::Parameter* weight = of_head ? base.head().weight : base.parameters().find(name);
    if (of_head && !base.stage().last()) continue;
    check(weight != nullptr || base.pp() != nullptr, cat("load_lora_model: no ", target.module));
    if (weight != nullptr) out.push_back({&target, weight});
  }
  return out;
}

nn::Parameters allocate(const models::LoraSpec& lora, const std::vector<AdaptedWeight>& adapted,
                        ops::Device& device) {
  std::vector<nn::ParameterSpec> wanted;
  for (const auto& [target, weight] : adapted) {
    const nn::ParameterSpec of_base{weight->name, weight->value.shape(), weight->shard};
    std::ranges::move(models::lora_tensors(*target, of_base, lora.dora, true),
                      std::back_inserter(wanted));
  }
  return {device, wanted, false};
}

std::unordered_map<const nn::Parameter*, nn::Lora> modules_of(
    const std::vector<AdaptedWeight>& adapted, nn::Parameters& tensors) {
  static constexpr bool enabled = true;
  std::unordered_map<const nn::Parameter*, nn::Lora> modules;
  for (const auto& [target, weight] : adapted)
    modules[weight] = {.a = &tensors.at(cat(target->module, models::lora_a)),
                       .b = &tensors.at(cat(target->module, models::lora_b)),
                       .magnitude = tensors.find(cat(target->module, models::lora_magnitude)),
                       .scale = static_cast<float>(target->scale),
                       .enabled = &enabled};
  return modules;
}

}  // namespace

Result<std::shared_ptr<const nn::LoraModel>> load_lora_model(const std::string& folder,
                                                             const models::Decoder& base) {
  check(!base.spec().lora && base.spec().labels == 0,
        "load_lora_model: expected a language model without an adapter");
  const auto adapter = read_adapter(folder, base.spec());
  RETURN_IF_ERROR(adapter);
  const models::LoraSpec& lora = adapter->lora;
  if (base.spec().normalized_head && lora.targets.back().module == "lm_head")
    return fail(Errc::usage, cat(folder,
                                 ": an adapter of lm_head is not possible for a model whose output "
                                 "matrix is normalized (NormHead)"));
  for (const auto& target : lora.targets)
    if (target.module.find(cat(experts, ".")) != target.module.npos)
      return fail(Errc::unsupported, cat(folder, ": an adapter of experts (", target.module,
                                         ") cannot be one of several adapters beside a model: "
                                         "merge it into the model "
                                         "(troupe merge)"));
  const auto file = SafetensorsFile::open(cat(folder, "/", weights_file));
  RETURN_IF_ERROR(file);
  const std::vector<AdaptedWeight> adapted = adapted_weights(lora, base);
  nn::Parameters tensors = allocate(lora, adapted, base.device());
  for (const auto& tensor : file->tensors()) {
    const std::string name = name_of(tensor, base.spec());
    nn::Parameter* const own = tensors.find(name);
    const nn::Parameter* const of_base = own ? nullptr : base.parameters().find(name);
    const nn::Parameter* const parameter = own ? own : of_base;
    if (parameter == nullptr && base.pp() != nullptr) continue;  // of another stage
    check(parameter != nullptr, cat("load_lora_model: no ", name));
    const auto values = read_values(*file, tensor, *parameter, base.spec());
    RETURN_IF_ERROR(values);
    if (own)
      base.device().upload(own->value, *values);
    else
      RETURN_IF_ERROR(check_copy(*file, tensor, *of_base, base.device(), *values));
  }
  auto modules = modules_of(adapted, tensors);
  return std::make_shared<const nn::LoraModel>(std::move(tensors), std::move(modules));
}

Result<> load_adapter(const std::string& folder, models::Decoder& model) {
  const auto file = SafetensorsFile::open(cat(folder, "/", weights_file));
  RETURN_IF_ERROR(file);
  RETURN_IF_ERROR(check_tensors(*file, model.spec()));
  nn::Parameters& parameters = model.parameters();
  for (const auto& tensor : file->tensors()) {
    const std::string name = name_of(tensor, model.spec());
    nn::Parameter* const own = parameters.find(name);
    if (own == nullptr && model.whole().find(name) != nullptr) continue;
    check(own != nullptr, cat("load_adapter: no ", name));
    const auto values = read_values(*file, tensor, *own, model.spec());
    RETURN_IF_ERROR(values);
    if (own->trainable)
      parameters.device().upload(own->value, *values);
    else
      RETURN_IF_ERROR(check_copy(*file, tensor, *own, parameters.device(), *values));
  }
  return {};
}

Result<> save_adapter(const std::string& folder, checkpoint::TensorParts& tensors,
                      const LoraConfig& config, const models::DecoderSpec& spec,
                      const std::string& base) {
  std::vector<checkpoint::TensorSource> sources;
  for (const auto& parameter : tensors.parameters().all()) {
    auto layout = stored_layout(parameter.name, parameter.logical_shape(), spec);
    layout.name = cat(prefix, stored_name(parameter.name, spec));
    sources.push_back({std::move(layout), 0});
  }
  RETURN_IF_ERROR(
      tensors.write(cat(folder, "/", weights_file), checkpoint::StoredType::f32, sources));
  const auto write_config = [&]() -> Result<> {
    const Json json = to_peft_config(config, spec, base);
    RETURN_IF_ERROR(checkpoint::write_new_file(cat(folder, "/", config_file), json.dump(2) + "\n"));
    return sync_directory(folder);
  };
  return tensors.agree(tensors.is_root() ? write_config() : Result<>(), folder);
}

}  // namespace troupe::engine::adapter
