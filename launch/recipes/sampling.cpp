#include "launch/recipes/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "actors/roles/rules/rules.h"
#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"

namespace troupe::launch::recipes {

namespace {

using engine::generate::SamplingParams;

using config::ReplayMask;

std::string allowed_bytes(const config::RunConfig& config) {
  return cat("the sampling masks of a batch may have ", to_text(max_mask_bytes(config).batch),
             " bytes, and rollout.mask_bytes is ", config.rollout.mask_bytes);
}

/// Why a run cannot replay sampling masks, or "".
std::string mask_obstacle(const config::RunConfig& config) {
  const config::RolloutConfig& r = config.rollout;
  if (r.sampling.changes_logits())
    return "penalties and biases change the logits that the trainer would normalize";
  if (r.source != config::SampleSource::service &&
      max_mask_bytes(config).batch > static_cast<double>(r.mask_bytes))
    return allowed_bytes(config);
  return "";
}

void validate_replay(Validation& v) {
  const config::RolloutConfig& r = v.config.rollout;
  if (r.replay_sampling_mask != ReplayMask::on) return;
  const std::string obstacle = mask_obstacle(v.config);
  if (!obstacle.empty())
    v.problem(cat(v.named("rollout.replay_sampling_mask"), ": ", obstacle,
                  "; expected off or auto, or other settings"));
}

std::string reason_without_replay(const config::RunConfig& config) {
  if (config.rollout.replay_sampling_mask == ReplayMask::off)
    return "rollout.replay_sampling_mask is off";
  if (const std::string obstacle = mask_obstacle(config); !obstacle.empty()) return obstacle;
  if (replays_sampling_mask(config))
    return "where programs send no sampling_masks; rollout.replay_sampling_mask = on requires them";
  return "compat keeps the loss of the whole distribution; rollout.replay_sampling_mask = on "
         "changes that";
}

/// The trainer knows the temperature and, with replay, the tokens that were left; what else changes
/// the distribution of samples does not change the one that is trained.
void warn_of_other_distribution(Validation& v) {
  const bool optional = v.config.rollout.source == config::SampleSource::service &&
                        v.config.rollout.replay_sampling_mask != ReplayMask::on;
  if (replays_sampling_mask(v.config) && !optional) return;
  for (const config::Field& field : config::fields())
    if (field.key.starts_with("rollout.") &&
        SamplingParams::changes_distribution(
            field.key.substr(std::string_view("rollout.").size())) &&
        config::value_text(field, v.config) != field.default_text)
      v.warn(cat(v.named(field.key),
                 ": samples come from another distribution than the policy's, and the loss is that "
                 "of the whole distribution, so another policy is trained than the one that "
                 "samples (",
                 reason_without_replay(v.config), ")"));
}

/// What ranges do not say: lengths that contradict each other, ids that are no tokens.
void validate_sampling(Validation& v) {
  SamplingParams params = v.config.rollout.sampling;
  std::erase_if(params.token_rules.bad_words, [](const auto& word) { return !word.text.empty(); });
  const auto spec = spec_of(v.config, v.config.model);
  const std::int64_t vocabulary =
      spec ? spec->vocabulary : std::numeric_limits<std::int32_t>::max();
  if (const auto valid = engine::generate::validate(params, vocabulary); !valid)
    v.problem(cat("rollout.", valid.error().what));
}

/// The rollouts must have the weights of the policy when they are compared.
void validate_parity_sample(Validation& v) {
  if (v.config.rollout.parity_sample == 0) return;
  const std::string key = v.named("rollout.parity_sample");
  if (v.config.async.stale())
    v.problem(cat(key, ": before an update the rollouts may have other weights than the policy, ",
                  "so that the values differ; expected 0, or async.mode = off or async.eta = 0"));
  if (v.config.rollout.source == config::SampleSource::service)
    v.problem(cat(key, ": rollout.source is service: other programs sample; expected 0"));
}

}  // namespace

void validate_rollout(Validation& v) {
  validate_sampling(v);
  validate_replay(v);
  validate_parity_sample(v);
  warn_of_other_distribution(v);
  if (v.config.rollout.sampling.temperature == 0)
    v.problem(
        cat(v.named("rollout.temperature"),
            ": greedy samples of a prompt are all equal, so no advantage is ever above 0; 1 is "
            "usual"));
}

void validate_async(Validation& v, std::int64_t samples_per_row) {
  const algorithms::AsyncConfig& a = v.config.async;
  const algorithms::AsyncConfig defaults;
  const auto only_free = [&](const char* key, bool chosen) {
    if (chosen && a.mode == algorithms::AsyncMode::pinned)
      v.problem(cat(v.named(key),
                    ": applies to async.mode free; with pinned every sample has one version of the "
                    "weights, so none is interrupted"));
  };
  // A process of a cluster is given every setting, with its default too.
  only_free("async.partial", a.change.partial != defaults.change.partial);
  only_free("async.cache", a.change.cache != defaults.change.cache);
  if (!a.on())
    return v.unused({"async.eta", "async.in_flight", "async.partial", "async.cache"},
                    "async.mode is off");
  const std::int64_t samples = v.config.train.batch_size * samples_per_row;
  if (a.in_flight > 0 && a.in_flight < samples)
    v.problem(cat(v.named("async.in_flight"), ": a batch has ", samples,
                  " samples, so none could ever be complete; the nearest valid value is ",
                  samples));
  if (a.eta == 0)
    v.warn(cat(v.named("async.eta"),
               ": every batch waits for the weights after the one before it, so sampling and "
               "training do not overlap; 1 is usual"));
}

void validate_weights(Validation& v) {
  if (v.config.weights.format != actors::protocol::WeightCoding::bf16) return;
  if (v.config.train.dtype != engine::ops::Precision::bf16)
    v.problem(cat(v.named("weights.format"),
                  ": the rollouts compute in f32 (train.dtype), so bf16 would change their "
                  "samples; f32 and delta do not"));
  else if (samples_in_int8(v.config))
    v.problem(cat(v.named("weights.format"),
                  ": rollout.weights int8 is made of the f32 weights; f32 and delta keep them"));
}

namespace {

// Settings of the server that need others.
void validate_server(Validation& v) {
  const serve::ServeConfig& s = v.config.serve;
  v.check(serve::listen_address(s.listen));
  if (v.config.lora.rank > 0 || !v.config.lora.adapter.empty())
    v.problem(cat(v.named("serve.listen"),
                  ": the server has whole weights only, not those of an adapter (lora)"));
  if (s.tls_cert.empty() != s.tls_key.empty())
    v.problem("serve.tls_cert, serve.tls_key: TLS needs both");
}

// Samples of other programs.
void validate_service(Validation& v) {
  const config::RunConfig& c = v.config;
  const std::string key = v.named("rollout.source");
  if (c.serve.listen.empty())
    v.problem(cat(key,
                  ": other programs send samples to the server of the rollouts; set "
                  "serve.listen"));
  const auto address = serve::listen_address(c.serve.listen);
  const bool by_file = address && !address->unix_socket.empty();
  if (!c.serve.listen.empty() && c.serve.api_key_file.empty() && !by_file)
    v.problem(cat(key,
                  ": any user of this host could lease samples and send others; set "
                  "serve.api_key_file (docs/agents.md), or serve.listen = unix:PATH"));
  if (!c.rollout.lease_keys.empty() && c.serve.api_key_file.empty())
    v.problem(cat(v.named("rollout.lease_keys"),
                  ": the names are those of keys; set serve.api_key_file"));
  if (recipe_of(c).name == algorithms::PpoConfig::name)
    v.problem(cat(key, ": only grpo and its relatives train on samples of other programs"));
  if (!c.reward.empty())
    v.problem(cat(key, ": the rewards come with the samples; leave out reward"));
  if (!c.eval.path.empty())
    v.problem(cat(key,
                  ": the rollouts do not sample; leave out eval.path, and evaluate the "
                  "checkpoints with the program that makes the samples"));
  if (c.rollout.sampling.temperature != 1)
    v.problem(cat(v.named("rollout.temperature"),
                  ": the log-probabilities of the API are those at temperature 1, which ", key,
                  " trains on; the only valid value is 1"));
  if (c.async.mode == algorithms::AsyncMode::pinned)
    v.problem(cat(v.named("async.mode"), ": ", key,
                  " cannot sample with given versions; expected off or free"));
  if (c.grpo.advantage.estimator == algorithms::Estimator::remax)
    v.problem(cat(v.named("grpo.estimator"), ": ", key, " makes no greedy answers"));
}

}  // namespace

void validate_serve(Validation& v) {
  const bool service = v.config.rollout.source == config::SampleSource::service;
  if (service) validate_service(v);
  for (const char* key : {"rollout.lease_timeout", "rollout.max_leases", "rollout.lease_keys"})
    if (!service) v.unused(key, "rollout.source is engine");
  if (!v.config.serve.listen.empty()) return validate_server(v);
  v.unused_section("serve", "serve.listen", "serve.listen is not set");
}

namespace {

bool all_known(Validation& v) {
  auto known = actors::rules::rule_names();
  for (const std::string_view model : model_rules) known.emplace_back(model);
  for (std::size_t i = 0; i < v.config.reward.size(); ++i) {
    const std::string& name = v.config.reward[i].rule;
    if (std::ranges::find(known, name) != known.end()) continue;
    // The beginning of a name is enough to mean it.
    const auto begins = std::ranges::find_if(
        known, [&](const auto& each) { return name.size() >= 3 && each.starts_with(name); });
    const std::string near = begins != known.end() ? *begins : nearest(name, known);
    v.problem(
        cat("reward[", i, "]: unknown rule ", quote(name),
            near.empty() ? "; the rules are " : cat("; did you mean ", near, "? The rules are "),
            join(known, ", "), " (docs/rewards.md)"));
    return false;
  }
  return true;
}

}  // namespace

void validate_reward(Validation& v) {
  const auto& reward = v.config.reward;
  if (std::ranges::none_of(reward, is_program))
    v.unused("rollout.max_reward_failures",
             "reward has no rule command or python, whose program can fail");
  if (v.config.rollout.source == config::SampleSource::service) return;
  if (reward.empty())
    return v.problem(cat("reward is not set; ", v.config.algorithm,
                         " needs at least one rule: --set reward=exact_match"));
  if (!all_known(v)) return;
  v.check(reward_items(v.config));
  const Json rules = reward_rules(v.config);
  if (!rules.array().empty()) v.check(actors::rules::Rules::from_json(rules, "reward"));
  if (std::ranges::all_of(reward, [](const config::RewardRule& rule) { return rule.weight == 0; }))
    v.problem("reward: every weight is 0, so every reward is 0");
}

bool samples_in_int8(const config::RunConfig& config) {
  return config.rollout.generator.weights == engine::models::WeightFormat::int8;
}

std::int64_t rotary_switch_within(const config::RunConfig& config) {
  const auto spec = spec_of(config, config.model);
  if (!spec) return 0;
  std::int64_t longest = spec->max_positions;
  if (config.train.max_length > 0) longest = std::min(longest, config.train.max_length);
  for (const auto& table : spec->rotary) {
    const bool switches = !table.long_inverse_frequencies.empty() || table.ntk_factor != 1;
    if (switches && table.original_length > 0 && table.original_length < longest)
      return table.original_length;
  }
  return 0;
}

bool samples_have_other_logp(const config::RunConfig& config) {
  return samples_in_int8(config) || rotary_switch_within(config) > 0;
}

bool replays_sampling_mask(const config::RunConfig& config) {
  const config::RolloutConfig& r = config.rollout;
  const bool wanted =
      r.replay_sampling_mask == ReplayMask::on ||
      (r.replay_sampling_mask == ReplayMask::automatic && config.compat == config::Compat::none);
  const bool removes = r.sampling.removes_tokens() || r.source == config::SampleSource::service;
  return wanted && removes && mask_obstacle(config).empty();
}

namespace {

double samples_of_batch(const config::RunConfig& config) {
  const bool ppo = config.algorithm == algorithms::PpoConfig::name;
  return static_cast<double>(config.train.batch_size) *
         (ppo ? config.ppo.minibatches * config.ppo.group
              : config.grpo.minibatches * config.grpo.group);
}

}  // namespace

MaskBytes max_mask_bytes(const config::RunConfig& config) {
  const auto spec = spec_of(config, config.model);
  if (!spec) return {};
  MaskBytes most{.token = config.rollout.sampling.max_mask_bytes(spec->vocabulary)};
  most.batch = samples_of_batch(config) * config.rollout.sampling.max_new_tokens *
               static_cast<double>(most.token);
  return most;
}

std::int64_t max_sent_mask_bytes(const config::RunConfig& config) {
  const bool service = config.rollout.source == config::SampleSource::service;
  if (!service || !replays_sampling_mask(config)) return 0;
  const double share = static_cast<double>(config.rollout.mask_bytes) / samples_of_batch(config);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(share));
}

int recorded_samples(const config::RunConfig& config, int shown) {
  return config.rollout.record == config::Record::all ? std::numeric_limits<int>::max() : shown;
}

void set_parity_sample(const config::RunConfig& config, algorithms::RolloutOptions& options) {
  options.parity_sample = config.rollout.parity_sample;
  if (options.parity_sample == 0) return;
  if (const auto spec = spec_of(config, config.model)) options.vocabulary = spec->vocabulary;
}

engine::generate::SamplingParams sampling_settings(const config::RunConfig& config) {
  engine::generate::SamplingParams params = config.rollout.sampling;
  params.seed = static_cast<std::uint64_t>(config.train.seed);
  params.report_masks = replays_sampling_mask(config);
  return params;
}

bool is_program(const config::RewardRule& rule) {
  return rule.rule == "command" || rule.rule == "python";
}

Json reward_rules(const config::RunConfig& config) {
  Json::Array list;
  for (const config::RewardRule& rule : config.reward) {
    if (is_model(rule)) continue;
    Json entry = Json().set("name", rule.rule).set("weight", rule.weight);
    if (!rule.label.empty()) entry.set("label", rule.label);
    if (!rule.options.is_null()) entry.set("options", rule.options);
    list.push_back(std::move(entry));
  }
  return list;
}

actors::rules::RuleInputs reward_inputs(const config::RunConfig& config) {
  const Json list = reward_rules(config);
  if (list.array().empty()) return {};
  const auto rules = actors::rules::Rules::from_json(list, "reward");
  return rules ? rules->inputs() : actors::rules::RuleInputs{};
}

std::function<Result<>(const engine::data::PromptRow&)> prompt_check(
    const config::RunConfig& config) {
  const Json list = reward_rules(config);
  if (list.array().empty()) return {};
  const auto rules = std::make_shared<const actors::rules::Rules>(
      value_or_throw(actors::rules::Rules::from_json(list, "reward")));
  return [rules](const engine::data::PromptRow& row) { return rules->check_answer(row.answer); };
}

std::string mask_formula(const config::RunConfig& config) {
  if (!replays_sampling_mask(config)) return "";
  if (config.rollout.source == config::SampleSource::service)
    return cat(
        "p, p_old, p_ref, H: over the tokens of sampling_masks where they are sent, at most ",
        max_sent_mask_bytes(config), " bytes a sample\n");
  const MaskBytes most = max_mask_bytes(config);
  return cat("p, p_old, p_ref, H: over the tokens left to sample from, stored in at most ",
             most.token, " bytes a token, ", to_text(std::ceil(most.batch / (1 << 20))),
             " MiB a batch\n");
}

std::string reward_formula(const config::RunConfig& config) {
  if (config.rollout.source == config::SampleSource::service)
    return "R = reward of the sample, as sent";
  std::vector<std::string> parts;
  for (const config::RewardRule& rule : config.reward)
    parts.push_back(cat(to_text(rule.weight), " ", rule.rule));
  return cat("R = ", join(parts, " + "));
}

}  // namespace troupe::launch::recipes
