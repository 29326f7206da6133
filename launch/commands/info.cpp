// troupe info PATH: what a file or folder is, and whether troupe can use it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/data/readers/file_list.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/commands/commands.h"
#include "launch/commands/info/looks.h"

namespace troupe::launch {

namespace {

namespace fs = std::filesystem;

bool is_data(const std::string& path) {
  constexpr std::array<std::string_view, 8> known = {".jsonl", ".ndjson", ".json",    ".csv",
                                                     ".tsv",   ".txt",    ".parquet", ".arrow"};
  return std::ranges::find(known, engine::data::data_format(path)) != known.end();
}

/// Files that belong to a folder, which is what should be looked at.
void look_at_part(const std::string& path, const std::string& name, Report& report) {
  report.begin("part of a folder", path);
  report.problem(
      {Errc::usage,
       cat(name, " says nothing without the files beside it; look at their folder: troupe info ",
           quote(fs::path(path).parent_path().string().empty()
                     ? "."
                     : fs::path(path).parent_path().string(),
                 400))});
}

void look_at_weights_file(const std::string& path, Report& report) {
  report.begin("weights", path);
  const auto file = engine::checkpoint::SafetensorsFile::open(path);
  if (!file) return report.problem(file.error());
  report.say("tensors", std::ssize(file->tensors()),
             cat(file->tensors().size(), " tensors; the header holds"));
  report.problem({Errc::usage,
                  "weights alone are no model: put them into a folder with their config.json, and "
                  "look at that"});
}

void look_at_file(const InfoOptions& options, Report& report) {
  const std::string& path = options.path;
  const std::string name = fs::path(path).filename().string(),
                    extension = fs::path(path).extension().string();
  if (name == "tokenizer.json" || extension == ".model") return look_at_tokenizer(path, 0, report);
  if (extension == ".jinja") return look_at_template(path, report);
  if (extension == ".safetensors") return look_at_weights_file(path, report);
  for (const char* part :
       {"config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
        "adapter_config.json", "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json",
        "model.safetensors.index.json"}) {
    if (name == part) return look_at_part(path, name, report);
  }
  if (extension == ".yaml" || extension == ".yml") return look_at_run_file(path, report);
  if (is_data(path)) return look_at_data(path, options.column_names, report);
  report.begin("unknown", path);
  report.problem({Errc::unsupported, cat("troupe knows no file like this; it reads data (",
                                         engine::data::known_formats,
                                         "), tokenizer.json, SentencePiece's .model, .safetensors, "
                                         ".jinja templates and .yaml run files; "
                                         "pickles (.bin, .pt) are never opened")});
}

bool holds_data(const std::string& folder) {
  const auto files = engine::data::list_data_files({folder});
  return files || files.error().code != Errc::not_found;  // data that is damaged is told as such
}

void look_at_folder(const InfoOptions& options, Report& report) {
  const std::string& path = options.path;
  const auto has = [&](const char* name) { return fs::exists(fs::path(path) / name); };
  const bool model = has("config.json"), run = has("metrics.jsonl"),
             adapter = has("adapter_config.json");
  if (run) look_at_run(path, report);
  if (has("training")) look_at_checkpoint(path, report);
  if (adapter) look_at_adapter(path, report);
  if (model) look_at_model(path, report);
  if (!model && !run && engine::tokenizer::Tokenizer::is_in(path))
    look_at_tokenizer(path, 0, report);
  if (has("chat_template.jinja") || has("tokenizer_config.json")) look_at_template(path, report);
  if (report.empty() && holds_data(path)) look_at_data(path, options.column_names, report);
  if (!report.empty()) return;
  report.begin("unknown", path);
  const bool weights = has("model.safetensors") || has("model.safetensors.index.json");
  report.problem({Errc::unsupported,
                  weights ? "weights without config.json: put the model's config.json beside them"
                          : "neither a model (config.json), a tokenizer (tokenizer.json, "
                            "tokenizer.model, vocab.json), an adapter "
                            "(adapter_config.json), a run (metrics.jsonl) nor a folder of data "
                            "that troupe knows"});
}

}  // namespace

int info(const InfoOptions& options) {
  const std::string& path = options.path;
  Report report;
  if (fs::is_directory(path)) {
    look_at_folder(options, report);
  } else if (fs::exists(path)) {
    look_at_file(options, report);
  } else if (path.find_first_of("*?[") != std::string::npos) {
    look_at_data(path, options.column_names, report);
  } else {
    report.begin("nothing", path);
    report.problem({Errc::not_found, cat(path, ": no such file or folder")});
  }
  return report.finish(path, options.json);
}

}  // namespace troupe::launch
