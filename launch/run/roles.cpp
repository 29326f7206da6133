#include "launch/run/roles.h"

#include <algorithm>
#include <map>

#include "algorithms/catalog.h"
#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/data/layouts/steps.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/pretrain.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/rewards.h"
#include "launch/recipes/sampling.h"
#include "launch/run/checkpoint_space.h"
#include "launch/run/resumable.h"
#include "launch/run/run_record.h"
#include "launch/run/settings.h"
#include "launch/run/trained_model.h"
#include "launch/run/training_state.h"
#include "launch/serve/live/rollout_server.h"

namespace troupe::launch::run {
namespace checkpoint = engine::checkpoint;
namespace roles = actors::roles;
using engine::tokenizer::Tokenizer;

namespace {

// How the weights of `source`, or most of them, are stored.
checkpoint::StoredType type_in(const std::string& source) {
  const auto weights = value_or_throw(checkpoint::SafetensorsFolder::open(source));
  std::map<checkpoint::StoredType, std::int64_t> elements;
  for (const auto& location : weights.all())
    elements[location.tensor->type] += location.tensor->count();
  const auto most = std::ranges::max_element(elements, {}, [](const auto& e) { return e.second; });
  const bool half = most != elements.end() && (most->first == checkpoint::StoredType::bf16 ||
                                               most->first == checkpoint::StoredType::f16);
  return half ? most->first : checkpoint::StoredType::f32;
}

checkpoint::StoredType saved_type(const config::RunConfig& config, const std::string& source) {
  switch (config.train.save_dtype) {
    case config::SaveDtype::f32:
      return checkpoint::StoredType::f32;
    case config::SaveDtype::automatic:
      return recipes::starts_from_random_weights(config) ? checkpoint::StoredType::f32
                                                         : type_in(source);
    case config::SaveDtype::bf16:
      return checkpoint::StoredType::bf16;
    case config::SaveDtype::f16:
      return checkpoint::StoredType::f16;
  }
  return checkpoint::StoredType::f32;
}

// `source`: the model folder whose configuration and tokenizer a checkpoint gets.
roles::Saver trainer_saver(const config::RunConfig& config, const std::string& source,
                           std::shared_ptr<const checkpoint::DirectoryLock> output,
                           const engine::parallel::Mesh* mesh) {
  wait_for_space(config);
  const auto type = saved_type(config, source);
  std::optional<checkpoint::Identity> identity;
  if (output) identity = recorded_identity(config.output);
  return [config, source, type, texts = companion_texts_of(config, source),
          output = std::move(output), mesh, identity = std::move(identity)](
             std::int64_t step, const actors::protocol::RunState& state,
             engine::train::Trainer& trainer) {
    TrainingState whole(step, config.algorithm, state);
    whole.identity = identity;
    whole.trainer = trainer.state();
    auto& optimizer = trainer.optimizer();
    const auto& spec = trainer.model().spec();
    checkpoint::Snapshot snapshot{
        .step = step,
        .parameters = trainer.model().parameters().trained(),
        .model = checkpoint::SaveOptions{.source = source,
                                         .overrides = recipes::overrides_of(config, source),
                                         .tied = spec.tied,
                                         .type = spec.lora ? checkpoint::StoredType::f32 : type,
                                         .texts = texts},
        .exp_avg = optimizer.exp_avg(),
        .exp_avg_sq = optimizer.exp_avg_sq(),
        .state = whole.to_json(),
        .write_model = spec.lora ? adapter_writer(config, spec) : checkpoint::ModelWriter(),
        .only_model = config.train.save_only_model,
        .shards = optimizer.shards(),
        .whole = trainer.model().pp() ? &trainer.model().whole().trained() : nullptr,
        .average = optimizer.average(),
        .kept = state.kept,
        .journal = state.journal};
    const checkpoint::WriteOptions options{.keep_last = config.train.keep_last,
                                           .best_step = state.best_step,
                                           .round_start = state.round_start};
    return checkpoint::start_checkpoint(mesh, output.get(), std::move(snapshot), options);
  };
}

// A model without gradients.
std::unique_ptr<engine::models::Decoder> load_scorer(const RoleParts& parts,
                                                     const std::string& source,
                                                     const std::string& adapter = "") {
  auto spec = value_or_throw(recipes::spec_of(parts.config, source));
  if (!adapter.empty())
    spec.lora = value_or_throw(engine::adapter::read_adapter(adapter, spec)).lora;
  auto model = value_or_throw(
      checkpoint::load_decoder(parts.device, source, std::move(spec), false, part_of(parts)));
  if (!adapter.empty()) value_or_throw(engine::adapter::load_adapter(adapter, *model));
  return model;
}

std::unique_ptr<engine::models::Decoder> load_moving_reference(const RoleParts& parts,
                                                               const std::string& source) {
  if (parts.resume_from.empty()) return load_scorer(parts, source);
  const std::string path = companion_checkpoint(parts.resume_from, reference_folder);
  auto spec = value_or_throw(checkpoint::read_folder_spec(path));
  const bool tied = spec.tied;
  auto model = std::make_unique<engine::models::Decoder>(parts.device, std::move(spec), false,
                                                         part_of(parts));
  value_or_throw(checkpoint::load_checkpoint(path, model->parameters(), tied, nullptr, nullptr,
                                             nullptr, &model->whole()));
  return model;
}

// The lock of the folder `name` of the run's output, which is created; null on other ranks than the
// leader.
std::shared_ptr<const checkpoint::DirectoryLock> lock_companion(const RoleParts& parts,
                                                                std::string_view name) {
  if (parts.mesh && !parts.mesh->is_root()) return nullptr;
  const std::string folder = cat(parts.config.output, "/", name);
  const auto output = value_or_throw(OutputFolder::open(parts.config.output));
  value_or_throw(output.folder(std::string(name)));  // as public as the checkpoints in it
  return std::make_shared<const checkpoint::DirectoryLock>(
      checkpoint::DirectoryLock::inherited(folder));
}

// Keeps one checkpoint more than the policy does: the reference is saved first, so its newest step
// may have no checkpoint of the policy yet.
roles::ScorerSaver reference_saver(const RoleParts& parts, const std::string& source) {
  const auto output = lock_companion(parts, reference_folder);
  const int keep = parts.config.train.keep_last;
  const auto type = saved_type(parts.config, source);
  const bool only_model = parts.config.train.save_only_model;
  return [output, source, overrides = recipes::overrides_of(parts.config, source), keep, type,
          only_model,
          mesh = parts.mesh](const actors::protocol::Save& save, engine::models::Decoder& model) {
    const checkpoint::Snapshot snapshot{
        .step = save.step,
        .parameters = model.parameters(),
        .model =
            checkpoint::SaveOptions{
                .source = source, .overrides = overrides, .tied = model.spec().tied, .type = type},
        .exp_avg = {},
        .exp_avg_sq = {},
        .state = Json::Object{},
        .write_model = {},
        .only_model = only_model,
        .whole = model.pp() ? &model.whole() : nullptr};
    const checkpoint::WriteOptions options{.keep_last = keep == 0 ? 0 : keep + 1,
                                           .best_step = save.state.best_step,
                                           .round_start = save.state.round_start};
    if (mesh) return checkpoint::write_checkpoint(*mesh, output.get(), snapshot, options);
    return checkpoint::write_checkpoint(*output, snapshot, options);
  };
}

// The statistics that OpenRLHF stores in the config.json of its reward models.
roles::Normalization saved_normalization(const recipes::OutcomeItem& item) {
  const std::string path = item.path + "/config.json";
  const Json config = value_or_throw(read_json(path));
  const auto mean = get_number(config, "mean", path), std_dev = get_number(config, "std", path);
  if (!mean || !std_dev || !(*std_dev > 0))
    throw Failure(
        {Errc::usage,
         cat(path,
             ": normalize: saved expects the numbers \"mean\" and \"std\" (above 0) there, found ",
             mean && std_dev ? to_text(*std_dev) : "none",
             "; measure them with `troupe score` and give them with normalize: given")});
  return {*mean, *std_dev, item.clip};
}

roles::RewardScoring reading_of(const recipes::OutcomeItem& item,
                                const engine::models::DecoderSpec&,
                                const std::shared_ptr<const TextModel>&) {
  if (item.normalize == recipes::RewardNormalization::saved)
    return roles::OutcomeScoring{saved_normalization(item)};
  return roles::OutcomeScoring{{item.mean, item.std, item.clip}};
}

roles::RewardScoring reading_of(const recipes::ProcessItem& item,
                                const engine::models::DecoderSpec& spec,
                                const std::shared_ptr<const TextModel>& policy) {
  roles::ProcessScoring out{
      .aggregation = item.aggregation, .separator = item.separator, .right = item.right};
  const auto text = value_or_throw(TextModel::load(item.path, "", spec));
  const bool placeholder = item.kind == algorithms::PrmKind::placeholder;
  out.step_end = item.step_end.empty() && placeholder ? cat(" ", item.placeholder, item.separator)
                 : item.step_end.empty()              ? item.separator
                                                      : item.step_end;
  if (placeholder) {
    out.tokens =
        value_or_throw(engine::data::find_step_tokens(item.placeholder, item.reward_tokens, *text));
    out.right = 0;
  }
  out.encoder = text;
  out.decode = [policy](std::span<const std::int32_t> ids) { return policy->decode(ids); };
  return out;
}

// Errc::usage if the tokenizers of two folders do not have the same tokens under the same ids.
// Folders without a tokenizer are not compared.
Result<> check_same_vocabulary(const std::string& policy, const std::string& model) {
  if (!Tokenizer::is_in(policy) || !Tokenizer::is_in(model)) return {};
  const auto ours = Tokenizer::load(policy), theirs = Tokenizer::load(model);
  RETURN_IF_ERROR(ours);
  RETURN_IF_ERROR(theirs);
  const std::size_t size = std::max(ours->vocab_size(), theirs->vocab_size());
  for (std::size_t id = 0; id < size; ++id) {
    const auto token = static_cast<engine::tokenizer::TokenId>(id);
    if (ours->id_to_token(token) == theirs->id_to_token(token)) continue;
    return fail(Errc::usage,
                cat("the reward model ", model, " has a different tokenizer from the policy ",
                    policy, ": token ", id, " is ", quote(theirs->id_to_token(token)),
                    " there and ", quote(ours->id_to_token(token)),
                    " here; reward models read the policy's own tokens: use one trained from a "
                    "model of the same family"));
  }
  return {};
}

}  // namespace

roles::Trainer make_policy(const RoleParts& parts) {
  check((parts.output != nullptr) == (!parts.mesh || parts.mesh->is_root()),
        "make_policy: output must be set on the leader only");
  // Not owned, because the run holds the lock.
  const std::shared_ptr<const checkpoint::DirectoryLock> output(parts.output, [](const auto*) {});
  return roles::Trainer(load_trainer(parts), algorithms::losses(),
                        trainer_saver(parts.config, parts.config.model, output, parts.mesh),
                        parts.mesh, std::string(to_string(recipes::Role::policy)));
}

roles::Trainer make_critic(const RoleParts& parts) {
  const std::string& source =
      parts.config.critic.model.empty() ? parts.config.model : parts.config.critic.model;
  return roles::Trainer(
      load_critic(parts), algorithms::losses(),
      trainer_saver(parts.config, source, lock_companion(parts, critic_folder), parts.mesh),
      parts.mesh,
      // Without a mesh the critic shares the policy's device, which reports for both.
      parts.mesh ? std::string(to_string(recipes::Role::critic)) : "");
}

roles::Scorer make_reference(const RoleParts& parts) {
  const auto [source, adapter] = recipes::reference_folders(parts.config);
  const auto options = scoring_settings(parts.config);
  if (recipes::roles_of(parts.config).reference_follows)
    return roles::Scorer(load_moving_reference(parts, source), options, parts.mesh,
                         reference_saver(parts, source));
  return roles::Scorer(load_scorer(parts, source, adapter), options, parts.mesh);
}

namespace {

serve::live::RolloutServerOptions server_options(const config::RunConfig& config) {
  return {.serve = config.serve,
          .model =
              serve::api::ServedModelOptions{
                  .model = model::ModelOptions{.model = config.model,
                                               .adapter = "",
                                               .dtype = config.train.dtype,
                                               .threads = static_cast<int>(config.serve.threads),
                                               .overrides = config.model_overrides,
                                               .tokenizer_ids = config.tokenizer_ids},
                  .name = config.serve.model_name,
                  .chat_template = config.chat_template,
                  .runner = "generate",
                  .sampling = config.rollout.sampling,
                  .names_versions = true},
          .engine = serve::api::EngineOptions{.max_batch =
                                                  static_cast<std::int32_t>(config.serve.max_batch),
                                              .max_waiting = config.serve.max_waiting,
                                              .cache_tokens = config.serve.cache_tokens,
                                              .request_seconds = config.serve.request_timeout,
                                              .lookup = config.rollout.generator.lookup,
                                              .weights = config.rollout.generator.weights},
          .makes_samples = config.rollout.source == config::SampleSource::service,
          .between_sequences = !config.async.free(),
          .group = config.grpo.group,
          .lease_timeout = std::chrono::seconds(config.rollout.lease_timeout),
          .max_leases = config.rollout.max_leases,
          .lease_keys = config.rollout.lease_keys,
          .max_length = config.train.max_length,
          .mask_bytes = recipes::max_sent_mask_bytes(config),
          .masks_required = config.rollout.replay_sampling_mask == config::ReplayMask::on};
}

// The leader of a group answers for it.
void serve_weights(const RoleParts& parts, roles::Rollout& rollout) {
  const int ranks = parts.mesh ? parts.mesh->grid().ranks() : 1;
  if (ranks > 1 && parts.config.rollout.source == config::SampleSource::service)
    throw Failure(
        {Errc::usage, cat("rollout.source service: expected a rollout of one rank, found one of ",
                          ranks, "; it only passes samples on")});
  if (!parts.mesh || parts.mesh->is_root())
    rollout.serve(value_or_throw(serve::live::RolloutServer::start(server_options(parts.config))));
}

}  // namespace

roles::Rollout make_rollout(const RoleParts& parts) {
  const auto spec = spec_of_run(parts.config, parts.resume_from);
  auto settings = generator_settings(parts.config, spec);
  settings.decode = [text = parts.text](std::span<const std::int32_t> ids) {
    return text->decode(ids);
  };
  settings.encode = [text = parts.text](std::string_view word) {
    return text->encode(word, false);
  };
  const auto empty = [&] {
    return std::make_unique<engine::models::Decoder>(parts.device, spec, false, part_of(parts));
  };
  auto rollout = value_or_throw(
      recipes::adapts(parts.config)
          ? roles::Rollout::create(load_adapted_decoder(parts), nullptr, std::move(settings),
                                   parts.mesh)
          : roles::Rollout::create(empty(), empty(), std::move(settings), parts.mesh));
  if (parts.config.async.free()) rollout.interrupt_generation(parts.config.async.change);
  if (!parts.config.serve.listen.empty()) serve_weights(parts, rollout);
  return rollout;
}

roles::Verifier make_verifier(const config::RunConfig& config) {
  auto rules =
      value_or_throw(actors::rules::Rules::from_json(recipes::reward_rules(config), "reward"));
  value_or_throw(rules.start());
  return roles::Verifier(std::move(rules));
}

roles::RewardModels make_reward(const RoleParts& parts) {
  const config::RunConfig& config = parts.config;
  std::vector<roles::RewardPart> models;
  for (const recipes::RewardItem& item : value_or_throw(recipes::reward_items(config))) {
    value_or_throw(check_same_vocabulary(config.model, item.path()));
    auto model =
        value_or_throw(checkpoint::load_decoder(parts.device, item.path(), false, part_of(parts)));
    auto reading = std::visit(
        [&](const auto& options) { return reading_of(options, model->spec(), parts.text); },
        item.options);
    models.push_back({item.label, item.weight, std::move(model), std::move(reading)});
  }
  return value_or_throw(
      roles::RewardModels::create(std::move(models), scoring_settings(config), parts.mesh));
}

}  // namespace troupe::launch::run
