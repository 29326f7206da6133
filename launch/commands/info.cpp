// troupe info PATH: what a file or folder is, and whether troupe can use it.
#include <filesystem>
#include <iostream>

#include "engine/adapter/peft_file.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/data/readers/row_reader.h"
#include "engine/data/sample.h"
#include "engine/tokenizer/tokenizer.h"
#include "launch/commands/commands.h"
#include "launch/exit_code.h"
#include "launch/journal/metrics_file.h"
#include "launch/memory.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {

namespace {

namespace fs = std::filesystem;

class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}

  /// The first reason why it cannot be used decides the exit code.
  int finish(bool known) {
    if (!known) problem({Errc::unsupported, cat(path_, ": neither a model, a tokenizer, a run nor data that troupe knows")});
    std::cout << (code_ == 0 ? "usable: yes\n" : "usable: no\n");
    return code_;
  }

  bool has(const char* name) const { return fs::exists(fs::path(path_) / name); }

  void model() {
    std::cout << "model: " << path_ << '\n';
    const auto spec = engine::checkpoint::read_folder_spec(path_);
    if (!spec) return problem(spec.error());
    std::cout << "  architecture: " << spec->architecture << ", " << spec->parameter_count() << " parameters, vocabulary "
              << spec->vocabulary << ", " << spec->max_positions << " positions\n";
    const auto weights = engine::checkpoint::SafetensorsFolder::open(path_);
    if (!weights) return problem(weights.error());
    std::cout << "  weights: " << weights->all().size() << " tensors in " << weights->files().size()
              << (weights->files().size() == 1 ? " file\n" : " files\n");
    const auto device = engine::ops::make_cpu_device();
    if (const auto loaded = engine::checkpoint::load_decoder(*device, path_, false); !loaded) return problem(loaded.error());
    std::cout << "  every weight is there and fits\n";
  }

  void tokenizer(bool needed) {
    const auto loaded = engine::tokenizer::Tokenizer::load(path_);
    if (loaded) {
      std::cout << "tokenizer: " << loaded->vocab_size() << " tokens\n";
    } else if (needed || loaded.error().code != Errc::not_found) {
      std::cout << "tokenizer:\n";
      problem(loaded.error());
    } else {
      std::cout << "tokenizer: none\n";
    }
  }

  void checkpoint() {
    std::cout << "training checkpoint: " << path_ << '\n';
    const auto manifest = engine::checkpoint::verify_checkpoint(path_);
    if (!manifest) return problem(manifest.error());
    std::cout << "  step " << manifest->step << ", " << manifest->files.size() << " files, every checksum holds\n";
  }

  void run() {
    std::cout << "run: " << path_ << '\n';
    std::int64_t steps = 0, last = 0;
    for_each_line(path_ + "/metrics.jsonl",
                  [&](const Json& line, std::string_view) { ++steps, last = get_integer(line, "step", path_).value_or(last); });
    std::cout << "  metrics of " << steps << " steps, the last is step " << last << '\n';
    std::error_code ignored;
    const fs::path latest = fs::read_symlink(fs::path(path_) / "latest", ignored);
    std::cout << "  newest checkpoint: " << (latest.empty() ? "none" : latest.string()) << '\n';
    if (!latest.empty()) {
      const auto manifest = engine::checkpoint::verify_checkpoint((fs::path(path_) / latest).string());
      if (!manifest) return problem(manifest.error());
      std::cout << "  its checksums hold; the same command over this directory goes on from step " << manifest->step << '\n';
    }
  }

  void data() {
    std::cout << "data: " << path_ << '\n';
    auto reader = engine::data::open_rows(path_);
    if (!reader) return problem(reader.error());
    std::int64_t rows = 0, bad = 0;
    std::string first_bad;
    for (;;) {
      auto row = (*reader)->next();
      if (!row && row.error().code != Errc::bad_input) return problem(row.error());
      if (row && !*row) break;
      if (row && rows++ == 0) print_layouts(**row);
      if (!row && bad++ == 0) first_bad = row.error().what;
    }
    std::cout << "  " << rows << " rows\n";
    if (bad > 0) problem({Errc::bad_input, cat(bad, " malformed rows; the first: ", first_bad)});
    if (rows == 0) problem({Errc::bad_input, "no row"});
  }

  void adapter() {
    std::cout << "adapter: " << path_ << '\n';
    const std::string file = (fs::path(path_) / engine::adapter::config_file).string();
    const auto json = read_json(file);
    if (!json) return problem(json.error());
    const auto config = engine::adapter::read_peft_config(*json, file);
    if (!config) return problem(config.error());
    std::cout << "  " << (config->dora ? "DoRA" : "LoRA") << " of rank " << config->rank << ", alpha " << to_text(config->alpha)
              << ", over " << join(config->targets, ", ") << '\n';
    const Json* named = json->find("base_model_name_or_path");
    const std::string base = named && named->is_string() ? named->string() : "";
    if (!fs::exists(fs::path(base) / "config.json")) {
      std::cout << "  base: " << (base.empty() ? "not named" : cat(quote(base, 400), ", which is not here")) << "; give it with --model\n";
      return;
    }
    const auto spec = engine::checkpoint::read_folder_spec(base);
    if (!spec) return problem(spec.error());
    if (const auto fits = engine::adapter::read_adapter(path_, *spec); !fits) return problem(fits.error());
    std::cout << "  base: " << base << "; every tensor fits it\n";
  }

 private:
  void problem(const Error& error) {
    std::cout << "  " << error.what << '\n';
    if (code_ == 0) code_ = exit_code(error.code);
  }

  static void print_layouts(const engine::data::Row& row) {
    for (const Recipe& recipe : recipes()) {
      engine::data::LayoutOptions options;
      options.purpose = recipe.rows;
      const auto layout = engine::data::detect_layout(row, options);
      std::cout << "  for " << recipe.name << ": " << (layout ? engine::data::to_string(*layout) : "not usable without data.columns")
                << '\n';
    }
  }

  std::string path_;
  int code_ = 0;
};

bool is_data(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension == ".jsonl" || extension == ".ndjson" || extension == ".parquet" || extension == ".json";
}

}  // namespace

int info(const InfoOptions& options) {
  const std::string& path = options.path;
  if (!fs::exists(path)) throw Failure(Error{Errc::not_found, cat(path, ": no such file or folder")});
  Report report(path);
  if (fs::is_regular_file(path)) {
    if (fs::path(path).filename() == "tokenizer.json")
      report.tokenizer(true);
    else if (is_data(path))
      report.data();
    else
      return report.finish(false);
    return report.finish(true);
  }
  bool known = false;
  if (report.has("metrics.jsonl")) report.run(), known = true;
  if (report.has("training")) report.checkpoint(), known = true;
  if (report.has("config.json")) report.model(), known = true;
  if (report.has("adapter_config.json")) report.adapter(), known = true;
  if (report.has("tokenizer.json") || report.has("config.json")) report.tokenizer(!report.has("config.json")), known = true;
  return report.finish(known);
}

}  // namespace troupe::launch
