#include "launch/commands/eval/items.h"

#include <algorithm>
#include <map>
#include <utility>

#include "actors/roles/reward_scoring.h"
#include "actors/roles/rollout.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/run/roles.h"
#include "launch/run/settings.h"

namespace troupe::launch::commands {
namespace {

using actors::protocol::Completion;
using actors::protocol::RewardResult;

std::unique_ptr<engine::serving::Engine> make_engine(const config::RunConfig& config,
                                                     model::Model& model,
                                                     const std::shared_ptr<run::TextModel>& text) {
  auto settings = run::generator_settings(config, model.spec());
  settings.decode = [text](std::span<const std::int32_t> ids) { return text->decode(ids); };
  settings.encode = [text](std::string_view word) { return text->encode(word, false); };
  auto engine = std::make_unique<engine::serving::Engine>(model.decoder(), std::move(settings));
  value_or_throw(engine->start());
  return engine;
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
          value_or_throw(run::data_settings(config, model_.spec())), *text_))),
      settings_(recipes::eval_settings(config)),
      decode_([text = text_](std::span<const std::int32_t> ids) { return text->decode(ids); }),
      engine_(make_engine(config, model_, text_)) {
  if (recipes::verifier_use(config).needed) {
    rules_ =
        value_or_throw(actors::rules::Rules::from_json(recipes::reward_rules(config), "reward"));
    value_or_throw(rules_->start());
  }
  if (recipes::reward_use(config).needed)
    reward_models_ =
        run::make_reward({config, "", model_.decoder().device(), nullptr, nullptr, text_});
}

/// Starts the samples of an item.
void EvalItems::start(std::size_t item) {
  const auto prompts = algorithms::eval_prompts(data_.examples, item, 1);
  for (auto& sample :
       algorithms::sample_requests(prompts, algorithms::eval_rollout_options(settings_))) {
    engine::serving::Job job;
    job.sample_id = sample.sample_id;
    job.request = std::make_shared<const engine::generate::Request>(engine::generate::Request{
        .prompt = std::move(sample.prompt), .params = settings_.sampling});
    job.on_end = [this](auto ended) { ended_.push_back(std::move(ended)); };
    samples_.emplace_back();
    engine_->submit(started_++, std::move(job));
  }
}

/// One step of the engine.
void EvalItems::step() {
  if (!engine_->idle()) engine_->step();
  for (auto& ended : std::exchange(ended_, {})) {
    auto sample = value_or_throw(std::move(ended));
    const std::size_t place = sample.id - written_;
    samples_[place] = actors::roles::completion_of(std::move(sample), decode_, 0);
  }
}

/// The completions of the next items that have all of theirs; none while they are fewer than
/// `least`.
std::vector<Completion> EvalItems::take_complete(std::size_t least) {
  const auto samples = static_cast<std::size_t>(settings_.samples);
  const auto open = std::ranges::find_if(samples_, [](const auto& each) { return !each; });
  const std::size_t count = static_cast<std::size_t>(open - samples_.begin()) / samples * samples;
  std::vector<Completion> complete;
  if (count < least) return complete;
  for (; complete.size() < count; samples_.pop_front())
    complete.push_back(std::move(*samples_.front()));
  written_ += count;
  return complete;
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

void EvalItems::evaluate(std::size_t first, const std::function<void(std::vector<Json>)>& write) {
  const auto samples = static_cast<std::size_t>(settings_.samples);
  const auto at_once = static_cast<std::size_t>(config_.rollout.generator.max_sequences);
  std::size_t next = first;
  while (first < size()) {
    while (next < size() && samples_.size() < 4 * at_once &&
           (engine_->idle() || engine_->active() + samples <= 2 * at_once))
      start(next++);
    step();
    // Reward models score several items together.
    const auto completions = take_complete(engine_->idle() ? samples : at_once);
    if (completions.empty()) continue;
    auto lines = lines_of(first, completions);
    first += lines.size();
    write(std::move(lines));
  }
}

std::vector<Json> EvalItems::lines_of(std::size_t first,
                                      const std::vector<Completion>& completions) {
  const auto samples = static_cast<std::size_t>(settings_.samples);
  const auto prompts =
      algorithms::eval_prompts(data_.examples, first, completions.size() / samples);
  const auto options = algorithms::eval_rollout_options(settings_);
  const auto results = reward(algorithms::reward_requests(prompts, completions, 0, options));
  std::vector<Json> lines;
  for (std::size_t i = 0; i < prompts.ids.size(); ++i)
    lines.push_back(line_of(first + i, *prompts.examples[i],
                            std::span(completions).subspan(i * samples, samples),
                            std::span(results).subspan(i * samples, samples)));
  return lines;
}

}  // namespace troupe::launch::commands
