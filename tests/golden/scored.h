// The language model of the golden curves under a score head that is given by a formula.
#pragma once

#include "tests/golden/curve.h"

namespace troupe::algorithms {

/// The weights of the head increase linearly from -maximum to maximum over all its rows; a bias is
/// 0.
inline std::unique_ptr<engine::models::Decoder> with_score_head(engine::ops::Device& device,
                                                                int labels, bool bias,
                                                                double maximum) {
  const auto base = value_or_throw(engine::checkpoint::load_decoder(device, model_folder, false));
  auto spec = base->spec();
  spec.labels = labels;
  spec.score_bias = bias;
  spec.tied = false;
  auto model = std::make_unique<engine::models::Decoder>(device, spec, true);
  for (auto& parameter : model->parameters().all()) {
    const auto count = parameter.value.count();
    std::vector<float> values(static_cast<std::size_t>(count), 0.0f);
    if (parameter.name == "score.weight")
      for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<float>(
            maximum * (2 * static_cast<double>(i) / static_cast<double>(count - 1) - 1));
    else if (parameter.name != "score.bias")
      values = engine::ops::to_host(device, base->parameters().at(parameter.name).value);
    device.upload(parameter.value, values);
  }
  return model;
}

}  // namespace troupe::algorithms
