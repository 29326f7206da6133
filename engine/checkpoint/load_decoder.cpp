#include "engine/checkpoint/load_decoder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_parameters.h"
#include "engine/checkpoint/not_a_model.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/models/overrides.h"
#include "engine/models/split.h"

namespace troupe::engine::checkpoint {
namespace {

// generation_config.json may name more end tokens than config.json (Llama 3's <|eot_id|>).
Result<> add_end_tokens(const std::string& path, models::DecoderSpec& spec) {
  if (!std::filesystem::exists(path)) return {};
  const auto config = read_json(path, {.bytes = 16u << 20});
  RETURN_IF_ERROR(config);
  if (!config->is_object())
    return fail(Errc::bad_input,
                cat(path, ": expected a JSON object, found ", config->type_name()));
  const Json* member = config->find("eos_token_id");
  if (!member || member->is_null()) return {};
  const Json::Array ids = member->is_array() ? member->array() : Json::Array{*member};
  for (const auto& id : ids) {
    if (!id.is_integer() || id.integer() < 0 || id.integer() >= spec.vocabulary)
      return fail(Errc::bad_input,
                  cat(path, ": \"eos_token_id\" must be a token id below vocab_size ",
                      spec.vocabulary, ", found ", quote(id.dump(), 40)));
    const auto token = static_cast<std::int32_t>(id.integer());
    if (std::ranges::find(spec.eos_ids, token) == spec.eos_ids.end()) spec.eos_ids.push_back(token);
  }
  return {};
}

// Checks the parameter count of config.json against the files before memory is allocated.
Result<> check_size(const std::string& folder, const models::DecoderSpec& spec) {
  const auto weights = SafetensorsFolder::open(folder);
  RETURN_IF_ERROR(weights);
  std::int64_t stored = 0;
  for (const auto& location : weights->all()) stored += location.tensor->count();
  if (spec.parameter_count() <= stored) return {};
  return fail(Errc::corrupt, cat(folder, ": config.json describes ", spec.parameter_count(),
                                 " parameters, the weight files hold ", stored,
                                 "; they do not belong to the same model"));
}

// Box and Muller 1958.
double normal(std::uint64_t seed, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, 0, 2 * index)));
  return radius * std::cos(2 * std::numbers::pi * uniform(seed, 0, 2 * index + 1));
}

}  // namespace

Result<models::DecoderSpec> read_folder_spec(const std::string& folder, const Json& overrides) {
  const std::string path = folder + "/config.json";
  auto config = read_json(path, {.bytes = 16u << 20});
  std::error_code ignored;
  if (!config &&
      (config.error().code == Errc::not_found || std::filesystem::is_regular_file(folder, ignored)))
    return fail(Errc::not_found, cat(folder, ": ", why_not_a_model(folder)));
  RETURN_IF_ERROR(config);
  config = models::with_overrides(std::move(*config), overrides, path);
  RETURN_IF_ERROR(config);
  auto spec = models::read_spec(*config, path);
  if (!spec) return spec;
  RETURN_IF_ERROR(add_end_tokens(folder + "/generation_config.json", *spec));
  return spec;
}

Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      bool with_gradients,
                                                      const models::ModelPart& part) {
  auto spec = read_folder_spec(folder);
  RETURN_IF_ERROR(spec);
  return load_decoder(device, folder, std::move(*spec), with_gradients, part);
}

void init_score_head(models::Decoder& model, double std_dev, std::uint64_t seed) {
  if (!model.stage().last()) return;
  const nn::ScoreHead& head = model.score();
  std::vector<float> values;
  for (std::int64_t i = 0; i < head.weight->value.count(); ++i)
    values.push_back(static_cast<float>(std_dev * normal(seed, static_cast<std::uint64_t>(i))));
  model.device().upload(head.weight->value, values);
  if (head.bias) model.device().fill(head.bias->value, 0);
}

Result<std::unique_ptr<models::Decoder>> load_decoder(ops::Device& device,
                                                      const std::string& folder,
                                                      models::DecoderSpec spec, bool with_gradients,
                                                      const models::ModelPart& part) {
  auto stored = read_folder_spec(folder);
  RETURN_IF_ERROR(stored);
  RETURN_IF_ERROR(check_size(folder, *stored));
  RETURN_IF_ERROR(models::check_split(spec, part.tp ? part.tp->size() : 1));
  LoadOptions options{.tied = spec.tied, .fresh_score = spec.labels > 0 && stored->labels == 0};
  auto model = std::make_unique<models::Decoder>(device, std::move(spec), with_gradients, part);
  options.whole = &model->whole();
  if (options.fresh_score) init_score_head(*model, 0, 0);
  RETURN_IF_ERROR(load_parameters(folder, model->parameters(), options));
  return model;
}

}  // namespace troupe::engine::checkpoint
