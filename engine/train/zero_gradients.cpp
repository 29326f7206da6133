#include "engine/train/zero_gradients.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/ops/device.h"

namespace troupe::engine::train {
namespace {

constexpr std::size_t named = 5;

// In f64 the square of a nonzero f32 value is not zero.
bool is_zero(const nn::Parameters& parameters, const nn::Parameter& parameter) {
  return parameters.device().sum_of_squares(parameter.grad) == 0;
}

}  // namespace

std::vector<std::string> zero_gradient_names(const nn::Parameters& parameters,
                                             const nn::ArenaShards* shards) {
  std::vector<std::string> names;
  if (shards != nullptr) {
    const auto nonzero = nn::nonzero_gradients(parameters.trained(), *shards);
    for (std::size_t i = 0; i < nonzero.size(); ++i)
      if (!nonzero[i]) names.push_back(parameters.trained().all()[i].name);
    return names;
  }
  for (const auto& parameter : parameters.trained().all())
    if (is_zero(parameters, parameter)) names.push_back(parameter.name);
  return names;
}

std::string zero_gradient_warning(const nn::Parameters& parameters, std::int64_t step,
                                  const nn::ArenaShards* shards) {
  if (step != 1 && step != 10) return "";
  auto names = zero_gradient_names(parameters, shards);
  if (names.size() == parameters.trained().all().size()) return "";  // no tensor has a gradient
  if (step == 1)
    std::erase_if(names, [&](const std::string& name) {
      const auto* parameter = parameters.find(name);
      return parameter != nullptr && parameter->adapter;
    });
  if (names.empty()) return "";
  const std::size_t count = names.size();
  if (count > named) names.resize(named);
  return cat("step ", step, ": ", count, count == 1 ? " tensor has" : " tensors have",
             " a gradient of exactly 0 and ", count == 1 ? "does" : "do",
             " not learn: ", join(names, ", "), count > named ? ", ..." : "");
}

}  // namespace troupe::engine::train
