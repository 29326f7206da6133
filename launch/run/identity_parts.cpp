#include "launch/run/identity_parts.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/files/file_names.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/readers/file_list.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/config/paths.h"
#include "launch/config/schema.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"

namespace troupe::launch::run {
namespace {

namespace checkpoint = engine::checkpoint;
using checkpoint::Identity;
using checkpoint::InputPart;

// How a run is executed, displayed and saved.
constexpr std::array<std::string_view, 40> without_effect{"algorithm",
                                                          "ledger",
                                                          "recovery.disk_wait",
                                                          "output_mode",
                                                          "timeline.max_mib",
                                                          "recovery.restarts",
                                                          "recovery.window",
                                                          "recovery.silence",
                                                          "resume",
                                                          "train.threads",
                                                          "train.pin_threads",
                                                          "train.recompute",
                                                          "train.recompute_method",
                                                          "train.recompute_layers",
                                                          "train.recompute_in_advance",
                                                          "train.offload",
                                                          "train.save_every",
                                                          "train.keep_last",
                                                          "train.log_every",
                                                          "train.log_style",
                                                          "train.timeout",
                                                          "eval.every",
                                                          "train.peak_tflops",
                                                          "train.keep_best",
                                                          "train.save_dtype",
                                                          "train.save_only_model",
                                                          "rollout.cache_tokens",
                                                          "rollout.lookup",
                                                          "dpo.precompute_reference",
                                                          "rollout.max_sequences",
                                                          "rollout.record",
                                                          "rollout.threads",
                                                          "rollout.lease_timeout",
                                                          "rollout.max_leases",
                                                          "rollout.lease_keys",
                                                          "rollout.max_reward_failures",
                                                          "async.in_flight",
                                                          "weights.format",
                                                          "weights.chunk_mib",
                                                          "weights.shared_memory"};
// Keys of parallel.* and of the sections in it.
bool is_way_of_exchange(std::string_view name) {
  return name == "zero" || name == "overlap" || name == "order" || name == "timeout";
}
// Paths whose content is an InputPart.
constexpr std::array<std::string_view, 10> inputs{
    "model",        "output",        "data.path",     "eval.path",     "lora.adapter",
    "critic.model", "dpo.reference", "kto.reference", "ppo.reference", "grpo.reference"};

constexpr std::array<std::string_view, 2> spec_files{"config.json", "generation_config.json"};
constexpr std::array<std::string_view, 10> tokenizer_files{"tokenizer.json",
                                                           "tokenizer.model",
                                                           "qwen.tiktoken",
                                                           "tokenizer_config.json",
                                                           "special_tokens_map.json",
                                                           "added_tokens.json",
                                                           "vocab.json",
                                                           "merges.txt",
                                                           "vocab.txt",
                                                           "chat_template.jinja"};
constexpr std::array<std::string_view, 2> adapter_files{"adapter_config.json",
                                                        "adapter_model.safetensors"};

std::string name_in(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Reads the inputs of a configuration; each adds an InputPart.
class Inputs {
 public:
  Inputs(const config::RunConfig& config, checkpoint::FingerprintCache& fingerprints)
      : config_(config), fingerprints_(fingerprints) {}

  Result<std::vector<InputPart>> all() {
    RETURN_IF_ERROR(add_model("model", config_.model));
    RETURN_IF_ERROR(add_tokenizer());
    RETURN_IF_ERROR(add_chat_template());
    RETURN_IF_ERROR(add_other_models());
    RETURN_IF_ERROR(add_data());
    return std::move(parts_);
  }

 private:
  Result<> add_file(InputPart& part, const std::string& path) {
    auto file = fingerprints_.measure(path);
    RETURN_IF_ERROR(file);
    part.files.push_back({name_in(path), file->bytes, std::move(file->xxh3_128), path});
    return {};
  }

  Result<> add_files_of(InputPart& part, const std::string& folder,
                        std::span<const std::string_view> names) {
    std::error_code ignored;
    for (const auto name : names)
      if (const std::string path = cat(folder, "/", name); std::filesystem::exists(path, ignored))
        RETURN_IF_ERROR(add_file(part, path));
    return {};
  }

  // A checkpoint of troupe has checksums of its own.
  Result<> verify(const std::string& folder) {
    return checkpoint::verify_model_files(
        folder, [this](const std::string& path) { return fingerprints_.measure(path); });
  }

  Result<> add_present(std::string name, const std::string& folder,
                       std::span<const std::string_view> names) {
    InputPart part{.name = std::move(name), .files = {}};
    RETURN_IF_ERROR(add_files_of(part, folder, names));
    parts_.push_back(std::move(part));
    return {};
  }

  Result<> add_tokenizer() {
    RETURN_IF_ERROR(add_present("tokenizer", config_.model, tokenizer_files));
    const std::string folder = cat(config_.model, "/", additional_templates_folder);
    for (const auto& name : file_names(folder, ".jinja"))
      RETURN_IF_ERROR(add_file(parts_.back(), cat(folder, "/", name)));
    return {};
  }

  // The configuration and the weights of a model folder.
  Result<> add_model(std::string name, const std::string& folder) {
    RETURN_IF_ERROR(recipes::spec_of(config_, folder));
    InputPart part{.name = std::move(name), .files = {}};
    if (folder == config_.model && recipes::starts_from_random_weights(config_)) {
      RETURN_IF_ERROR(add_files_of(part, folder, spec_files));
      parts_.push_back(std::move(part));
      return {};
    }
    const auto weights = checkpoint::SafetensorsFolder::open(folder);
    RETURN_IF_ERROR(weights);
    RETURN_IF_ERROR(verify(folder));
    RETURN_IF_ERROR(add_files_of(part, folder, spec_files));
    for (const auto& file : weights->files()) RETURN_IF_ERROR(add_file(part, file.path()));
    parts_.push_back(std::move(part));
    return {};
  }

  Result<> add_chat_template() {
    std::error_code ignored;
    const std::string file = engine::tokenizer::template_file_of(config_.chat_template);
    if (!std::filesystem::is_regular_file(file, ignored)) return {};
    InputPart part{.name = std::string(chat_template_part), .files = {}};
    RETURN_IF_ERROR(add_file(part, file));
    parts_.push_back(std::move(part));
    return {};
  }

  Result<> add_other_models() {
    const recipes::RolesNeeded roles = recipes::roles_of(config_);
    if (!config_.lora.adapter.empty()) {
      RETURN_IF_ERROR(verify(config_.lora.adapter));
      RETURN_IF_ERROR(add_present("lora.adapter", config_.lora.adapter, adapter_files));
    }
    if (roles.reference.needed) {
      const auto [model, adapter] = recipes::reference_folders(config_);
      RETURN_IF_ERROR(add_model(std::string(reference_part), model));
      if (!adapter.empty()) {
        RETURN_IF_ERROR(verify(adapter));
        RETURN_IF_ERROR(add_files_of(parts_.back(), adapter, adapter_files));
      }
    }
    if (roles.critic.needed)
      RETURN_IF_ERROR(add_model(
          "critic.model", config_.critic.model.empty() ? config_.model : config_.critic.model));
    if (!roles.reward.needed) return {};
    const auto items = recipes::reward_items(config_);
    RETURN_IF_ERROR(items);
    for (const recipes::RewardItem& item : *items) {
      RETURN_IF_ERROR(add_model(cat("reward model ", item.label), item.path()));
      RETURN_IF_ERROR(add_files_of(parts_.back(), item.path(), tokenizer_files));
    }
    return {};
  }

  Result<> add_rows(InputPart& part, const std::vector<std::string>& paths) {
    if (recipes::reads_token_files(config_)) {
      for (const std::string& path : paths)
        for (const char* ending : {".idx", ".bin"}) RETURN_IF_ERROR(add_file(part, path + ending));
      return {};
    }
    const auto files = engine::data::list_data_files(paths);
    RETURN_IF_ERROR(files);
    for (const std::string& path : *files) {
      // Above this size the checkpoint's own fingerprint, made after the rows are read, must do: a
      // sparse file would be read for hours before its first row is refused.
      constexpr std::uintmax_t hashed_whole = std::uintmax_t{4} << 30;
      std::error_code ignored;
      const auto size = std::filesystem::file_size(path, ignored);
      if (!config_.data.stream && (ignored || size <= hashed_whole)) {
        RETURN_IF_ERROR(add_file(part, path));
        continue;
      }
      auto print = engine::data::sampled_fingerprint(path);
      RETURN_IF_ERROR(print);
      part.files.push_back({name_in(path), print->bytes, std::move(print->xxh3), path});
    }
    return {};
  }

  Result<> add_data() {
    InputPart data{.name = "data", .files = {}},
        held_out{.name = std::string(eval_part), .files = {}};
    RETURN_IF_ERROR(add_rows(data, config_.data.paths));
    for (const engine::data::DataSource& source : config_.data.mix)
      RETURN_IF_ERROR(add_rows(data, source.paths));
    parts_.push_back(std::move(data));
    if (config_.eval.path.empty()) return {};
    RETURN_IF_ERROR(add_rows(held_out, config_.eval.path));
    parts_.push_back(std::move(held_out));
    return {};
  }

  const config::RunConfig& config_;
  checkpoint::FingerprintCache& fingerprints_;
  std::vector<InputPart> parts_;
};

std::vector<std::pair<std::string, std::string>> settings_of(config::RunConfig config) {
  // A prompt type is a name, alone or behind the file that has it.
  std::error_code ignored;
  std::string prompt_type = config.chat_template;
  const std::string file = engine::tokenizer::template_file_of(prompt_type);
  if (std::filesystem::is_regular_file(file, ignored)) prompt_type.erase(0, file.size());
  config::each_path(config, [](std::string_view, std::string& path) { path.clear(); });
  config.chat_template = prompt_type;
  std::vector<std::pair<std::string, std::string>> out;
  for (const config::Field& field : config::fields())
    if (affects_results(field.key) && recipes::reads(config.algorithm, field))
      out.emplace_back(field.key, config::value_text(field, config));
  return out;
}

}  // namespace

bool affects_results(std::string_view key) {
  return config::section_of(key) != "profile" && config::section_of(key) != "serve" &&
         !(key.starts_with("parallel.") && is_way_of_exchange(key.substr(key.rfind('.') + 1))) &&
         std::ranges::find(without_effect, key) == without_effect.end() &&
         std::ranges::find(inputs, key) == inputs.end();
}

Result<Identity> identity_of(const config::RunConfig& config,
                             checkpoint::FingerprintCache& fingerprints) {
  auto parts = Inputs(config, fingerprints).all();
  RETURN_IF_ERROR(parts);
  return Identity{std::move(*parts), settings_of(config)};
}

}  // namespace troupe::launch::run
