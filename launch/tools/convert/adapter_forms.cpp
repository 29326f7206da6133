#include "launch/tools/convert/adapter_forms.h"

#include <algorithm>

#include "engine/adapter/peft_config.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/files/file.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/adapter_reader.h"
#include "engine/checkpoint/megatron/adapter_writer.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/models/spec.h"

namespace troupe::launch::tools::convert {
namespace {

namespace adapter = engine::adapter;
namespace checkpoint = engine::checkpoint;
namespace models = engine::models;
using checkpoint::JoinedAdapter;

Result<models::DecoderSpec> spec_of(const std::string& model) {
  const std::string path = model + "/config.json";
  const auto config = read_json(path);
  RETURN_IF_ERROR(config);
  return models::read_spec(*config, path);
}

std::string tensor_of(const std::string& module, std::string_view kind) {
  return cat(adapter::prefix, module, kind);
}

/// The matrices in the file, in the order of their names.
Result<> write_tensors(const JoinedAdapter& from, const std::string& path) {
  std::vector<checkpoint::SafetensorsWriter::Plan> plans;
  const auto plan = [&](const std::string& module, std::string_view kind, std::int64_t rows,
                        std::int64_t columns) {
    plans.push_back({tensor_of(module, kind), checkpoint::StoredType::f32, {rows, columns}});
  };
  for (const auto& [module, each] : from.modules) {
    plan(module, models::lora_a, from.rank, std::ssize(each.a) / from.rank);
    plan(module, models::lora_b, std::ssize(each.b) / from.rank, from.rank);
  }
  auto writer = checkpoint::SafetensorsWriter::create(path, plans);
  RETURN_IF_ERROR(writer);
  for (const auto& [module, each] : from.modules) {
    RETURN_IF_ERROR(writer->write(tensor_of(module, models::lora_a), each.a));
    RETURN_IF_ERROR(writer->write(tensor_of(module, models::lora_b), each.b));
  }
  return writer->finish();
}

Result<std::vector<float>> read_tensor(const checkpoint::SafetensorsFile& file,
                                       const std::string& name) {
  const auto* stored = file.find(name);
  if (!stored) return fail(Errc::corrupt, cat(file.path(), ": no tensor ", quote(name)));
  std::vector<float> out(static_cast<std::size_t>(stored->count()));
  RETURN_IF_ERROR(file.read_f32(name, out));
  return out;
}

Result<JoinedAdapter> read_peft(const std::string& folder, const models::DecoderSpec& spec) {
  const auto read = adapter::read_adapter(folder, spec);
  RETURN_IF_ERROR(read);
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::unsupported,
                cat(folder, ": ", what, ", for which MindSpeed's checkpoints have no place"));
  };
  if (read->lora.dora) return refuse("magnitudes (DoRA)");
  if (!read->lora.saved.empty()) return refuse("modules that are trained in full");
  if (read->config.rslora) return refuse("a scale of alpha / sqrt(rank) (rsLoRA)");
  if (!read->config.rank_pattern.empty() || !read->config.alpha_pattern.empty())
    return refuse("ranks or alphas of single modules");
  const auto file = checkpoint::SafetensorsFile::open(cat(folder, '/', adapter::weights_file));
  RETURN_IF_ERROR(file);
  JoinedAdapter out{.rank = read->config.rank, .alpha = read->config.alpha};
  for (const models::LoraTarget& target : read->lora.targets) {
    auto a = read_tensor(*file, tensor_of(target.module, models::lora_a)),
         b = read_tensor(*file, tensor_of(target.module, models::lora_b));
    RETURN_IF_ERROR(a);
    RETURN_IF_ERROR(b);
    out.modules[target.module] = {std::move(*a), std::move(*b)};
  }
  return out;
}

/// Removes modules whose matrices are both zero: parts of a joined matrix that the adapter does not
/// have. A module that was not trained yet has random values in lora_A.
void drop_absent(JoinedAdapter& joined) {
  const auto zero = [](const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float value) { return value == 0; });
  };
  std::erase_if(joined.modules,
                [&](const auto& each) { return zero(each.second.a) && zero(each.second.b); });
}

}  // namespace

Result<> adapter_to_peft(const checkpoint::AdapterSettings& settings, const std::string& model,
                         const std::string& to) {
  auto spec = spec_of(model);
  RETURN_IF_ERROR(spec);
  auto joined = checkpoint::read_megatron_adapter(*spec, settings);
  RETURN_IF_ERROR(joined);
  drop_absent(*joined);
  adapter::LoraConfig config{
      .targets = {}, .rank = static_cast<int>(joined->rank), .alpha = joined->alpha};
  for (const auto& [module, each] : joined->modules) config.targets.push_back(module);
  auto lora = adapter::resolve_targets(config, *spec, cat(settings.folder, ": "));
  RETURN_IF_ERROR(lora);
  spec->lora = std::move(*lora);
  const Json text = adapter::to_peft_config(config, *spec, model);
  auto folder =
      checkpoint::ResultFolder::create(to, Json(Json::Object{{"command", "adapter_to_peft"},
                                                             {"from", settings.folder},
                                                             {"alpha", settings.alpha},
                                                             {"config", text}}));
  RETURN_IF_ERROR(folder);
  if (folder->published()) return {};
  RETURN_IF_ERROR(folder->add(std::string(adapter::weights_file), [&](const std::string& path) {
    return write_tensors(*joined, path);
  }));
  RETURN_IF_ERROR(folder->add(std::string(adapter::config_file), text.dump(2) + "\n"));
  return folder->publish();
}

Result<> adapter_to_megatron(const std::string& from, const std::string& model,
                             const ConvertOptions& options, std::int64_t iteration) {
  const auto spec = spec_of(model);
  RETURN_IF_ERROR(spec);
  const auto joined = read_peft(from, *spec);
  RETURN_IF_ERROR(joined);
  const auto grid = grid_of(options, *spec, model);
  RETURN_IF_ERROR(grid);
  auto folder = checkpoint::ResultFolder::create(
      options.save_dir, Json(Json::Object{{"command", "adapter_to_megatron"}, {"from", from}}));
  RETURN_IF_ERROR(folder);
  if (folder->published()) return {};
  RETURN_IF_ERROR(checkpoint::write_megatron_adapter(*spec, *grid, *joined, iteration, *folder));
  return folder->publish();
}

}  // namespace troupe::launch::tools::convert
