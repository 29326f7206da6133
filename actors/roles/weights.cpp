#include "actors/roles/weights.h"

#include <algorithm>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/checkpoint/half.h"
#include "engine/checkpoint/manifest.h"
#include "engine/nn/logical_tensors.h"
#include "engine/ops/borrowed.h"

namespace troupe::actors::roles {
namespace {

// Calls back with each trained logical tensor's name and its values in the flat array.
template <class T, class F>
void for_each_tensor(const engine::models::DecoderSpec& spec, std::span<T> values, F&& f) {
  std::size_t at = 0;
  for (const auto& tensor : engine::models::parameter_list(spec)) {
    if (!tensor.trainable) continue;
    const auto count = static_cast<std::size_t>(tensor.shape.count());
    f(tensor, values.subspan(at, count));
    at += count;
  }
}

std::vector<std::uint64_t> checksums_of(const engine::models::DecoderSpec& spec,
                                        std::span<const float> values) {
  std::vector<std::uint64_t> checksums;
  for_each_tensor(spec, values, [&](const auto&, std::span<const float> tensor) {
    checksums.push_back(engine::checkpoint::checksum(tensor));
  });
  return checksums;
}

// Whether products in bf16 alone read a tensor: they round it, so a rounded one has the same
// results. Embeddings, norms and biases are read in f32, a head may be normalized first.
bool only_multiplied(const engine::nn::ParameterSpec& tensor) {
  return tensor.name.starts_with("model.layers.") && tensor.shape.rank() == 2 &&
         tensor.name.ends_with("_proj.weight");
}

void round_to_bf16(const engine::models::DecoderSpec& spec, std::span<float> values) {
  for_each_tensor(spec, values, [](const auto& tensor, std::span<float> of) {
    if (!only_multiplied(tensor)) return;
    for (float& value : of)
      value = engine::checkpoint::bf16_to_float(engine::checkpoint::float_to_bf16(value));
  });
}

// Spread over the vocabulary, to detect a part of the embedding or of the head in the wrong place.
std::vector<std::int32_t> probe_tokens(const engine::models::DecoderSpec& spec) {
  std::vector<std::int32_t> tokens;
  const auto vocabulary = static_cast<std::uint64_t>(spec.vocabulary);
  for (std::uint64_t i = 0; i < 16 && static_cast<std::int64_t>(i) < spec.max_positions; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * 2654435761u + 12345u) % vocabulary));
  return tokens;
}

// The trained logical values, into rank 0's array.
void copy_values(const engine::models::Decoder& model, const engine::parallel::Mesh* mesh,
                 std::span<float> into) {
  const auto& own = model.parameters().trained();
  if (mesh == nullptr) return own.device().download(own.values(), into);
  std::size_t at = 0;
  const auto take = [&](std::span<const float> tensor) {
    std::ranges::copy(tensor, into.begin() + static_cast<std::ptrdiff_t>(at));
    at += tensor.size();
  };
  if (model.pp() != nullptr)
    engine::nn::gather_each(model.whole().trained(), own, *mesh, take);
  else
    engine::nn::gather_each(own, *mesh, take);
}

// The trained logical values, on rank 0.
SharedArray<float> values_of(const engine::models::Decoder& model,
                             const engine::parallel::Mesh* mesh) {
  const auto& own = model.parameters().trained();
  if (mesh == nullptr) return engine::ops::shared_copy(own.device(), own.values());
  auto values = model.pp() != nullptr
                    ? engine::nn::gather_logical(model.whole().trained(), own, *mesh)
                    : engine::nn::gather_logical(own, *mesh);
  return std::make_shared<const std::vector<float>>(std::move(values));
}

}  // namespace

engine::data::Experience probe_batch(const std::vector<std::int32_t>& tokens) {
  std::vector<float> mask(tokens.size(), 1.0f);
  if (!mask.empty()) mask.front() = 0;
  engine::data::Experience batch;
  batch.append(tokens, mask);
  return batch;
}

namespace {

// Without values.
protocol::Weights described(engine::train::Trainer& trainer, std::uint64_t version) {
  protocol::Weights weights;
  const auto& spec = trainer.model().spec();
  weights.version = version;
  weights.updates = trainer.version();
  weights.probe.tokens = probe_tokens(spec);
  const auto probe = probe_batch(weights.probe.tokens);
  weights.probe.logp = spec.labels > 0 ? trainer.scores(probe, engine::loss::ReadAt::token, {})
                                       : trainer.logprobs(probe, 1);
  return weights;
}

// Memory that processes share, or null, after a warning.
std::unique_ptr<SharedMemory> shared_memory(std::size_t values) {
  auto memory = SharedMemory::create(values * sizeof(float));
  if (memory) return std::move(*memory);
  log_warning(cat("weights are sent through sockets: ", memory.error().what));
  return nullptr;
}

}  // namespace

protocol::Weights publish(engine::train::Trainer& trainer, const engine::parallel::Mesh* mesh,
                          std::uint64_t version) {
  auto weights = described(trainer, version);
  auto values = values_of(trainer.model(), mesh);
  if (mesh && !mesh->is_root()) return weights;
  weights.values = std::move(values);
  weights.checksums = checksums_of(trainer.model().spec(), *weights.values);
  return weights;
}

protocol::Weights publish_in_parts(engine::train::Trainer& trainer,
                                   const engine::parallel::Mesh* mesh,
                                   const protocol::Publish& message) {
  auto weights = described(trainer, message.version);
  const auto& spec = trainer.model().spec();
  const std::size_t count = trained_values(spec);
  const bool root = !mesh || mesh->is_root();
  std::shared_ptr<SharedMemory> memory;
  engine::ops::HostArray array;
  if (root && message.shared_memory) memory = shared_memory(count);
  if (root && memory)
    array.values = {reinterpret_cast<float*>(memory->writable().data()), count};
  else if (root)
    array = engine::ops::host_array(static_cast<std::int64_t>(count));
  copy_values(trainer.model(), mesh, array.values);
  if (!root) return weights;
  if (message.as_bf16) round_to_bf16(spec, array.values);
  weights.checksums = checksums_of(spec, array.values);
  weights.count = count;
  if (!memory) {
    weights.values = {array.owner, array.values};
    return weights;
  }
  value_or_throw(memory->seal());
  weights.memory = memory->name();
  weights.values = {memory, {reinterpret_cast<const float*>(memory->bytes().data()), count}};
  return weights;
}

Result<> complete(protocol::Weights& weights, WeightAssembly& arriving) {
  if (weights.values && !weights.values->empty()) return {};
  auto values = arriving.take(weights.version);
  RETURN_IF_ERROR(values);
  weights.values = std::move(*values);
  return {};
}

std::size_t trained_values(const engine::models::DecoderSpec& spec) {
  std::size_t count = 0;
  for (const auto& tensor : engine::models::parameter_list(spec))
    if (tensor.trainable) count += static_cast<std::size_t>(tensor.shape.count());
  return count;
}

Result<> verify(const protocol::Weights& weights, const engine::models::DecoderSpec& spec) {
  const std::size_t values = weights.values ? weights.values->size() : 0;
  const std::string which = cat("weights of version ", weights.version);
  const std::size_t expected = trained_values(spec);
  const auto tensors = static_cast<std::size_t>(std::ranges::count_if(
      engine::models::parameter_list(spec), [](const auto& tensor) { return tensor.trainable; }));
  if (values != expected)
    return fail(Errc::bad_input,
                cat(which, " do not fit: expected ", expected, " values, found ", values));
  if (weights.checksums.size() != tensors)
    return fail(Errc::bad_input,
                cat(which, ": ", weights.checksums.size(), " checksums for ", tensors, " tensors"));
  std::size_t index = 0;
  std::string damaged;
  for_each_tensor(spec, *weights.values, [&](const auto& tensor, std::span<const float> of) {
    if (engine::checkpoint::checksum(of) != weights.checksums[index++] && damaged.empty())
      damaged = tensor.name;
  });
  if (!damaged.empty())
    return fail(Errc::corrupt,
                cat(which, ": ", damaged, " arrived with other bytes than were sent"));
  return {};
}

}  // namespace troupe::actors::roles
