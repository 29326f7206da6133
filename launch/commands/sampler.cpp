#include "launch/commands/sampler.h"

#include <algorithm>

#include "launch/commands/json_lines.h"

namespace troupe::launch {

using engine::generate::Generation;
using engine::generate::Generator;

namespace {

Model load(const ModelOptions& options) { return value_or_throw(Model::load(options)); }

Json number(float value) { return number_or_null(static_cast<double>(value)); }

}  // namespace

Sampler::Sampler(const GenerateOptions& options, engine::generate::TokenCallback on_token)
    : model_(load(options.model)), generator_([&] {
        engine::generate::GeneratorConfig config;
        config.max_sequences = std::clamp<std::int32_t>(options.samples, 1, 64);
        config.precision = model_.precision();
        config.eos_ids = model_.spec().eos_ids;
        config.decode = [this](std::span<const std::int32_t> ids) { return text_after_prompt(ids); };
        config.on_token = std::move(on_token);
        return value_or_throw(Generator::create(model_.decoder(), std::move(config)));
      }()) {}

Result<std::vector<Generation>> Sampler::draw(const std::vector<std::int32_t>& prompt, const engine::generate::SamplingParams& sampling,
                                              std::int32_t samples, std::uint64_t first_sample) {
  if (!sampling.stop_strings.empty()) {
    if (const auto words = model_.tokenizer(); !words) return fail(words.error());
  }
  prompt_ = prompt;
  std::vector<engine::generate::Request> requests;
  for (std::int32_t k = 0; k < samples; ++k) {
    requests.push_back({.id = next_id_++, .prompt = prompt, .params = sampling, .sample_id = first_sample + static_cast<std::uint64_t>(k)});
  }
  return generator_.generate_all(std::move(requests));
}

std::string Sampler::text_after_prompt(std::span<const std::int32_t> ids) {
  const auto words = model_.tokenizer();
  if (!words) return "";
  std::vector<std::int32_t> all = prompt_;
  const std::string before = (*words)->decode(all, true);
  all.insert(all.end(), ids.begin(), ids.end());
  const std::string whole = (*words)->decode(all, true);
  return whole.starts_with(before) ? whole.substr(before.size()) : (*words)->decode(ids, true);
}

Json json_of(const Generation& drawn, bool has_text) {
  Json::Array ids, logp, top;
  for (const auto id : drawn.ids) ids.emplace_back(std::int64_t{id});
  for (const float value : drawn.logp) logp.push_back(number(value));
  for (const auto& place : drawn.top) {
    Json::Array row;
    for (const auto& each : place) row.push_back(Json::Object{{"id", std::int64_t{each.id}}, {"logprob", number(each.logp)}});
    top.emplace_back(std::move(row));
  }
  Json out;
  out.set("ids", std::move(ids));
  out.set("text", has_text ? Json(drawn.text) : Json());
  out.set("logprobs", std::move(logp));
  if (!top.empty()) out.set("top_logprobs", std::move(top));
  out.set("finish_reason", to_string(drawn.finish));
  return out;
}

}  // namespace troupe::launch
