#include "launch/commands/info.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/not_a_model.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/data/readers/file_list.h"
#include "engine/models/families.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/commands/info/report.h"

namespace troupe::launch::commands {

namespace {

/// A row of MindSpeed-LLM's table of dense models (docs/pytorch/models/dense_model.md, and
/// docs/models/dense_model.md of release 2.0.0), with the architecture of its published files.
struct DenseModel {
  std::string_view name, sizes, architecture;
};

constexpr auto dense_models = std::to_array<DenseModel>({
    {"Aquila", "7B", "AquilaModel"},
    {"Aquila2", "7B, 34B", "AquilaForCausalLM"},
    {"Baichuan", "7B", "BaiChuanForCausalLM"},
    {"Baichuan", "13B", "BaichuanForCausalLM"},
    {"Baichuan2", "7B, 13B", "BaichuanForCausalLM"},
    {"Bloom", "7B1, 176B", "BloomForCausalLM"},
    {"ChatGLM3", "6B", "ChatGLMModel"},
    {"GLM4", "9B", "ChatGLMModel"},
    {"CodeLlama", "34B", "LlamaForCausalLM"},
    {"InternLM", "7B, 65B", "InternLMForCausalLM"},
    {"InternLM2", "20B", "InternLM2ForCausalLM"},
    {"InternLM2.5", "1.8B, 7B, 20B", "InternLM2ForCausalLM"},
    {"InternLM3", "8B", "InternLM3ForCausalLM"},
    {"LLaMA", "7B, 13B, 33B, 65B", "LlamaForCausalLM"},
    {"LLaMA2", "7B, 13B, 34B, 70B", "LlamaForCausalLM"},
    {"LLaMA3", "8B, 70B", "LlamaForCausalLM"},
    {"LLaMA3.1", "8B, 50B, 70B, 200B, 405B", "LlamaForCausalLM"},
    {"LLaMA3.2", "1B, 3B", "LlamaForCausalLM"},
    {"LLaMA3.3", "70B-Instruct", "LlamaForCausalLM"},
    {"Qwen", "7B, 14B, 72B", "QWenLMHeadModel"},
    {"Qwen1.5", "0.5B, 1.8B, 4B, 7B, 14B, 32B, 72B, 110B", "Qwen2ForCausalLM"},
    {"CodeQwen1.5", "7B", "Qwen2ForCausalLM"},
    {"Qwen2", "0.5B, 1.5B, 7B, 72B", "Qwen2ForCausalLM"},
    {"Qwen2.5", "0.5B, 1.5B, 3B, 7B, 14B, 32B, 72B", "Qwen2ForCausalLM"},
    {"Qwen3", "0.6B, 1.7B, 4B, 8B, 14B, 32B", "Qwen3ForCausalLM"},
    {"QwQ", "32B", "Qwen2ForCausalLM"},
    {"Qwen2.5-Math", "1.5B, 7B, 72B", "Qwen2ForCausalLM"},
    {"CodeQwen2.5", "7B", "Qwen2ForCausalLM"},
    {"Yi", "9B, 34B", "LlamaForCausalLM"},
    {"Yi1.5", "6B, 9B, 34B", "LlamaForCausalLM"},
    {"Mistral", "7B", "MistralForCausalLM"},
    {"Gemma", "2B, 7B", "GemmaForCausalLM"},
    {"Gemma2", "9B, 27B", "Gemma2ForCausalLM"},
    {"GPT3", "175B", "GPT2LMHeadModel"},
    {"grok-1", "40B", "Grok1ModelForCausalLM"},
    {"MiniCPM", "2B", "MiniCPMForCausalLM"},
    {"MiniCPM3", "4B", "MiniCPM3ForCausalLM"},
    {"Phi3.5", "mini-instruct", "Phi3ForCausalLM"},
    {"DeepSeek-Math", "7B", "LlamaForCausalLM"},
    {"DeepSeek-R1-Distill-Qwen", "1.5B, 7B, 14B, 32B", "Qwen2ForCausalLM"},
    {"DeepSeek-R1-Distill-LLaMA", "8B, 70B", "LlamaForCausalLM"},
    {"Seed-OSS", "36B", "SeedOssForCausalLM"},
});

bool loads(const DenseModel& model) {
  return engine::models::find_family(model.architecture) != nullptr;
}

Json to_json() {
  Json::Array rows;
  for (const DenseModel& model : dense_models)
    rows.push_back(Json::Object{{"model", std::string(model.name)},
                                {"sizes", std::string(model.sizes)},
                                {"architecture", std::string(model.architecture)},
                                {"usable", loads(model)}});
  return rows;
}

/// Prints the table as text or as JSON. Returns the exit code, 0.
int list_models(bool as_json) {
  if (as_json) {
    std::cout << to_json().dump() << '\n';
    return 0;
  }
  for (const DenseModel& model : dense_models)
    std::cout << std::left << std::setw(27) << model.name << std::setw(44) << model.sizes
              << model.architecture << (loads(model) ? "" : " (not supported)") << '\n';
  return 0;
}

namespace fs = std::filesystem;

bool is_data(const std::string& path) {
  constexpr std::array<std::string_view, 8> known = {".jsonl", ".ndjson", ".json",    ".csv",
                                                     ".tsv",   ".txt",    ".parquet", ".arrow"};
  return std::ranges::find(known, engine::data::data_format(path)) != known.end();
}

/// A file that is only useful with the others of its folder.
void inspect_part(const std::string& path, const std::string& name, Report& report) {
  report.begin("part of a folder", path);
  report.problem(
      {Errc::usage,
       cat(name,
           " is only useful with the other files of its folder; inspect the folder: troupe info ",
           quote(fs::path(path).parent_path().string().empty()
                     ? "."
                     : fs::path(path).parent_path().string(),
                 400))});
}

void inspect_weights_file(const std::string& path, Report& report) {
  report.begin("weights", path);
  const auto file = engine::checkpoint::SafetensorsFile::open(path);
  if (!file) return report.problem(file.error());
  report.say("tensors", std::ssize(file->tensors()),
             cat(file->tensors().size(), " tensors; the header is valid"));
  report.problem({Errc::usage,
                  "weights alone are not a model: put them in a folder with their config.json and "
                  "inspect the folder"});
}

void inspect_file(const InfoOptions& options, Report& report) {
  const std::string& path = options.path;
  const std::string name = fs::path(path).filename().string(),
                    extension = fs::path(path).extension().string();
  if (name == "tokenizer.json" || extension == ".model" || extension == ".tiktoken")
    return inspect_tokenizer(path, 0, report);
  if (name == "config.json") return inspect_config(path, options.overrides.values, report);
  if (extension == ".jinja") return inspect_template(path, report);
  if (extension == ".safetensors") return inspect_weights_file(path, report);
  for (const char* part :
       {"generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
        "adapter_config.json", "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json",
        "model.safetensors.index.json"}) {
    if (name == part) return inspect_part(path, name, report);
  }
  if (extension == ".yaml" || extension == ".yml") return inspect_run_file(path, report);
  if (is_data(path)) return inspect_data(path, options.column_names, report);
  report.begin("unknown", path);
  report.problem(
      {Errc::unsupported, cat("unknown file type; troupe reads data (", engine::data::known_formats,
                              "), tokenizer.json, SentencePiece's .model, .safetensors, "
                              ".jinja templates and .yaml run files; "
                              "pickles (.bin, .pt) are never opened")});
}

bool holds_data(const std::string& folder) {
  const auto files = engine::data::list_data_files({folder});
  return files || files.error().code != Errc::not_found;  // damaged data is reported as data
}

void inspect_folder(const InfoOptions& options, Report& report) {
  const std::string& path = options.path;
  const auto has = [&](const char* name) { return fs::exists(fs::path(path) / name); };
  const bool model = has("config.json"), run = has("metrics.jsonl"),
             adapter = has("adapter_config.json");
  if (run) inspect_run(path, report);
  if (has("training")) inspect_checkpoint(path, report);
  if (adapter) inspect_adapter(path, report);
  if (model) inspect_model(path, options.overrides.values, report);
  if (!model && !run && engine::tokenizer::Tokenizer::is_in(path))
    inspect_tokenizer(path, 0, report);
  if (has("chat_template.jinja") || has("tokenizer_config.json")) inspect_template(path, report);
  if (report.empty() && holds_data(path)) inspect_data(path, options.column_names, report);
  if (!report.empty()) return;
  report.begin("unknown", path);
  const bool weights = has("model.safetensors") || has("model.safetensors.index.json");
  report.problem({Errc::unsupported,
                  weights ? "weights without config.json: add the model's config.json"
                          : "neither a model (config.json), a tokenizer (tokenizer.json, "
                            "tokenizer.model, vocab.json), an adapter "
                            "(adapter_config.json), a run (metrics.jsonl) nor a folder of data "
                            "files"});
}

}  // namespace

int info(const InfoOptions& options) {
  if (options.models) return list_models(options.json);
  const std::string& path = options.path;
  if (path.empty())
    throw Failure({Errc::usage, "info: expected a file or folder, or --models, found neither"});
  Report report;
  if (!options.checksums.empty()) {
    if (!fs::is_directory(path))
      throw Failure({Errc::usage, cat("--checksums: expected a folder, found ", quote(path, 400))});
    inspect_checksums(path, options.checksums, report);
    return report.finish(path, options.json);
  }
  if (fs::is_directory(path)) {
    inspect_folder(options, report);
  } else if (fs::exists(path)) {
    inspect_file(options, report);
  } else if (path.find_first_of("*?[") != std::string::npos) {
    inspect_data(path, options.column_names, report);
  } else {
    report.begin("nothing", path);
    const bool hub = engine::checkpoint::is_hub_name(path);
    report.problem({Errc::not_found, cat(path, ": ",
                                         hub ? engine::checkpoint::why_not_a_model(path)
                                             : std::string("no such file or folder"))});
  }
  return report.finish(path, options.json);
}

}  // namespace troupe::launch::commands
