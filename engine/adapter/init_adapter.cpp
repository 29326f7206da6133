#include "engine/adapter/init_adapter.h"

#include <cmath>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/text.h"
#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::adapter {
namespace {

std::uint64_t stream_of(const std::string& name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// This rank's part of a matrix [R, D] whose element (r, d) is random number r * D + d.
std::vector<float> uniform_matrix(const nn::Parameter& a, std::uint64_t seed) {
  const Shape whole = a.logical_shape();
  const std::int64_t first = a.shard.axis == 1 ? a.shard.begin : 0, columns = a.value.shape()[1];
  const double bound = 1 / std::sqrt(static_cast<double>(whole[1]));
  const std::uint64_t stream = stream_of(a.name);
  std::vector<float> values;
  for (std::int64_t row = 0; row < whole[0]; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      values.push_back(static_cast<float>(
          bound *
          (2 * uniform(seed, stream, static_cast<std::uint64_t>(row * whole[1] + first + column)) -
           1)));
  return values;
}

// Norms of the rows of the base's matrix, whose columns may be split over `tp`.
std::vector<float> row_norms(ops::Device& device, const nn::Parameter& weight,
                             parallel::Communicator* tp) {
  Tensor squares = device.empty({weight.value.shape()[0]});
  device.row_squares(weight.value, squares);
  if (weight.shard.axis == 1) nn::all_reduce(tp, device, squares, weight.name);
  auto values = ops::to_host(device, squares);
  for (float& value : values) value = std::sqrt(value);
  return values;
}

}  // namespace

void init_adapter(models::Decoder& model, std::uint64_t seed) {
  check(model.spec().lora.has_value(), "init_adapter: a model without an adapter");
  nn::Parameters& parameters = model.parameters();
  for (const auto& target : model.spec().lora->targets) {
    nn::Parameter& a = parameters.at(cat(target.module, models::lora_a));
    parameters.device().upload(a.value, uniform_matrix(a, seed));
    parameters.device().fill(parameters.at(cat(target.module, models::lora_b)).value, 0);
    if (nn::Parameter* magnitude = parameters.find(cat(target.module, models::lora_magnitude)))
      parameters.device().upload(
          magnitude->value,
          row_norms(parameters.device(), parameters.at(target.module + ".weight"), model.tp()));
  }
}

}  // namespace troupe::engine::adapter
