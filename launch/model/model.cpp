#include "launch/model/model.h"

#include <algorithm>

#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/identity.h"
#include "engine/checkpoint/init_weights.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/ops/devices/make_device.h"
#include "launch/model/json_lines.h"

namespace troupe::launch::model {

namespace {

Result<> check_head(const engine::models::DecoderSpec& spec, NeededHead head,
                    const std::string& folder) {
  if (head == NeededHead::any || spec.labels == 0) return {};
  return fail(Errc::usage,
              cat(folder, ": expected a language model, found a reward model or critic (a score ",
                  "head with ", spec.labels, spec.labels == 1 ? " label" : " labels",
                  "), which has no next-token probabilities; `troupe score` evaluates a reward "
                  "model"));
}

/// The base that an adapter names must be the model that it was trained over, where the adapter is
/// a checkpoint of troupe, which records the model's checksums. Errc::usage.
Result<> check_base(const engine::adapter::ModelFolders& folders) {
  const auto state = engine::checkpoint::read_training_state(folders.adapter);
  if (!state) return {};
  const auto identity = engine::checkpoint::identity_in(state->state, state->file);
  RETURN_IF_ERROR(identity);
  if (!*identity) return {};
  const auto& parts = (*identity)->parts;
  const auto model = std::ranges::find(parts, "model", &engine::checkpoint::InputPart::name);
  if (model == parts.end()) return {};
  for (const engine::checkpoint::PartFile& file : model->files) {
    if (file.name == "generation_config.json") continue;  // does not change the weights' meaning
    const auto found = engine::checkpoint::measure_file(cat(folders.model, "/", file.name));
    if (found && found->xxh3_128 == file.xxh3) continue;
    return fail(Errc::usage,
                cat(folders.model, " is not the model that the adapter ", folders.adapter,
                    " was trained over: ", file.name, found ? " differs" : " is missing",
                    "; give the right one with --model BASE --adapter ", folders.adapter));
  }
  return {};
}

Result<std::unique_ptr<engine::models::Decoder>> random_decoder(
    engine::ops::Device& device, const std::string& folder, engine::models::DecoderSpec spec,
    const ModelOptions& options, const engine::models::ModelPart& part) {
  const auto std_dev = engine::checkpoint::initializer_range(folder);
  RETURN_IF_ERROR(std_dev);
  auto decoder =
      std::make_unique<engine::models::Decoder>(device, std::move(spec), options.gradients, part);
  engine::checkpoint::init_weights(*decoder, {.std_dev = *std_dev, .scaled_output = false});
  return decoder;
}

}  // namespace

Result<Model> Model::load(const ModelOptions& options, NeededHead head,
                          const engine::models::ModelPart& part) {
  Model model;
  model.part_ = part;
  model.ids_ = options.tokenizer_ids;
  model.precision_ = options.dtype;
  auto folders = engine::adapter::model_folders(options.model, options.adapter);
  RETURN_IF_ERROR(folders);
  model.folders_ = std::move(*folders);
  const auto& [base, adapter_folder, text] = model.folders_;
  if (options.adapter.empty() && !adapter_folder.empty())
    RETURN_IF_ERROR(check_base(model.folders_));
  model.device_ = engine::ops::make_device({.threads = options.threads});
  if (options.observe) model.device_ = options.observe(std::move(model.device_));
  RETURN_IF_ERROR(engine::checkpoint::verify_model_files(base));
  if (!adapter_folder.empty())
    RETURN_IF_ERROR(engine::checkpoint::verify_model_files(adapter_folder));
  auto spec = engine::checkpoint::read_folder_spec(base, options.overrides.values);
  RETURN_IF_ERROR(spec);
  RETURN_IF_ERROR(check_head(*spec, head, options.model));
  if (!adapter_folder.empty()) {
    auto adapter = engine::adapter::read_adapter(adapter_folder, *spec);
    RETURN_IF_ERROR(adapter);
    spec->lora = std::move(adapter->lora);
  }
  const bool random = options.random_weights && !engine::checkpoint::has_weight_files(base);
  auto decoder = random ? random_decoder(*model.device_, base, std::move(*spec), options, part)
                        : engine::checkpoint::load_decoder(*model.device_, base, std::move(*spec),
                                                           options.gradients, part);
  RETURN_IF_ERROR(decoder);
  model.decoder_ = std::move(*decoder);
  if (!adapter_folder.empty())
    RETURN_IF_ERROR(engine::adapter::load_adapter(adapter_folder, *model.decoder_));
  return model;
}

Result<const engine::tokenizer::Tokenizer*> Model::tokenizer() {
  if (!tokenizer_) {
    auto loaded = engine::tokenizer::Tokenizer::load(folders_.text, ids_);
    RETURN_IF_ERROR(loaded);
    tokenizer_ = std::move(*loaded);
  }
  return &*tokenizer_;
}

Result<std::vector<std::int32_t>> Model::tokens_of(const Json& line, std::string_view text_key) {
  if (line.find("ids")) {
    auto ids = ids_of(line, spec().vocabulary);
    RETURN_IF_ERROR(ids);
    if (ids->empty()) return fail(Errc::bad_input, "ids: at least one token is expected");
    return std::move(*ids);
  }
  const auto text = get_string(line, text_key, "the line (which has no ids)");
  RETURN_IF_ERROR(text);
  return tokens_of_text(*text, true);
}

Result<std::vector<std::int32_t>> Model::tokens_of_text(std::string_view text, bool add_special) {
  const auto encoder = tokenizer();
  RETURN_IF_ERROR(encoder);
  auto tokens = (*encoder)->encode(text, add_special);
  if (tokens.empty())
    return fail(Errc::bad_input, "the text has no tokens; at least one is expected");
  for (const auto id : tokens) {
    if (id >= spec().vocabulary) {
      return fail(Errc::bad_input, cat("the tokenizer returned id ", id, ", but the model has ",
                                       spec().vocabulary, " tokens; they do not match"));
    }
  }
  return tokens;
}

}  // namespace troupe::launch::model
