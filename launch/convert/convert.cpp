#include "launch/convert/convert.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/megatron/megatron_folder.h"
#include "engine/checkpoint/megatron/megatron_writer.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/save_parameters.h"
#include "launch/convert/hf_folder.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;
namespace models = engine::models;

namespace {

using checkpoint::MegatronNames;
using checkpoint::StoredType;

/// The model, and where its config.json is.
struct Model {
  std::string folder, config_path;
  models::DecoderSpec spec;
};

struct Source {
  std::unique_ptr<checkpoint::SafetensorsFolder> folder;
  std::unique_ptr<checkpoint::WeightSource> weights;
};

Result<Model> read_model(const ConvertOptions& options) {
  const bool to_hf = options.save_type == "hf";
  Model out{.folder = to_hf ? options.save_dir : options.load_dir};
  out.config_path = out.folder + "/config.json";
  const auto config = read_json(out.config_path);
  if (!config && config.error().code == Errc::not_found)
    return fail(Errc::not_found, cat(config.error().what,
                                     to_hf ? "; set --save-dir to the original Hugging Face folder"
                                           : "; copy that of the original model to it"));
  RETURN_IF_ERROR(config);
  auto spec = models::read_spec(*config, out.config_path);
  RETURN_IF_ERROR(spec);
  out.spec = std::move(*spec);
  if (options.add_qkv_bias && !out.spec.attention_bias)
    return fail(Errc::usage, cat("--add-qkv-bias: the model of ", out.config_path,
                                 " has no biases of queries, keys and values"));
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

Result<checkpoint::MegatronGrid> grid_of(const ConvertOptions& options, const Model& model) {
  LayerSplit split = options.layers;
  auto list = parse_numbers(options.layer_list, "--num-layer-list");
  RETURN_IF_ERROR(list);
  auto empty = parse_numbers(options.empty_places, "--noop-layers");
  RETURN_IF_ERROR(empty);
  split.layer_list = std::move(*list);
  split.empty_places = std::move(*empty);
  auto layers = split_layers(model.spec.layers, split);
  RETURN_IF_ERROR(layers);
  const std::int64_t multiple = std::int64_t{options.vocabulary_multiple} * options.tensor;
  checkpoint::MegatronGrid out{names_of(options), options.tensor, std::move(*layers),
                               (model.spec.vocabulary + multiple - 1) / multiple * multiple};
  RETURN_IF_ERROR(checkpoint::check_megatron(model.spec, out, model.config_path));
  return out;
}

Result<Source> open_source(const ConvertOptions& options, const Model& model) {
  Source out;
  if (options.load_type == "hf") {
    auto folder = checkpoint::SafetensorsFolder::open(options.load_dir);
    RETURN_IF_ERROR(folder);
    out.folder = std::make_unique<checkpoint::SafetensorsFolder>(std::move(*folder));
    auto weights = std::make_unique<checkpoint::SafetensorsSource>(*out.folder);
    RETURN_IF_ERROR(weights->check(models::parameter_list(model.spec), model.config_path));
    out.weights = std::move(weights);
    return out;
  }
  auto weights = checkpoint::MegatronFolder::open(options.load_dir, model.spec, model.config_path);
  RETURN_IF_ERROR(weights);
  const bool legacy = weights->grid().names == MegatronNames::legacy;
  if (options.load_from_legacy && !legacy)
    return fail(Errc::usage,
                cat("--load-from-legacy: ", options.load_dir, " is a checkpoint of Megatron core"));
  for (const std::string& foreign : weights->foreign())
    std::cerr << options.load_dir << ": the class " << quote(foreign) << " is not constructed\n";
  out.weights = std::make_unique<checkpoint::MegatronFolder>(std::move(*weights));
  return out;
}

Result<std::string> to_megatron(const ConvertOptions& options, const Model& model,
                                const Source& source, std::optional<StoredType> type) {
  auto grid = grid_of(options, model);
  RETURN_IF_ERROR(grid);
  std::error_code failed;
  std::filesystem::create_directories(options.save_dir, failed);
  if (failed) return fail(Errc::io, cat(options.save_dir, ": ", failed.message()));
  RETURN_IF_ERROR(checkpoint::write_megatron(
      model.spec, *source.weights,
      {.folder = options.save_dir,
       .grid = std::move(*grid),
       .type = type,
       .written = [](auto path) { std::cerr << "wrote " << path << "\n"; }}));
  const auto config = read_file(model.config_path);
  RETURN_IF_ERROR(config);
  RETURN_IF_ERROR(write_file_durably(options.save_dir + "/config.json", *config));
  return options.save_dir;
}

}  // namespace

Result<std::string> convert(const ConvertOptions& options) {
  if (options.load_type == "hf" && options.save_type == "hf")
    return fail(Errc::usage,
                "--load-model-type hf --save-model-type hf: expected mg in one of both");
  if (options.save_type == "hf" && (options.tensor != 1 || options.layers.pipeline != 1))
    return fail(Errc::usage,
                "--save-model-type hf: expected --target-tensor-parallel-size 1 and "
                "--target-pipeline-parallel-size 1; a Hugging Face folder has no ranks");
  const auto type = type_of(options.params_dtype);
  RETURN_IF_ERROR(type);
  const auto model = read_model(options);
  RETURN_IF_ERROR(model);
  const auto source = open_source(options, *model);
  RETURN_IF_ERROR(source);
  if (options.save_type == "mg") return to_megatron(options, *model, *source, *type);
  const std::string folder =
      options.hf_folder.empty() ? model->folder + "/mg2hf" : options.hf_folder;
  RETURN_IF_ERROR(write_hf_folder(folder, model->folder, model->spec, *source->weights, *type));
  return folder;
}

}  // namespace troupe::launch
