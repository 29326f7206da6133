#include "launch/commands/info/report.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "engine/base/environment/available_memory.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/generate/generation_config.h"
#include "engine/generate/kv_cache.h"
#include "engine/models/overrides.h"
#include "engine/models/storage.h"
#include "engine/ops/devices/make_device.h"
#include "launch/memory/memory.h"

namespace troupe::launch::commands {

namespace {

using engine::checkpoint::SafetensorsFolder;
using engine::models::DecoderSpec;

constexpr std::uint64_t max_bytes_read = std::uint64_t{2} << 30;

std::uint64_t weight_bytes(const DecoderSpec& spec) {
  return 4 * static_cast<std::uint64_t>(spec.parameter_count());
}

void report_experts(const DecoderSpec& spec, Report& report) {
  const engine::models::ExpertsSpec& experts = *spec.experts;
  report.fact("experts", experts.router.experts);
  report.fact("experts_per_token", experts.router.chosen);
  report.fact("expert_layers", spec.expert_layers());
  report.say(
      "active_parameters", spec.active_parameter_count(),
      cat(spec.active_parameter_count(), " active parameters: ", experts.router.chosen, " of ",
          experts.router.experts, " experts (MLP ", experts.inner, ") in ", spec.expert_layers(),
          " layers",
          experts.shared_inner > 0 ? cat(", a shared expert (MLP ", experts.shared_inner, ")")
                                   : ""));
}

void report_sizes(const DecoderSpec& spec, Report& report) {
  report.say(
      "architecture", spec.architecture,
      cat("architecture: ", spec.architecture, spec.tied ? ", tied embedding and head" : ""));
  report.say(
      "tied", spec.tied,
      cat(spec.layers, " layers of width ", spec.width, " (MLP ", spec.inner, "), ", spec.heads,
          " heads of size ", spec.head_size, ", ", spec.kv_heads, " key-value heads",
          spec.latent ? cat(", values of ", spec.latent->value_size, " channels, from vectors of ",
                            spec.latent->query_rank, " and ", spec.latent->key_rank,
                            " (multi-head latent attention)")
                      : ""));
  for (const auto& [key, value] : {std::pair{"layers", spec.layers},
                                   {"width", spec.width},
                                   {"inner", spec.inner},
                                   {"heads", std::int64_t{spec.heads}},
                                   {"kv_heads", std::int64_t{spec.kv_heads}},
                                   {"head_size", std::int64_t{spec.head_size}},
                                   {"vocabulary", spec.vocabulary},
                                   {"max_positions", spec.max_positions},
                                   {"labels", std::int64_t{spec.labels}}}) {
    report.fact(key, value);
  }
  report.say("parameters", spec.parameter_count(),
             cat(spec.parameter_count(), " parameters, vocabulary ", spec.vocabulary, ", ",
                 spec.max_positions, " positions"));
  if (spec.experts) report_experts(spec, report);
  if (spec.labels > 0)
    report.say("head", "score",
               cat("a score head with ", spec.labels, spec.labels == 1 ? " output" : " outputs"));
}

void report_memory(const DecoderSpec& spec, Report& report) {
  const std::uint64_t serve = weight_bytes(spec), train = 4 * serve, present = memory_available();
  const auto token = static_cast<std::uint64_t>(engine::generate::cached_token_bytes(spec));
  report.fact("present_bytes", static_cast<std::int64_t>(present));
  report.fact("cache_bytes_per_token", static_cast<std::int64_t>(token));
  report.say("serve_bytes", static_cast<std::int64_t>(serve),
             cat("memory to serve: ", memory::bytes_text(serve), " and ", memory::bytes_text(token),
                 " per token of context"));
  report.say("train_bytes", static_cast<std::int64_t>(train),
             cat("memory to train: ", memory::bytes_text(train),
                 " (weights, gradients, two moments in f32) plus activations; see `troupe "
                 "explain`"));
  if (present == 0) return;
  if (serve > present) {
    report.note(cat("this machine has ", memory::bytes_text(present),
                    " of free memory: not enough to load it"));
  } else if (train > present) {
    report.note(cat("this machine has ", memory::bytes_text(present),
                    " of free memory: enough to serve, not enough to train all weights"));
  }
}

/// transformers writes total_size in the index but does not check it.
void compare_total_size(const std::string& folder, std::uint64_t stored, Report& report) {
  const auto index =
      read_json(cat(folder, "/", engine::checkpoint::index_file), {.depth = 8, .bytes = 64u << 20});
  if (!index || std::filesystem::exists(cat(folder, "/", engine::checkpoint::weights_file))) return;
  const Json* metadata = index->find("metadata");
  const Json* total = metadata ? metadata->find("total_size") : nullptr;
  if (!total || !total->is_number()) return;
  report.fact("total_size", *total);
  if (total->number() != static_cast<double>(stored)) {
    report.note(cat("total_size of ", engine::checkpoint::index_file, " is ", total->dump(),
                    ", but the shards contain ", stored, " bytes of tensors"));
  }
}

void report_weights(const std::string& folder, const SafetensorsFolder& weights, Report& report) {
  std::map<std::string, std::int64_t> types;
  std::uint64_t bytes = 0;
  for (const auto& place : weights.all()) {
    ++types[std::string(to_string(place.tensor->type))];
    bytes += place.tensor->end - place.tensor->begin;
  }
  std::vector<std::string> names;
  Json dtypes = Json::Object{};
  for (const auto& [type, count] : types) {
    names.push_back(type);
    dtypes.set(type, count);
  }
  report.fact("dtypes", dtypes);
  report.fact("weight_bytes", static_cast<std::int64_t>(bytes));
  report.fact("files", std::ssize(weights.files()));
  report.say("tensors", std::ssize(weights.all()),
             cat("weights: ", weights.all().size(), " tensors of ", join(names, ", "), ", ",
                 memory::bytes_text(bytes), " in ", weights.files().size(),
                 weights.files().size() == 1 ? " file" : " files"));
  compare_total_size(folder, bytes, report);
}

/// Compares names and shapes only, for models too large to read.
Result<> compare_shapes(const SafetensorsFolder& weights, const DecoderSpec& spec) {
  for (const auto& wanted : engine::models::stored_tensors(spec)) {
    const auto place = weights.find(wanted.name);
    const bool head = wanted.name.find("lm_head") != std::string::npos ||
                      wanted.name.find("embed") != std::string::npos;
    if (!place && ((spec.tied && head) || spec.labels > 0))
      continue;  // stored under another name; load_parameters knows which
    if (!place)
      return fail(Errc::corrupt, cat("no tensor ", wanted.name, ", which config.json requires"));
    if (place->tensor->shape != wanted.shape()) {
      return fail(Errc::corrupt,
                  cat(place->file->path(), ": ", wanted.name, " is ",
                      engine::checkpoint::shape_text(place->tensor->shape),
                      "; config.json requires ", engine::checkpoint::shape_text(wanted.shape())));
    }
  }
  return {};
}

void check_weights(const std::string& folder, const SafetensorsFolder& weights,
                   const DecoderSpec& spec, Report& report) {
  const std::uint64_t present = memory_available();
  if (weight_bytes(spec) > max_bytes_read || (present > 0 && weight_bytes(spec) > present / 2)) {
    if (auto fits = compare_shapes(weights, spec); !fits) return report.problem(fits.error());
    return report.say(
        "values_read", false,
        "every weight is present and has its shape; values were not read, because the "
        "model is large");
  }
  const auto device = engine::ops::make_device();
  if (const auto loaded = engine::checkpoint::load_decoder(*device, folder, false); !loaded)
    return report.problem(loaded.error());
  report.say("values_read", true, "every weight is present, has its shape and is finite");
}

void inspect_defaults(const std::string& folder, const DecoderSpec& spec, Report& report) {
  const std::string path = folder + "/generation_config.json";
  if (!std::filesystem::exists(path)) return;
  const auto file = read_json(path);
  if (!file) return report.problem(file.error());
  const auto config = engine::generate::read_generation_config(*file, path);
  if (!config)
    return report.note(cat(config.error().what,
                           " (`troupe generate` and `chat` reject it; training does not use it)"));
  auto params = config->params;
  params.max_new_tokens = std::max({params.max_new_tokens, params.min_new_tokens, 1});
  if (auto valid = engine::generate::validate(params, spec.vocabulary); !valid)
    return report.note(cat(path, ": ", valid.error().what));
  report.say("generation", *file,
             params.beams.count > 1
                 ? cat("beam search with ", params.beams.count, " beams (generation_config.json)")
             : params.is_greedy() ? "greedy decoding (generation_config.json)"
                                  : "sampling (generation_config.json)");
  if (!config->ignored.empty())
    report.note(cat("generation_config.json: not used: ", join(config->ignored, ", ")));
}

}  // namespace

void inspect_config(const std::string& path, const Json& overrides, Report& report) {
  report.begin("architecture", path);
  auto config = read_json(path);
  if (!config) return report.problem(config.error());
  config = engine::models::with_overrides(std::move(*config), overrides, path);
  if (!config) return report.problem(config.error());
  const auto spec = engine::models::read_spec(*config, path);
  if (!spec) return report.problem(spec.error());
  report_sizes(*spec, report);
  report_memory(*spec, report);
}

void inspect_model(const std::string& folder, const Json& overrides, Report& report) {
  report.begin("model", folder);
  const auto spec = engine::checkpoint::read_folder_spec(folder, overrides);
  if (!spec) return report.problem(spec.error());
  report_sizes(*spec, report);
  const auto weights = SafetensorsFolder::open(folder);
  if (!weights) return report.problem(weights.error());
  report_weights(folder, *weights, report);
  check_weights(folder, *weights, *spec, report);
  report_memory(*spec, report);
  inspect_defaults(folder, *spec, report);
  inspect_tokenizer(folder, spec->vocabulary, report);
}

}  // namespace troupe::launch::commands
