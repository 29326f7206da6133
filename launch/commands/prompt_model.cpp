#include "launch/commands/prompt_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/commands/rank_group.h"
#include "launch/run/rank_resources.h"

namespace troupe::launch::commands {

using engine::generate::GenerationConfig;
using engine::generate::SamplingParams;

namespace {

constexpr std::int32_t default_new_tokens = 256;

/// Threads of a rank: its part of the machine, unless they are given.
model::ModelOptions on_this_rank(const GenerateOptions& options) {
  model::ModelOptions own = options.model;
  if (options.group != nullptr && own.threads == 0)
    own.threads = run::part_of_machine(options.group->mesh().world().size());
  return own;
}

model::Model load(const GenerateOptions& options) {
  engine::models::ModelPart part;
  if (options.group != nullptr)
    part = {&options.group->mesh().tp(), &options.group->mesh().pp(), {}};
  return value_or_throw(
      model::Model::load(on_this_rank(options), model::NeededHead::language, part));
}

std::optional<model::Model> load_draft(const GenerateOptions& options) {
  if (options.draft.empty()) return std::nullopt;
  model::ModelOptions of_draft = on_this_rank(options);
  of_draft.model = options.draft;
  of_draft.adapter.clear();
  of_draft.overrides = {};
  return value_or_throw(model::Model::load(of_draft, model::NeededHead::language));
}

/// Settings of the file that the options name, or of the model folder's if there is one.
GenerationConfig load_defaults(const GenerateOptions& options, const std::string& folder,
                               const engine::models::DecoderSpec& spec) {
  const std::string own = folder + "/generation_config.json";
  const bool named = !options.generation_config.empty();
  const std::string path = named ? options.generation_config : own;
  const bool none = path == "none" || (!named && !std::filesystem::exists(own));
  auto config = engine::generate::read_generation_config(
      none ? Json(Json::Object{}) : value_or_throw(read_json(path)), path);
  if (!config) {
    throw Failure(
        Error{config.error().code,
              cat(config.error().what, "; or use --generation-config none, or another file")});
  }
  for (const std::string& key : config->ignored) log_warning(cat(path, ": ", key, " is not used"));
  SamplingParams whole = config->params;
  if (whole.max_new_tokens == 0)
    whole.max_new_tokens = std::max(default_new_tokens, whole.min_new_tokens);
  whole.stop_tokens.insert(whole.stop_tokens.end(), config->eos_ids.begin(), config->eos_ids.end());
  if (auto ok = engine::generate::validate(whole, spec.vocabulary); !ok)
    throw Failure(Error{Errc::bad_input, cat(path, ": ", ok.error().what)});
  if (config->eos_ids.empty()) config->eos_ids = spec.eos_ids;
  return *config;
}

SamplingParams with_settings(SamplingParams params, const Json& over) {
  if (auto read = read_settings(over, params); !read)
    throw Failure(Error{Errc::usage, read.error().what});
  return params;
}

}  // namespace

PromptModel::PromptModel(const GenerateOptions& options)
    : model_(load(options)),
      draft_(load_draft(options)),
      defaults_(load_defaults(options, model_.folders().text, model_.spec())),
      settings_(with_settings(defaults_.params, options.settings)) {
  config_.max_sequences = options.max_sequences > 0
                              ? options.max_sequences
                              : std::clamp<std::int32_t>(settings_.beams.returned, 1, 64);
  config_.precision = model_.precision();
  if (options.weights == "int8") config_.weights = engine::models::WeightFormat::int8;
  config_.lookup = options.lookup;
  if (draft_) config_.draft = &draft_->decoder();
  config_.draft_tokens = options.draft_tokens;
  config_.eos_ids = defaults_.eos_ids;
  config_.encode = [this](std::string_view text) -> Result<std::vector<std::int32_t>> {
    const auto tokenizer = model_.tokenizer();
    RETURN_IF_ERROR(tokenizer);
    return (*tokenizer)->encode(text, false);
  };
}

std::size_t PromptModel::context() const {
  const auto positions = static_cast<std::size_t>(model_.spec().max_positions);
  return defaults_.max_length > 0
             ? std::min(positions, static_cast<std::size_t>(defaults_.max_length))
             : positions;
}

std::size_t PromptModel::max_new_tokens() const {
  const std::int32_t given = settings_.max_new_tokens;
  return static_cast<std::size_t>(given > 0 ? given : default_new_tokens);
}

Result<SamplingParams> PromptModel::complete(SamplingParams settings, std::size_t length) {
  RETURN_IF_ERROR(engine::generate::resolve_bad_words(settings, config_.encode));
  if (!settings.stop_strings.empty()) RETURN_IF_ERROR(model_.tokenizer());
  auto complete =
      engine::generate::for_prompt(std::move(settings), defaults_, length, default_new_tokens);
  RETURN_IF_ERROR(complete);
  RETURN_IF_ERROR(engine::generate::validate(*complete, model_.spec().vocabulary));
  return complete;
}

engine::generate::TextDecoder PromptModel::text_after(const std::vector<std::int32_t>& prompt) {
  const auto loaded = model_.tokenizer();
  if (!loaded) return [](std::span<const std::int32_t>) { return std::string(); };
  return [tokenizer = *loaded, prompt,
          before = (*loaded)->decode(prompt, true)](std::span<const std::int32_t> ids) {
    std::vector<std::int32_t> all = prompt;
    all.insert(all.end(), ids.begin(), ids.end());
    const std::string whole = tokenizer->decode(all, true);
    return whole.starts_with(before) ? whole.substr(before.size()) : tokenizer->decode(ids, true);
  };
}

Result<> read_settings(const Json& object, engine::generate::SamplingParams& sampling) {
  const Json* do_sample = object.find("do_sample");
  for (const auto& [key, value] : object.object()) {
    const auto known = engine::generate::read_sampling_param(key, value, sampling);
    RETURN_IF_ERROR(known);
    if (!*known) RETURN_IF_ERROR(engine::generate::refuse_file_setting(key, value));
    if (!do_sample && !value.is_null() && engine::generate::requires_sampling(key))
      sampling.greedy = false;
  }
  // SamplingParams use 0 for "not set".
  if (const Json* length = object.find("max_new_tokens"); length && *length == Json(0)) {
    return fail(Errc::bad_input, "max_new_tokens is 0; allowed: 1 or more");
  }
  return {};
}

}  // namespace troupe::launch::commands
