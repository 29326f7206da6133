#include "launch/tools/convert/convert.h"

#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/megatron/megatron_folder.h"
#include "engine/checkpoint/megatron/megatron_writer.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/models/overrides.h"
#include "launch/tools/convert/adapter_forms.h"
#include "launch/tools/convert/hf_folder.h"
#include "launch/tools/convert/watched_source.h"

namespace troupe::launch::tools::convert {
namespace checkpoint = engine::checkpoint;
namespace models = engine::models;

namespace {

using checkpoint::MegatronNames;
using checkpoint::StoredType;

/// The model, and where its config.json is.
struct Model {
  std::string folder, config_path;
  std::string config;  ///< text of config.json, with its overrides
  models::DecoderSpec spec;
};

struct Source {
  std::unique_ptr<checkpoint::SafetensorsFolder> folder;
  std::unique_ptr<checkpoint::WeightSource> weights;
  checkpoint::MegatronFolder* megatron = nullptr;  ///< the weights, where they are Megatron's
  std::vector<std::string> files;
};

/// The optimizer's state of a checkpoint of Megatron core.
struct Optimizer {
  explicit Optimizer(const checkpoint::MegatronFolder& folder) {
    for (std::size_t kind = 0; kind < tensors.size(); ++kind)
      tensors[kind].emplace(folder, static_cast<checkpoint::OptimizerTensor>(kind));
    for (std::size_t kind = 0; kind < tensors.size(); ++kind)
      if (kind + 1 < tensors.size() || folder.has_masters()) source.tensors[kind] = &*tensors[kind];
    source.entries = folder.optimizer_entries();
  }
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  std::array<std::optional<checkpoint::OptimizerTensors>, 3> tensors;
  checkpoint::OptimizerSource source;
};

/// Compares flags with config.json.
Result<> check_flags(const ConvertOptions& options, const Model& model) {
  const auto contradicts = [&](std::string_view flag, std::string_view what) {
    return fail(Errc::usage, cat(flag, ": the model of ", model.config_path, " has ", what));
  };
  const models::DecoderSpec& spec = model.spec;
  if (options.add_qkv_bias && !spec.attention_bias)
    return contradicts("--add-qkv-bias", "no biases of queries, keys and values");
  if (options.add_dense_bias && !spec.output_bias)
    return contradicts("--add-dense-bias", "no bias of the attention's output");
  if (options.post_norm && spec.norm_placement != models::NormPlacement::both)
    return contradicts("--post-norm", "no norms behind attention and MLP");
  if (options.num_layers > 0 && options.num_layers != spec.layers)
    return contradicts(cat("--num-layers ", options.num_layers), cat(spec.layers, " layers"));
  return {};
}

Result<Model> read_model(const ConvertOptions& options) {
  const bool to_hf = options.save_type == "hf";
  Model out{.folder = to_hf ? options.save_dir : options.load_dir};
  out.config_path = out.folder + "/config.json";
  auto text = read_file(out.config_path, std::size_t{16} << 20);
  if (!text && text.error().code == Errc::not_found)
    return fail(Errc::not_found, cat(text.error().what,
                                     to_hf ? "; set --save-dir to the original Hugging Face folder"
                                           : "; copy that of the original model to it"));
  RETURN_IF_ERROR(text);
  auto config = parse_json(*text, out.config_path);
  RETURN_IF_ERROR(config);
  config = models::with_overrides(std::move(*config), options.overrides, out.config_path);
  RETURN_IF_ERROR(config);
  const bool same = options.overrides.is_null() || options.overrides.object().empty();
  out.config = same ? std::move(*text) : config->dump(2) + "\n";
  auto spec = models::read_spec(*config, out.config_path);
  RETURN_IF_ERROR(spec);
  out.spec = std::move(*spec);
  RETURN_IF_ERROR(check_flags(options, out));
  if (options.orm != (out.spec.labels > 0))
    return fail(Errc::usage, cat(out.config_path, options.orm ? ": --orm, but no score head"
                                                              : ": a score head; add --orm"));
  return out;
}

Result<std::optional<StoredType>> type_of(const std::string& name) {
  if (name.empty()) return std::optional<StoredType>();
  if (name == "fp32") return std::optional(StoredType::f32);
  if (name == "fp16") return std::optional(StoredType::f16);
  if (name == "bf16") return std::optional(StoredType::bf16);
  return fail(Errc::usage, cat("--params-dtype ", quote(name), ": expected fp32, fp16 or bf16"));
}

// MindSpeed's second converter writes Megatron core only, and knows models by these names.
bool is_second_converter(const std::string& model_type) {
  return model_type == "qwen3" || model_type == "qwen2" || model_type == "qwen25" ||
         model_type == "llama3";
}

MegatronNames names_of(const ConvertOptions& options) {
  if (options.save_to_legacy) return MegatronNames::legacy;
  return options.use_mcore || is_second_converter(options.model_type_hf) ? MegatronNames::mcore
                                                                         : MegatronNames::legacy;
}

}  // namespace

Result<checkpoint::MegatronGrid> grid_of(const ConvertOptions& options,
                                         const models::DecoderSpec& spec,
                                         const std::string& where) {
  LayerSplit split = options.layers;
  auto list = parse_numbers(options.layer_list, "--num-layer-list");
  RETURN_IF_ERROR(list);
  auto empty = parse_numbers(options.empty_places, "--noop-layers");
  RETURN_IF_ERROR(empty);
  split.layer_list = std::move(*list);
  split.empty_places = std::move(*empty);
  auto layers = split_layers(spec.layers, split);
  RETURN_IF_ERROR(layers);
  const std::int64_t multiple = std::int64_t{options.vocabulary_multiple} * options.tensor;
  checkpoint::MegatronGrid out{names_of(options), options.tensor, std::move(*layers),
                               (spec.vocabulary + multiple - 1) / multiple * multiple};
  RETURN_IF_ERROR(checkpoint::check_megatron(spec, out, where));
  return out;
}

namespace {

Result<Source> open_source(const ConvertOptions& options, const Model& model) {
  Source out;
  if (options.load_type == "hf") {
    RETURN_IF_ERROR(checkpoint::verify_model_files(options.load_dir));
    auto folder = checkpoint::SafetensorsFolder::open(options.load_dir);
    RETURN_IF_ERROR(folder);
    out.folder = std::make_unique<checkpoint::SafetensorsFolder>(std::move(*folder));
    auto weights = std::make_unique<checkpoint::SafetensorsSource>(*out.folder, model.spec);
    RETURN_IF_ERROR(weights->check(model.config_path));
    out.weights = std::move(weights);
    for (const auto& file : out.folder->files()) out.files.push_back(file.path());
    return out;
  }
  auto weights = checkpoint::MegatronFolder::open(options.load_dir, model.spec, model.config_path);
  RETURN_IF_ERROR(weights);
  if (!options.adapter.folder.empty()) RETURN_IF_ERROR(weights->add_adapter(options.adapter));
  const bool legacy = weights->grid().names == MegatronNames::legacy;
  if (options.load_from_legacy && !legacy)
    return fail(Errc::usage,
                cat("--load-from-legacy: ", options.load_dir, " is a checkpoint of Megatron core"));
  for (const std::string& foreign : weights->foreign())
    std::cerr << options.load_dir << ": the class " << quote(foreign) << " is not constructed\n";
  out.files = weights->paths();
  auto owned = std::make_unique<checkpoint::MegatronFolder>(std::move(*weights));
  out.megatron = owned.get();
  out.weights = std::move(owned);
  return out;
}

/// Everything that determines the bytes of the result.
Result<Json> conversion_of(const ConvertOptions& options, const Model& model,
                           const Source& source) {
  const auto stamps = checkpoint::stamps_of(source.files);
  RETURN_IF_ERROR(stamps);
  const auto original = checkpoint::stamps_of_folder(model.folder);  // config.json, tokenizer
  RETURN_IF_ERROR(original);
  return Json(Json::Object{
      {"command", "convert"},
      {"save_type", options.save_type},
      {"sources", *stamps},
      {"original", *original},
      {"config", model.config},
      {"params_dtype", options.params_dtype},
      {"mcore", names_of(options) == MegatronNames::mcore},
      {"tensor", options.tensor},
      {"pipeline", options.layers.pipeline},
      {"layers", cat(options.layer_list, ';', options.empty_places, ';',
                     options.layers.layers_per_virtual, ';', options.vocabulary_multiple)},
      {"lora_alpha", options.adapter.folder.empty() ? 0 : options.adapter.alpha}});
}

/// The state of the optimizer, which only Megatron core's layout keeps. A form that is not known is
/// reported, and the weights are converted.
Result<std::unique_ptr<Optimizer>> optimizer_of(const ConvertOptions& options,
                                                const Source& source) {
  if (!source.megatron || !options.adapter.folder.empty() ||
      names_of(options) != MegatronNames::mcore ||
      source.megatron->grid().names != MegatronNames::mcore)
    return std::unique_ptr<Optimizer>();
  const auto has_state = source.megatron->read_optimizer_state();
  if (!has_state && has_state.error().code == Errc::unsupported) {
    std::cerr << has_state.error().what << "\n";
    return std::unique_ptr<Optimizer>();
  }
  RETURN_IF_ERROR(has_state);
  return *has_state ? std::make_unique<Optimizer>(*source.megatron) : nullptr;
}

/// Bytes of all weights of the model, as they are read.
Result<std::uint64_t> bytes_of(const Model& model, const checkpoint::WeightSource& source) {
  std::uint64_t sum = 0;
  for (const auto& tensor : models::stored_tensors(model.spec)) {
    const auto type = checkpoint::type_of_joined(tensor, source);
    RETURN_IF_ERROR(type);
    std::int64_t count = 1;
    for (const std::int64_t axis : tensor.shape()) count *= axis;
    sum += static_cast<std::uint64_t>(count) * checkpoint::bits_of(*type) / 8;
  }
  return sum;
}

Result<> to_megatron(const ConvertOptions& options, const Model& model, const Source& source,
                     std::optional<StoredType> type, checkpoint::ResultFolder& folder) {
  auto grid = grid_of(options, model.spec, model.config_path);
  RETURN_IF_ERROR(grid);
  const auto optimizer = optimizer_of(options, source);
  RETURN_IF_ERROR(optimizer);
  const auto bytes = bytes_of(model, *source.weights);
  RETURN_IF_ERROR(bytes);
  // Each rank of tensor parallelism reads whole weights.
  const WatchedSource weights(*source.weights, *bytes * static_cast<std::uint64_t>(options.tensor));
  const checkpoint::MegatronOutput output{
      .folder = folder,
      .grid = std::move(*grid),
      .type = type,
      .optimizer = *optimizer ? &(*optimizer)->source : nullptr,
      .iteration = *optimizer ? source.megatron->iteration() : 1,
      .written = [&](const std::string& path) { weights.report(path); }};
  RETURN_IF_ERROR(folder.add("config.json", model.config));
  return checkpoint::write_megatron(model.spec, weights, output);
}

/// --save-lora-to-hf: the adapter of --lora-load, or of --load-dir, which then has nothing else.
Result<std::string> lora_to_hf(const ConvertOptions& options) {
  if (options.load_type != "mg" || options.save_type != "hf")
    return fail(Errc::usage,
                "--save-lora-to-hf: expected --load-model-type mg --save-model-type hf");
  auto settings = options.adapter;
  if (settings.folder.empty()) settings.folder = options.load_dir;
  const std::string to =
      options.hf_folder.empty() ? options.save_dir + "/mg2hf" : options.hf_folder;
  RETURN_IF_ERROR(adapter_to_peft(settings, options.save_dir, to));
  return to;
}

Result<> write_result(const ConvertOptions& options, const Model& model, const Source& source,
                      std::optional<StoredType> type, checkpoint::ResultFolder& folder) {
  if (options.save_type == "mg") return to_megatron(options, model, source, type, folder);
  const auto bytes = bytes_of(model, *source.weights);
  RETURN_IF_ERROR(bytes);
  const WatchedSource weights(*source.weights, *bytes);
  return write_hf_folder(model.spec, weights,
                         {.folder = folder,
                          .original = model.folder,
                          .config = model.config,
                          .type = type,
                          .written = [&](const std::string& path) { weights.report(path); }});
}

}  // namespace

Result<std::string> convert(const ConvertOptions& options) {
  if (options.lora_to_hf) return lora_to_hf(options);
  if (options.load_type == "hf" && options.save_type == "hf")
    return fail(Errc::usage,
                "--load-model-type hf --save-model-type hf: expected mg in one of both");
  if (options.save_type == "hf" && (options.tensor != 1 || options.layers.pipeline != 1))
    return fail(Errc::usage,
                "--save-model-type hf: expected --target-tensor-parallel-size 1 and "
                "--target-pipeline-parallel-size 1; a Hugging Face folder has no ranks");
  if (options.load_type == "hf" && !options.adapter.folder.empty())
    return fail(Errc::usage,
                "--lora-load: expected --load-model-type mg; `troupe merge` merges an adapter into "
                "a Hugging Face folder");
  const auto type = type_of(options.params_dtype);
  RETURN_IF_ERROR(type);
  const auto model = read_model(options);
  RETURN_IF_ERROR(model);
  const auto source = open_source(options, *model);
  RETURN_IF_ERROR(source);
  const bool to_mg = options.save_type == "mg";
  const std::string name = to_mg                       ? options.save_dir
                           : options.hf_folder.empty() ? model->folder + "/mg2hf"
                                                       : options.hf_folder;
  const auto conversion = conversion_of(options, *model, *source);
  RETURN_IF_ERROR(conversion);
  auto folder = checkpoint::ResultFolder::create(name, *conversion);
  RETURN_IF_ERROR(folder);
  if (folder->published()) return name;
  const auto written = write_result(options, *model, *source, *type, *folder);
  if (!written && folder->complete_files() > 0)
    std::cerr << folder->path() << " keeps " << folder->complete_files()
              << " complete files, behind which the same command continues\n";
  RETURN_IF_ERROR(written);
  RETURN_IF_ERROR(folder->publish());
  return name;
}

}  // namespace troupe::launch::tools::convert
