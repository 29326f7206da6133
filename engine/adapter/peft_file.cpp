#include "engine/adapter/peft_file.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "engine/adapter/peft_config.h"
#include "engine/base/check.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/safetensors_writer.h"

namespace troupe::engine::adapter {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::StoredTensor;

constexpr std::string_view base_layer = ".base_layer";

std::vector<std::int64_t> sizes_of(const Shape& shape) {
  std::vector<std::int64_t> out;
  for (int axis = 0; axis < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

// The name of the parameter. "base_model.model.lm_head.base_layer.weight" gives "lm_head.weight":
// PEFT stores the base's matrix beside the adapter of an output head.
std::string name_of(const StoredTensor& tensor) {
  std::string name = tensor.name.substr(prefix.size());
  if (const auto at = name.find(base_layer); at != std::string::npos)
    name.erase(at, base_layer.size());
  return name;
}

// Checks that the file has all trained tensors and, besides, only copies of frozen weights.
Result<> check_tensors(const SafetensorsFile& file, const models::DecoderSpec& spec) {
  std::unordered_map<std::string, const StoredTensor*> stored;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix))
      return fail(Errc::corrupt, cat(file.path(), ": expected names that begin with ",
                                     quote(prefix), ", found ", quote(tensor.name)));
    if (!stored.emplace(name_of(tensor), &tensor).second)
      return fail(Errc::corrupt,
                  cat(file.path(), ": tensor ", quote(tensor.name), " is there twice"));
  }
  for (const auto& wanted : models::parameter_list(spec)) {
    const auto found = stored.find(wanted.name);
    if (found == stored.end()) {
      if (!wanted.trainable) continue;
      return fail(
          Errc::corrupt,
          cat(file.path(), ": expected tensor \"", prefix, wanted.name, "\" (", stored.size(),
              " tensors found); adapter_config.json describes another adapter"));
    }
    if (found->second->shape != sizes_of(wanted.shape))
      return fail(Errc::corrupt,
                  cat(file.path(), ": tensor ", quote(found->second->name), ": expected ",
                      wanted.shape.text(), " (from adapter_config.json and the base model), found ",
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

models::StoredTensor stored_layout(const std::string& name, const Shape& shape,
                                   const models::DecoderSpec& spec) {
  const auto ends =
      [&](std::string_view projection) {  // A has the base's columns, which are not reordered
        return name.ends_with(cat(projection, models::lora_b)) ||
               name.ends_with(cat(projection, models::lora_magnitude));
      };
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

std::vector<float> to_file(const models::StoredTensor& form, std::vector<float> values) {
  return form.plain()
             ? values
             : models::assemble_stored(form, [&](const std::string&) { return values.data(); });
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

Result<> load_adapter(const std::string& folder, models::Decoder& model) {
  const auto file = SafetensorsFile::open(cat(folder, "/", weights_file));
  RETURN_IF_ERROR(file);
  RETURN_IF_ERROR(check_tensors(*file, model.spec()));
  nn::Parameters& parameters = model.parameters();
  std::vector<float> values;
  for (const auto& tensor : file->tensors()) {
    nn::Parameter* const own = parameters.find(name_of(tensor));
    if (own == nullptr && model.whole().find(name_of(tensor)) != nullptr) continue;
    check(own != nullptr, cat("load_adapter: no ", name_of(tensor)));
    nn::Parameter& parameter = *own;
    const auto form = stored_layout(parameter.name, parameter.logical_shape(), model.spec());
    values.resize(
        static_cast<std::size_t>(form.plain() ? parameter.value.count() : tensor.count()));
    auto read = form.plain() ? file->read_part(tensor.name, parameter.shard, values)
                             : file->read_f32(tensor.name, values);
    if (!read) return read;
    RETURN_IF_ERROR(checkpoint::check_finite(values, file->path(), tensor.name));
    if (!form.plain()) {
      const auto whole = from_file(form, std::move(values));
      values.resize(static_cast<std::size_t>(parameter.value.count()));
      nn::copy_shard(whole, parameter, values);
    }
    if (parameter.trainable)
      parameters.device().upload(parameter.value, values);
    else if (ops::to_host(parameters.device(), parameter.value) != values)
      return fail(Errc::unsupported, cat(file->path(), ": tensor ", quote(tensor.name),
                                         " differs from the base model's: the adapter belongs to "
                                         "another base, or its embedding was changed"));
  }
  return {};
}

Result<> save_adapter(const std::string& folder, nn::LogicalTensors& tensors,
                      const LoraConfig& config, const models::DecoderSpec& spec,
                      const std::string& base) {
  std::vector<checkpoint::SafetensorsWriter::Plan> plans;
  std::unordered_map<std::string, std::size_t> indices;
  const auto& all = tensors.parameters().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    plans.push_back(
        {cat(prefix, all[i].name), checkpoint::StoredType::f32, sizes_of(all[i].logical_shape())});
    indices.emplace(plans.back().name, i);
  }
  auto writer = checkpoint::SafetensorsWriter::create(cat(folder, "/", weights_file), plans);
  RETURN_IF_ERROR(writer);
  for (const auto& tensor : writer->tensors()) {
    const std::size_t index = indices.at(tensor.name);
    const auto form = stored_layout(all[index].name, all[index].logical_shape(), spec);
    RETURN_IF_ERROR(writer->write(tensor.name, to_file(form, tensors.read(0, index))));
  }
  RETURN_IF_ERROR(writer->finish());
  const Json json = to_peft_config(config, spec, base);
  RETURN_IF_ERROR(checkpoint::write_new_file(cat(folder, "/", config_file), json.dump(2) + "\n"));
  return sync_directory(folder);
}

}  // namespace troupe::engine::adapter
