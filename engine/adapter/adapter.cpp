#include "engine/adapter/adapter.h"

#include <cmath>
#include <utility>

#include "engine/adapter/peft_file.h"
#include "engine/base/errors/check.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "engine/nn/tensor_parallel.h"

namespace troupe::engine::adapter {

namespace {

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
                             collectives::TensorGroup* tp) {
  Tensor squares = device.empty({weight.value.shape()[0]});
  device.row_squares(weight.value, squares);
  if (weight.shard.axis == 1 && tp != nullptr) tp->all_reduce(squares, weight.name);
  auto values = ops::to_host(device, squares);
  for (float& value : values) value = std::sqrt(value);
  return values;
}

}  // namespace

void init_adapter(models::Decoder& model, std::uint64_t seed) {
  check(model.spec().lora.has_value(), "init_adapter: a model without an adapter");
  nn::Parameters& parameters = model.parameters();
  for (const auto& target : model.spec().lora->targets) {
    const nn::Parameter* a = parameters.find(cat(target.module, models::lora_a));
    if (a == nullptr) {
      check(model.pp() != nullptr, cat("init_adapter: no adapter of ", target.module));
      continue;  // on another stage
    }
    Tensor values = a->value;
    parameters.device().upload(values, uniform_matrix(*a, seed));
    parameters.device().fill(parameters.at(cat(target.module, models::lora_b)).value, 0);
    if (nn::Parameter* magnitude = parameters.find(cat(target.module, models::lora_magnitude)))
      parameters.device().upload(
          magnitude->value, row_norms(parameters.device(), parameters.at(target.module + ".weight"),
                                      model.tp_tensors()));
  }
}

namespace {

using checkpoint::SafetensorsFile;

Result<Tensor> read(ops::Device& device, const SafetensorsFile& file, const std::string& name,
                    const models::DecoderSpec& spec) {
  const auto* stored = file.find(name);
  check(stored != nullptr, "merge_adapter: a tensor that read_adapter did not check");
  std::vector<float> values(static_cast<std::size_t>(stored->count()));
  RETURN_IF_ERROR(file.read_f32(name, values));
  RETURN_IF_ERROR(checkpoint::check_finite(values, file.path(), name));
  const Shape shape = stored->shape.size() == 1 ? Shape{stored->shape[0]}
                                                : Shape{stored->shape[0], stored->shape[1]};
  return ops::from_host(device, shape,
                        from_file(stored_layout(name, shape, spec), std::move(values)));
}

// A tensor of an adapter of all experts, in the order of the parameter.
Result<Tensor> read_fused(ops::Device& device, const SafetensorsFile& file,
                          const nn::ParameterSpec& wanted, const models::DecoderSpec& spec) {
  const std::string name = cat(prefix, stored_name(wanted.name, spec));
  const auto* stored = file.find(name);
  check(stored != nullptr, "merge_adapter: a tensor that read_adapter did not check");
  std::vector<float> values(static_cast<std::size_t>(stored->count()));
  RETURN_IF_ERROR(file.read_f32(name, values));
  RETURN_IF_ERROR(checkpoint::check_finite(values, file.path(), name));
  return ops::from_host(
      device, wanted.shape,
      from_file(stored_layout(wanted.name, wanted.shape, spec), std::move(values)));
}

// Scales each row of `weight` to the norm in `magnitudes`.
void scale_rows(ops::Device& device, Tensor& weight, const Tensor& magnitudes) {
  const std::int64_t rows = weight.shape()[0], width = weight.shape()[1];
  Tensor squares = device.empty({rows});
  device.row_squares(weight, squares);
  const auto lengths = ops::to_host(device, squares), wanted = ops::to_host(device, magnitudes);
  for (std::int64_t row = 0; row < rows; ++row) {
    Tensor part = weight.flat(row * width, (row + 1) * width);
    device.scale(part, static_cast<float>(
                           static_cast<double>(wanted[static_cast<std::size_t>(row)]) /
                           std::sqrt(static_cast<double>(lengths[static_cast<std::size_t>(row)]))));
  }
}

Result<> merge_module(ops::Device& device, const SafetensorsFile& file,
                      const models::LoraTarget& target, bool dora, const models::DecoderSpec& spec,
                      Tensor& weight) {
  const std::string module = cat(prefix, target.module);
  if (const std::string copy = cat(module, ".base_layer.weight"); file.find(copy)) {
    const auto stored = read(device, file, copy, spec);
    RETURN_IF_ERROR(stored);
    if (ops::to_host(device, *stored) != ops::to_host(device, weight))
      return fail(Errc::unsupported, cat(file.path(), ": tensor ", quote(copy),
                                         " differs from the base model's: the "
                                         "adapter belongs to another base"));
  }
  auto a = read(device, file, cat(module, models::lora_a), spec),
       b = read(device, file, cat(module, models::lora_b), spec);
  RETURN_IF_ERROR(a);
  RETURN_IF_ERROR(b);
  device.scale(*b, static_cast<float>(target.scale));
  device.gemm(*b, *a, weight, {.accumulate = true});
  if (!dora) return {};
  const auto magnitudes = read(device, file, cat(module, models::lora_magnitude), spec);
  RETURN_IF_ERROR(magnitudes);
  scale_rows(device, weight, *magnitudes);
  return {};
}

// Adds the adapter of a projection of all experts (models::FusedExperts) to their weights.
Result<> merge_experts(models::Decoder& base, const SafetensorsFile& file,
                       const models::LoraTarget& target, const models::LoraSpec& lora) {
  models::DecoderSpec adapted = base.spec();
  adapted.lora = lora;
  ops::Device& device = base.device();
  const auto tensors = models::fused_lora_tensors(
      target, adapted, *models::fused_experts(target.module, base.spec()));
  auto a = read_fused(device, file, tensors[0], adapted),
       b = read_fused(device, file, tensors[1], adapted);
  RETURN_IF_ERROR(a);
  RETURN_IF_ERROR(b);
  device.scale(*b, static_cast<float>(target.scale));
  const std::string mlp = target.module.substr(0, target.module.rfind('.'));
  const bool joined = target.module.ends_with("gate_up_proj");
  for (std::int64_t e = 0; e < base.spec().experts->router.experts; ++e) {
    const Tensor down = a->rows(e * target.rank, (e + 1) * target.rank);
    const Tensor up = b->rows(e, e + 1).view({b->shape()[1] / target.rank, target.rank});
    std::int64_t row = 0;
    for (const std::string_view name : joined
                                           ? std::vector<std::string_view>{"gate_proj", "up_proj"}
                                           : std::vector<std::string_view>{"down_proj"}) {
      Tensor weight = base.parameters().at(cat(mlp, ".", e, ".", name, ".weight")).value;
      const std::int64_t end = row + weight.shape()[0];
      device.gemm(up.rows(std::exchange(row, end), end), down, weight, {.accumulate = true});
    }
  }
  return {};
}

}  // namespace

Result<> merge_adapter(models::Decoder& base, const std::string& folder) {
  check(!base.spec().lora && base.tp() == nullptr,
        "merge_adapter: expected a whole model without an adapter");
  const auto spec = read_adapter(folder, base.spec());
  RETURN_IF_ERROR(spec);
  const auto file = SafetensorsFile::open(cat(folder, "/", weights_file));
  RETURN_IF_ERROR(file);
  for (const auto& target : spec->lora.targets) {
    if (models::fused_experts(target.module, base.spec())) {
      RETURN_IF_ERROR(merge_experts(base, *file, target, spec->lora));
      continue;
    }
    nn::Parameter* weight = base.parameters().find(target.module + ".weight");
    if (weight == nullptr)
      return fail(Errc::unsupported, cat(folder, ": an adapter of ", target.module,
                                         " cannot be merged into this model: its output head is "
                                         "tied to its embedding, which would change too"));
    RETURN_IF_ERROR(
        merge_module(base.device(), *file, target, spec->lora.dora, base.spec(), weight->value));
  }
  for (const auto& module : spec->lora.saved)
    for (auto& parameter : base.parameters().all()) {
      if (!parameter.name.starts_with(module + ".")) continue;
      const auto values = read(base.device(), *file, cat(prefix, parameter.name), base.spec());
      RETURN_IF_ERROR(values);
      base.device().copy(*values, parameter.value);
    }
  return {};
}

}  // namespace troupe::engine::adapter
