// `troupe convert`: between Hugging Face folders and checkpoints of Megatron (mcore and legacy).
#pragma once

#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/megatron/megatron_adapter.h"
#include "launch/tools/convert/layer_split.h"

namespace troupe::launch::tools::convert {

struct ConvertOptions {
  std::string load_type = "hf", save_type = "mg";  ///< hf or mg
  std::string load_dir, save_dir;
  std::string hf_folder = {};  ///< to hf: the result; empty: mg2hf/ of save_dir
  std::string model_type_hf = "llama2";
  bool use_mcore = false, save_to_legacy = false, load_from_legacy = false;
  bool add_qkv_bias = false, orm = false;
  bool add_dense_bias = false, post_norm = false;  ///< checked, as add_qkv_bias is
  std::int64_t num_layers = 0;                     ///< checked; 0: not given
  int tensor = 1;
  LayerSplit layers;
  std::string layer_list, empty_places;  ///< as written
  int vocabulary_multiple = 1;           ///< --make-vocab-size-divisible-by
  std::string params_dtype;              ///< fp32, fp16 or bf16; empty: as stored
  Json overrides = {};                   ///< of config.json (engine/models/overrides.h)
  engine::checkpoint::AdapterSettings adapter = {};
  bool lora_to_hf = false;  ///< --save-lora-to-hf: to hf, the adapter alone, as PEFT's folder
};

/// The division that the options ask for. Errc::usage, unsupported: a model that it does not fit.
Result<engine::checkpoint::MegatronGrid> grid_of(const ConvertOptions& options,
                                                 const engine::models::DecoderSpec& spec,
                                                 const std::string& where);

/// Converts, and returns the folder of the result. From hf: config.json of the load folder; to hf:
/// of the save folder, whose subfolder mg2hf gets the result. Progress goes to stderr.
/// Errc::usage, not_found, corrupt, unsupported, io.
Result<std::string> convert(const ConvertOptions& options);

}  // namespace troupe::launch::tools::convert
