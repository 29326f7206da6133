#include "launch/commands/eval/items.h"

#include <algorithm>
#include <map>

#include "actors/roles/reward_scoring.h"
#include "actors/roles/rollout.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/run/roles.h"
#include "launch/run/settings.h"

namespace troupe::launch::commands {
namespace {

using actors::protocol::Completion;
using actors::protocol::RewardResult;

engine::generate::Generator make_generator(const config::RunConfig& config, model::Model& model,
                                           const std::shared_ptr<run::TextModel>& text) {
  auto settings = run::generator_settings(config, model.spec());
  settings.decode = [text](std::span<const std::int32_t> ids) { return text->decode(ids); };
  settings.encode = [text](std::string_view word) { return text->encode(word, false); };
  return value_or_throw(engine::generate::Generator::create(model.decoder(), std::move(settings)));
}

// {"exact_match": [1, 0]}: the values of each part, null where a reward failed.
Json parts_of(std::span<const RewardResult> results) {
  std::map<std::string, Json::Array> parts;
  for (std::size_t k = 0; k < results.size(); ++k)
    for (const auto& [name, value] : results[k].parts) {
      auto& values = parts[name];
      values.resize(results.size());
      values[k] = value;
    }
  Json out = Json::Object{};
  for (auto& [name, values] : parts) out.set(name, std::move(values));
  return out;
}

Json line_of(std::size_t id, const engine::data::PromptRow& row,
             std::span<const Completion> completions, std::span<const RewardResult> results) {
  Json::Array texts, rewards, reasons, tokens, failures;
  bool failed = false;
  for (std::size_t k = 0; k < completions.size(); ++k) {
    texts.emplace_back(repair_utf8(completions[k].text));
    rewards.push_back(results[k].reward ? Json(*results[k].reward) : Json());
    reasons.emplace_back(to_string(completions[k].finish_reason));
    tokens.emplace_back(std::ssize(completions[k].ids));
    failed |= !results[k].reward;
    failures.push_back(results[k].reward ? Json() : Json(repair_utf8(results[k].failure)));
  }
  Json line;
  line.set("id", static_cast<std::int64_t>(id)).set("prompt", repair_utf8(row.text));
  line.set("answer", row.answer)
      .set("completions", std::move(texts))
      .set("rewards", std::move(rewards))
      .set("parts", parts_of(results));
  line.set("finish_reasons", std::move(reasons)).set("tokens", std::move(tokens));
  if (failed) line.set("failures", std::move(failures));
  return line;
}

}  // namespace

EvalItems::EvalItems(const config::RunConfig& config, const model::ModelOptions& model)
    : config_(config),
      model_(value_or_throw(model::Model::load(model, model::NeededHead::language))),
      text_(value_or_throw(run::TextModel::load(model_.folders().text, config.chat_template,
                                                model_.spec(), config.tokenizer_ids))),
      data_(value_or_throw(engine::data::load<engine::data::PromptRow>(
          value_or_throw(run::data_settings(config, model_.spec(), config.data.path)), *text_))),
      settings_(recipes::eval_settings(config)),
      decode_([text = text_](std::span<const std::int32_t> ids) { return text->decode(ids); }),
      generator_(make_generator(config, model_, text_)) {
  if (recipes::verifier_use(config).needed) {
    rules_ =
        value_or_throw(actors::rules::Rules::from_json(recipes::reward_rules(config), "reward"));
    value_or_throw(rules_->start());
  }
  if (recipes::reward_use(config).needed)
    reward_models_ =
        run::make_reward({config, "", model_.decoder().device(), nullptr, nullptr, text_});
}

std::size_t EvalItems::at_once() const {
  const std::int64_t samples = 2 * config_.rollout.max_sequences / settings_.samples;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, samples));
}

std::vector<Completion> EvalItems::sample(const algorithms::PromptBatch& prompts) {
  const auto options = algorithms::eval_rollout_options(settings_);
  return value_or_throw(actors::roles::sample_completions(
      generator_, {algorithms::sample_requests(prompts, options), settings_.sampling}, decode_, 0));
}

std::vector<RewardResult> EvalItems::reward(
    const std::vector<actors::protocol::RewardRequest>& requests) {
  std::vector<RewardResult> results;
  if (rules_) results = rules_->score(requests);
  if (!reward_models_) return results;
  auto models = value_or_throw(reward_models_->on(actors::protocol::ComputeRewards{requests}));
  if (!rules_) return models;
  for (std::size_t n = 0; n < models.size(); ++n) actors::roles::add(models[n], results[n]);
  return results;
}

std::vector<Json> EvalItems::evaluate(std::size_t first, std::size_t count) {
  const auto prompts = algorithms::eval_prompts(data_.examples, first, count);
  const auto options = algorithms::eval_rollout_options(settings_);
  const auto completions = sample(prompts);
  const auto results = reward(algorithms::reward_requests(prompts, completions, 0, options));
  const auto samples = static_cast<std::size_t>(settings_.samples);
  std::vector<Json> lines;
  for (std::size_t i = 0; i < prompts.ids.size(); ++i)
    lines.push_back(line_of(first + i, *prompts.examples[i],
                            std::span(completions).subspan(i * samples, samples),
                            std::span(results).subspan(i * samples, samples)));
  return lines;
}

}  // namespace troupe::launch::commands
