#include "launch/run/reward_role.h"

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/data/layouts/steps.h"
#include "launch/recipes/rewards/reward_models.h"
#include "launch/run/settings.h"

namespace troupe::launch {
namespace {

namespace roles = actors::roles;
using engine::tokenizer::Tokenizer;

// Where OpenRLHF leaves the statistics of its reward models.
roles::Normalization saved_normalization(const OutcomeItem& item) {
  const std::string path = item.path + "/config.json";
  const Json config = value_or_throw(read_json(path));
  const auto mean = get_number(config, "mean", path), deviation = get_number(config, "std", path);
  if (!mean || !deviation || !(*deviation > 0))
    throw Failure(
        {Errc::usage,
         cat(path,
             ": normalize: saved expects the numbers \"mean\" and \"std\" (above 0) there, found ",
             mean && deviation ? to_text(*deviation) : "none",
             "; measure them with `troupe score` and give them with normalize: given")});
  return {*mean, *deviation, item.clip};
}

roles::Reading reading_of(const OutcomeItem& item, const engine::models::DecoderSpec&,
                          const std::shared_ptr<const TextModel>&) {
  if (item.normalize == OutcomeItem::Normalize::saved)
    return roles::OutcomeReading{saved_normalization(item)};
  return roles::OutcomeReading{{item.mean, item.std, item.clip}};
}

roles::Reading reading_of(const ProcessItem& item, const engine::models::DecoderSpec& spec,
                          const std::shared_ptr<const TextModel>& policy) {
  roles::ProcessReading out{
      .aggregation = item.aggregation, .separator = item.separator, .right = item.right};
  const auto text = value_or_throw(TextModel::load(item.path, "", spec));
  const bool placeholder = item.kind == ProcessItem::Kind::placeholder;
  out.step_end = item.step_end.empty() && placeholder ? cat(" ", item.placeholder, item.separator)
                 : item.step_end.empty()              ? item.separator
                                                      : item.step_end;
  if (placeholder)
    out.tokens =
        value_or_throw(engine::data::find_step_tokens(item.placeholder, item.reward_tokens, *text)),
    out.right = 0;
  out.encoder = text;
  out.decode = [policy](std::span<const std::int32_t> ids) { return policy->decode(ids); };
  return out;
}

}  // namespace

Result<> same_vocabulary(const std::string& policy, const std::string& model) {
  if (!Tokenizer::is_in(policy) || !Tokenizer::is_in(model)) return {};
  const auto ours = Tokenizer::load(policy), theirs = Tokenizer::load(model);
  RETURN_IF_ERROR(ours);
  RETURN_IF_ERROR(theirs);
  const std::size_t size = std::max(ours->vocab_size(), theirs->vocab_size());
  for (std::size_t id = 0; id < size; ++id) {
    const auto token = static_cast<engine::tokenizer::TokenId>(id);
    if (ours->id_to_token(token) == theirs->id_to_token(token)) continue;
    return fail(Errc::usage,
                cat("the reward model ", model, " has another tokenizer than the policy ", policy,
                    ": token ", id, " is ", quote(theirs->id_to_token(token)), " there and ",
                    quote(ours->id_to_token(token)),
                    " here; a reward model reads the policy's own tokens, so train one from a "
                    "model of the same family"));
  }
  return {};
}

actors::roles::RewardModels make_reward(const RoleParts& parts) {
  const RunConfig& config = parts.config;
  std::vector<roles::RewardPart> made;
  for (const RewardItem& item : value_or_throw(reward_items(config))) {
    value_or_throw(same_vocabulary(config.model, item.path()));
    auto model = value_or_throw(engine::checkpoint::load_decoder(
        parts.device, item.path(), false, parts.mesh ? &parts.mesh->tp() : nullptr));
    auto reading = std::visit(
        [&](const auto& options) { return reading_of(options, model->spec(), parts.text); },
        item.options);
    made.push_back({item.label, item.weight, std::move(model), std::move(reading)});
  }
  return value_or_throw(
      roles::RewardModels::create(std::move(made), scoring_settings(config), parts.mesh));
}

}  // namespace troupe::launch
