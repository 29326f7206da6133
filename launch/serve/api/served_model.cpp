#include "launch/serve/api/served_model.h"

#include <algorithm>
#include <filesystem>

#include "engine/adapter/peft_file.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/generate/generation_config.h"
#include "engine/generate/sampling_params_json.h"
#include "engine/models/head_config.h"
#include "engine/ops/devices/make_device.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::string_view sampling_defaults[] = {"temperature", "top_k", "top_p", "min_p",
                                                  "repetition_penalty"};

/// A model that waits to be copied.
struct StagedModel {
  std::unique_ptr<engine::ops::Device> device;
  std::unique_ptr<engine::models::Decoder> decoder;
};

/// The members of a config.json that change what the model computes.
Json computed_by(Json config) {
  constexpr std::string_view names[] = {"_name_or_path", "transformers_version", "torch_dtype",
                                        "dtype", "use_cache"};
  std::erase_if(config.object(), [&](const auto& member) {
    return std::ranges::find(names, member.first) != std::ranges::end(names);
  });
  return config;
}

/// Names the first member that differs.
Result<> check_same_config(const std::string& own, const std::string& other) {
  const auto first = read_json(own + "/config.json");
  RETURN_IF_ERROR(first);
  const auto second = read_json(other + "/config.json");
  RETURN_IF_ERROR(second);
  const Json a = computed_by(*first), b = computed_by(*second);
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [name, value] : from->object()) {
      const Json* found = to->find(name);
      if (found != nullptr && *found == value) continue;
      return fail(Errc::bad_input, cat(other, "/config.json: ", quote(name),
                                       " is not that of the served model; only other weights of "
                                       "the same model can be loaded"));
    }
  }
  return {};
}

/// Bytes of the longest token as the vocabulary spells it: at least those that it stands for.
std::int64_t longest_token(const engine::tokenizer::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest = std::max(longest,
                       tokenizer.id_to_token(static_cast<engine::tokenizer::TokenId>(id)).size());
  return static_cast<std::int64_t>(longest);
}

}  // namespace

Result<std::function<Result<>()>> ServedModel::read_weights(const std::string& folder) {
  if (model_.spec().lora)
    return fail(Errc::unsupported,
                "the served model has an adapter; its weights cannot be changed");
  RETURN_IF_ERROR(check_same_config(model_.folders().model, folder));
  RETURN_IF_ERROR(engine::checkpoint::verify_model_files(folder));
  auto staged = std::make_shared<StagedModel>();
  // A device of its own: the model's is in use.
  staged->device = engine::ops::make_device({.threads = 1});
  auto decoder = engine::checkpoint::load_decoder(*staged->device, folder, model_.spec(), false,
                                                  model_.part());
  RETURN_IF_ERROR(decoder);
  staged->decoder = std::move(*decoder);
  return std::function<Result<>()>([this, staged]() -> Result<> {
    engine::ops::Device& device = model_.decoder().device();
    auto& parameters = model_.decoder().parameters().all();
    const auto& values = staged->decoder->parameters().all();
    for (std::size_t n = 0; n < parameters.size(); ++n)
      device.upload(parameters[n].value, engine::ops::to_host(*staged->device, values[n].value));
    return {};
  });
}

Result<std::shared_ptr<const engine::nn::LoraModel>> ServedModel::load_adapter(
    const std::string& folder) {
  if (model_.spec().lora)
    return fail(Errc::usage,
                cat(folder, ": the served model is the adapter ", model_.folders().adapter,
                    "; serve its base to have other adapters beside it"));
  RETURN_IF_ERROR(engine::checkpoint::verify_model_files(folder));
  return engine::adapter::load_lora_model(folder, model_.decoder());
}

Result<ServedModel> ServedModel::load(const ServedModelOptions& options,
                                      const engine::models::ModelPart& part) {
  auto model = model::Model::load(options.model, model::NeededHead::any, part);
  RETURN_IF_ERROR(model);
  ServedModel served(std::move(*model));
  served.name_ = options.name.empty() ? options.model.model : options.name;
  served.vocabulary_ = served.model_.spec().vocabulary;
  served.context_ = served.model_.spec().max_positions;
  RETURN_IF_ERROR(served.read_head(options.runner));
  RETURN_IF_ERROR(served.read_generation_config(options));
  served.names_versions_ = options.names_versions;
  const std::string& folder = served.model_.folders().text;
  if (const auto tokenizer = served.model_.tokenizer()) {
    served.tokenizer_ = std::make_shared<const engine::tokenizer::Tokenizer>(**tokenizer);
    served.token_bytes_ = longest_token(*served.tokenizer_);
    served.constraints_ =
        std::make_unique<OutputConstraints>(*served.tokenizer_, served.vocabulary_);
    if (const std::string path = folder + "/tokenizer_config.json"; std::filesystem::exists(path)) {
      auto config = read_json(path);
      RETURN_IF_ERROR(config);
      served.tokenizer_config_ = std::move(*config);
    }
  } else if (engine::tokenizer::Tokenizer::is_in(folder)) {
    return fail(tokenizer);
  } else {
    served.no_tokenizer_ = tokenizer.error().what;
    log_warning("the model has no tokenizer: only requests with token ids are answered");
  }
  auto prompt = model::ChatPrompt::load(folder, options.chat_template);
  if (prompt) {
    served.chat_prompt_.emplace(std::move(*prompt));
  } else if (prompt.error().code == Errc::not_found && options.chat_template.empty()) {
    served.no_template_ = prompt.error().what;
  } else {
    return fail(prompt);
  }
  RETURN_IF_ERROR(served.read_formats(options));
  return served;
}

/// What the model can answer.
Result<> ServedModel::read_head(const std::string& runner) {
  if (runner == "generate" && labels() > 0) {
    return fail(Errc::usage, cat("--runner generate: ", name_, " is a reward model or critic (a ",
                                 "score head with ", labels(),
                                 " labels), which generates no text; "
                                 "leave --runner out"));
  }
  pools_ = labels() > 0 || runner == "pooling";
  if (labels() == 0) return {};
  const auto config = read_json(model_.folders().model + "/config.json");
  RETURN_IF_ERROR(config);
  classifies_tokens_ = engine::models::architecture_of(*config).ends_with("ForTokenClassification");
  if (const Json* names = config->find("id2label")) labels_ = *names;
  return {};
}

Json ServedModel::label(std::size_t index) const {
  const Json* name = labels_.find(std::to_string(index));
  return name != nullptr && name->is_string() ? *name : Json();
}

Result<> ServedModel::read_formats(const ServedModelOptions& options) {
  if (!options.tool_call_parser.empty()) {
    const auto format = call_format_of(options.tool_call_parser);
    if (!format) {
      return fail(Errc::usage, cat("--tool-call-parser ", quote(options.tool_call_parser),
                                   ": expected one of ", join(call_format_names(), ", ")));
    }
    call_format_ = *format;
  } else if (chat_prompt_) {
    call_format_ = call_format_in(chat_prompt_->source());
  }
  if (options.reasoning_parser.empty()) return {};
  const auto format = reasoning_format_of(options.reasoning_parser);
  if (!format) {
    return fail(Errc::usage, cat("--reasoning-parser ", quote(options.reasoning_parser),
                                 ": expected one of ", join(reasoning_format_names(), ", ")));
  }
  reasoning_format_ = *format;
  return {};
}

Result<> ServedModel::read_generation_config(const ServedModelOptions& options) {
  eos_ids_ = model_.spec().eos_ids;
  if (options.sampling) {
    defaults_ = options.sampling->distribution();
    return {};
  }
  const std::string path = model_.folders().text + "/generation_config.json";
  if (!std::filesystem::exists(path)) return {};
  const auto file = read_json(path);
  RETURN_IF_ERROR(file);
  const auto config = engine::generate::read_generation_config(*file, path);
  RETURN_IF_ERROR(config);
  if (!config->eos_ids.empty()) eos_ids_ = config->eos_ids;
  for (const std::string_view key : sampling_defaults) {
    if (const Json* value = file->find(key))
      RETURN_IF_ERROR(engine::generate::read_sampling_param(key, *value, defaults_));
  }
  return engine::generate::validate(defaults_, vocabulary_);
}

Result<std::vector<std::int32_t>> ServedModel::encode(std::string_view text,
                                                      bool add_special) const {
  if (!tokenizer_) {
    return fail(Errc::unsupported,
                cat("the model has no tokenizer (", no_tokenizer_, "); send token ids"));
  }
  if (std::ssize(text) / token_bytes_ > context_) {
    return fail(Errc::bad_input,
                cat("a text of ", text.size(), " bytes cannot fit the context of ", context_,
                    " tokens, which have at most ", token_bytes_, " bytes each"));
  }
  auto tokens = tokenizer_->encode(text, add_special);
  for (const auto id : tokens) {
    if (id >= vocabulary_) {
      return fail(Errc::bad_input, cat("the tokenizer returned id ", id, ", but the model has ",
                                       vocabulary_, " tokens; they do not match"));
    }
  }
  return tokens;
}

Result<OutputConstraint> ServedModel::constrain(const ConstraintText& text) const {
  if (constraints_ == nullptr) {
    return fail(Errc::unsupported, cat("the model has no tokenizer (", no_tokenizer_,
                                       "), and its outputs cannot be constrained"));
  }
  return constraints_->compile(text);
}

bool ServedModel::template_has_tools() const {
  return chat_prompt_ && chat_prompt_->source().find("tools") != std::string::npos;
}

Result<std::string> ServedModel::render(Conversation conversation) const {
  if (!chat_prompt_) {
    return fail(Errc::unsupported,
                cat("the model has no chat template; use /v1/completions, or start the server with "
                    "--template (",
                    no_template_, ")"));
  }
  if (!conversation.continues_last) return chat_prompt_->render(std::move(conversation));
  // As transformers: a mark behind the content is where the text ends. Templates that trim the
  // content take its blank, and would take those before it.
  const std::string mark = "<continued message> ";
  Json& last = conversation.messages.array().back();
  last.set("content", last.find("content")->string() + mark);
  auto text = chat_prompt_->render(std::move(conversation));
  RETURN_IF_ERROR(text);
  const std::size_t at = text->rfind(mark.substr(0, mark.size() - 1));
  if (at == std::string::npos)
    return fail(Errc::bad_input,
                "continue_final_message: the chat template does not show the content of the last "
                "message");
  const bool trims = text->compare(at, mark.size(), mark) != 0;
  text->resize(at);
  if (trims) text->erase(text->find_last_not_of(" \n\r\t") + 1);
  return text;
}

Result<Json> ServedModel::tokenizer_info() const {
  if (!tokenizer_)
    return fail(Errc::unsupported, cat("the model has no tokenizer (", no_tokenizer_, ")"));
  Json info = Json::Object{};
  constexpr std::string_view paths[] = {"vocab_file", "merges_file", "tokenizer_file",
                                        "name_or_path", "chat_template"};
  if (tokenizer_config_.is_object())
    for (const auto& [name, value] : tokenizer_config_.object()) {
      if (std::ranges::find(paths, name) != std::ranges::end(paths)) continue;
      const Json* content = value.find("content");  // of a token with its flags
      info.set(name, content != nullptr ? *content : value);
    }
  if (info.find("tokenizer_class") == nullptr)
    info.set("tokenizer_class", "PreTrainedTokenizerFast");
  if (chat_prompt_) info.set("chat_template", chat_prompt_->source());
  return info;
}

}  // namespace troupe::launch::serve::api
