#include "launch/commands/sampler.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/generate/beam_search.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/commands/model_group.h"
#include "launch/model/json_lines.h"
#include "launch/run/rank_resources.h"

namespace troupe::launch::commands {

using engine::generate::Generation;
using engine::generate::GenerationConfig;
using engine::generate::Generator;
using engine::generate::SamplingParams;

namespace {

constexpr std::int32_t default_new_tokens = 256;

/// Threads of a rank: its part of the machine, unless they are given.
model::ModelOptions on_this_rank(const GenerateOptions& options) {
  model::ModelOptions own = options.model;
  if (options.group != nullptr && own.threads == 0)
    own.threads = run::part_of_machine(options.group->size());
  return own;
}

/// In a group this rank's part of the model; Failure on all ranks when one cannot load it.
model::Model load(const GenerateOptions& options) {
  if (options.group == nullptr)
    return value_or_throw(model::Model::load(options.model, model::NeededHead::language));
  ModelGroup& group = *options.group;
  const auto& mesh = group.mesh();
  const model::ModelOptions own = on_this_rank(options);
  if (group.leads()) group.announce_load();
  std::optional<model::Model> model;
  group.run("loading the model", [&] {
    model = value_or_throw(
        model::Model::load(own, model::NeededHead::language, {&mesh.tp(), &mesh.pp(), {}}));
  });
  return std::move(*model);
}

Json number(float value) {
  return model::number_or_null(static_cast<double>(value));
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

Sampler::Sampler(const GenerateOptions& options, engine::generate::TokenCallback on_token,
                 std::function<bool()> stop)
    : group_(options.group),
      model_(load(options)),
      draft_(load_draft(options)),
      defaults_(load_defaults(options, model_.folders().text, model_.spec())),
      settings_(with_settings(defaults_.params, options.settings)) {
  config_.max_sequences = std::clamp<std::int32_t>(settings_.beams.returned, 1, 64);
  config_.precision = model_.precision();
  if (options.weights == "int8") config_.weights = engine::models::WeightFormat::int8;
  config_.lookup = options.lookup;
  if (draft_) config_.draft = &draft_->decoder();
  config_.draft_tokens = options.draft_tokens;
  config_.eos_ids = defaults_.eos_ids;
  config_.decode = [this](std::span<const std::int32_t> ids) { return text_after_prompt(ids); };
  config_.encode = [this](std::string_view text) -> Result<std::vector<std::int32_t>> {
    const auto tokenizer = model_.tokenizer();
    RETURN_IF_ERROR(tokenizer);
    return (*tokenizer)->encode(text, false);
  };
  config_.on_token = std::move(on_token);
  config_.stop = std::move(stop);
  if (group_ != nullptr) stop_in_group(std::move(config_.stop));
}

// The other ranks wait for this one in every step: an exception of the callback ends the completion
// on all of them first.
void Sampler::stop_in_group(std::function<bool()> stop) {
  config_.stop = [this, stop = std::move(stop)] {
    return group_->stops([&] { return thrown_ != nullptr || (stop && stop()); });
  };
  if (!config_.on_token) return;
  config_.on_token = [this, on_token = std::move(config_.on_token)](const auto& event) {
    if (thrown_ != nullptr) return;
    try {
      on_token(event);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  };
}

std::size_t Sampler::context() const {
  const auto positions = static_cast<std::size_t>(model_.spec().max_positions);
  return defaults_.max_length > 0
             ? std::min(positions, static_cast<std::size_t>(defaults_.max_length))
             : positions;
}

std::size_t Sampler::max_new_tokens() const {
  const std::int32_t given = settings_.max_new_tokens;
  return static_cast<std::size_t>(given > 0 ? given : default_new_tokens);
}

Result<std::vector<Generation>> Sampler::generate(const std::vector<std::int32_t>& prompt,
                                                  SamplingParams sampling,
                                                  std::uint64_t first_sample) {
  return group_ != nullptr ? generate_in_group(prompt, sampling, first_sample)
                           : generate_here(prompt, std::move(sampling), first_sample);
}

Result<std::vector<Generation>> Sampler::generate_in_group(const std::vector<std::int32_t>& prompt,
                                                           const SamplingParams& sampling,
                                                           std::uint64_t first_sample) {
  if (group_->leads()) group_->announce({prompt, sampling, first_sample});
  std::vector<Generation> done;
  std::optional<Error> failed;
  try {
    group_->run("generate",
                [&] { done = value_or_throw(generate_here(prompt, sampling, first_sample)); });
  } catch (const Failure& failure) {
    failed = failure.error();
  }
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (failed) return fail(*failed);
  return done;
}

Result<std::vector<Generation>> Sampler::generate_here(const std::vector<std::int32_t>& prompt,
                                                       SamplingParams sampling,
                                                       std::uint64_t first_sample) {
  RETURN_IF_ERROR(engine::generate::resolve_bad_words(sampling, config_.encode));
  if (!sampling.stop_strings.empty()) {
    RETURN_IF_ERROR(model_.tokenizer());
  }
  auto complete = engine::generate::for_prompt(std::move(sampling), defaults_, prompt.size(),
                                               default_new_tokens);
  RETURN_IF_ERROR(complete);
  RETURN_IF_ERROR(engine::generate::validate(*complete, model_.spec().vocabulary));
  prompt_ = prompt;
  if (complete->beams.count > 1) {
    return engine::generate::beam_search(
        model_.decoder(), {.id = next_id_++, .prompt = prompt, .params = *complete}, config_);
  }
  if (!generator_) generator_ = value_or_throw(Generator::create(model_.decoder(), config_));
  std::vector<engine::generate::Request> requests;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(complete->beams.returned); ++k) {
    requests.push_back(
        {.id = next_id_++, .prompt = prompt, .params = *complete, .sample_id = first_sample + k});
  }
  return generator_->generate_all(std::move(requests));
}

std::string Sampler::text_after_prompt(std::span<const std::int32_t> ids) {
  const auto tokenizer = model_.tokenizer();
  if (!tokenizer) return "";
  std::vector<std::int32_t> all = prompt_;
  const std::string before = (*tokenizer)->decode(all, true);
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = (*tokenizer)->decode(all, true);
  return whole.starts_with(before) ? whole.substr(before.size()) : (*tokenizer)->decode(ids, true);
}

Json json_of(const Generation& generated, bool has_text, bool has_score) {
  Json::Array ids, logp, top;
  for (const auto id : generated.ids) ids.emplace_back(std::int64_t{id});
  for (const float value : generated.logp) logp.push_back(number(value));
  for (const auto& place : generated.top) {
    Json::Array row;
    for (const auto& each : place)
      row.push_back(Json::Object{{"id", std::int64_t{each.id}}, {"logprob", number(each.logp)}});
    top.emplace_back(std::move(row));
  }
  Json out;
  out.set("ids", std::move(ids));
  out.set("text", has_text ? Json(generated.text) : Json());
  out.set("logprobs", std::move(logp));
  if (!top.empty()) out.set("top_logprobs", std::move(top));
  out.set("finish_reason", to_string(generated.finish));
  if (has_score) out.set("score", model::number_or_null(generated.score));
  return out;
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
