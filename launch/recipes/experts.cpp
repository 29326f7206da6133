#include "launch/recipes/experts.h"

#include "engine/base/text/text.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/model_spec.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling.h"

namespace troupe::launch::recipes {
namespace {

using engine::train::BalanceTerm;

}  // namespace

engine::train::ExpertOptions expert_settings(const config::RunConfig& config) {
  engine::train::ExpertOptions out = config.train.experts;
  out.samples = roles_of(config).rollout.needed;
  return out;
}

std::string expert_losses_text(const config::RunConfig& config) {
  const auto spec = spec_of(config, config.model);
  if (!spec || !spec->experts) return "";
  std::string out;
  for (const BalanceTerm& term :
       engine::train::balance_terms(*spec->experts, expert_settings(config)))
    out += cat(out.empty() ? "" : ", ", names_of(term.loss)[static_cast<std::size_t>(term.loss)],
               " (", term.coefficient, ")");
  return cat("load-balancing losses: ", out.empty() ? "none, coefficient 0" : out);
}

void validate_experts(Validation& v) {
  const auto spec = spec_of(v.config, v.config.model);
  if (!spec) return;
  const engine::train::ExpertOptions how = expert_settings(v.config);
  if (!spec->experts)
    return v.unused({"train.experts.losses", "train.experts.coefficients", "train.experts.z_loss",
                     "train.experts.bias_rate", "train.experts.capacity", "train.experts.drop"},
                    "not used, the model has no experts");
  if (samples_in_int8(v.config))
    v.problem(cat(v.named("rollout.weights"), ": int8 is not possible for a mixture of experts (",
                  spec->architecture, "); f32 and bf16 are"));
  engine::models::DecoderSpec trained = *spec;
  if (adapts(v.config)) trained.lora.emplace();
  v.check(engine::train::check_expert_options(
      trained, how, v.config.train.optimizer.weights == engine::nn::WeightType::f32,
      v.config.train.share_prefixes));
  if (how.capacity > 0 && how.samples)
    v.problem(cat(v.named("train.experts.capacity"),
                  ": tokens are dropped in training passes only, "
                  "so an on-policy sample would not have the ratio 1; expected 0 with ",
                  v.config.algorithm));
  if (how.capacity == 0) v.unused("train.experts.drop", "not used, no token is dropped");
}

}  // namespace troupe::launch::recipes
