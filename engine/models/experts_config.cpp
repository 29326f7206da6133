#include "engine/models/experts_config.h"

#include <limits>
#include <optional>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::models {
namespace {

std::optional<std::int64_t> unless_zero(std::int64_t value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

ExpertsSpec& read_experts(ConfigReader& in, DecoderSpec& spec, const ExpertNames& names) {
  ExpertsSpec& out = spec.experts.emplace();
  ops::Router& router = out.router;
  router.experts = in.size(names.count, 1, 65536, unless_zero(names.default_count));
  router.chosen = in.size(names.chosen, 1, 1024, unless_zero(names.default_chosen));
  if (router.chosen > router.experts)
    in.fail(Errc::bad_input, cat(names.chosen.front(), " ", router.chosen, " is more than ",
                                 names.count.front(), " ", router.experts));
  out.inner = names.inner.empty()
                  ? spec.inner
                  : in.size(names.inner, 1, std::int64_t{1} << 20,
                            names.default_inner > 0 ? names.default_inner : spec.inner);
  out.auxiliary_coefficient = in.number({"router_aux_loss_coef"}, 0);
  out.auxiliary_loss = in.flag("output_router_logits", false);
  return out;
}

void read_norm_topk(ConfigReader& in, ExpertsSpec& experts, bool absent, double epsilon) {
  if (!in.flag("norm_topk_prob", absent)) return;
  experts.router.renormalize = ops::Renormalize::sum;
  experts.router.epsilon = epsilon;
}

void read_deepseek_experts(ConfigReader& in, DecoderSpec& spec, ExpertsSpec& experts) {
  ops::Router& router = experts.router;
  router.score = ops::RouterScore::sigmoid;
  router.group_mask = -std::numeric_limits<float>::infinity();
  router.groups = in.size({"n_group"}, 1, 65536, 1);
  router.kept_groups = in.size({"topk_group"}, 1, 65536, 1);
  router.scale = in.positive({"routed_scaling_factor"}, 1);
  experts.choice_bias = true;
  if (router.experts % router.groups || router.kept_groups > router.groups ||
      router.chosen > router.experts / router.groups * router.kept_groups)
    in.fail(Errc::bad_input,
            cat("n_group ", router.groups, " must divide n_routed_experts ", router.experts,
                ", and topk_group ", router.kept_groups,
                " of these groups must have num_experts_per_tok ", router.chosen, " experts"));
  const std::int64_t dense = in.size({"first_k_dense_replace"}, 0, 4096, 0);
  for (std::int64_t layer = 0; layer < spec.layers; ++layer)
    experts.sparse.push_back(layer >= dense);
  experts.shared_inner = in.size({"n_shared_experts"}, 0, 1024, 0) * experts.inner;
}

Storage store_mixtral(const DecoderSpec& spec) {
  Storage out{.modules = {{"mlp.gate", "block_sparse_moe.gate"}}};
  for (std::int64_t e = 0; e < spec.experts->router.experts; ++e)
    for (const auto& [ours, theirs] :
         {std::pair{"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}})
      out.modules.emplace_back(cat("mlp.experts.", e, ".", ours),
                               cat("block_sparse_moe.experts.", e, ".", theirs));
  return out;
}

}  // namespace troupe::engine::models
