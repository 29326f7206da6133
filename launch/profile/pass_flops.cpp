#include "launch/profile/pass_flops.h"

#include <utility>

namespace troupe::launch::profile {

CountedModel counted(const engine::models::DecoderSpec& spec) {
  return {engine::models::forward_flops(spec), spec.lora ? 1.0 : 2.0};
}

PassCounter::PassCounter(std::map<algorithms::PassModel, CountedModel> models,
                         const engine::nn::Recomputed& recomputed, double layers_again)
    : models_(std::move(models)),
      recomputed_(recomputed),
      layers_again_(recomputed.has(engine::nn::Recompute::full) ? layers_again : 0) {
}

PassFlops PassCounter::operator()(const algorithms::ModelPass& pass) const {
  auto found = models_.find(pass.model);
  if (found == models_.end()) found = models_.find(algorithms::PassModel::policy);
  if (found == models_.end()) return {};
  const CountedModel& model = found->second;
  const double layers = model.forward.layers * pass.sizes.tokens,
               head = model.forward.head * pass.sizes.tokens,
               attention = model.forward.attention * pass.sizes.squares;
  if (!pass.backward) return {layers + head + attention, layers + head + attention};
  const double needed = (1 + model.backward) * (layers + head) + 3 * attention;
  double again = attention / 2;  // q.k, half of the products of attention
  again += layers_again_ * (layers + attention);
  if (recomputed_.has(engine::nn::Recompute::attention)) again += (1 - layers_again_) * attention;
  return {needed, needed + again};
}

}  // namespace troupe::launch::profile
