#include "actors/roles/weights.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/nn/logical_tensors.h"
#include "engine/ops/borrowed.h"

namespace troupe::actors::roles {
namespace {

// Calls back with each trained logical tensor's name and its values in the flat array.
template <class F>
void for_each_tensor(const engine::models::DecoderSpec& spec, std::span<const float> values,
                     F&& f) {
  std::size_t at = 0;
  for (const auto& tensor : engine::models::parameter_list(spec)) {
    if (!tensor.trainable) continue;
    const auto count = static_cast<std::size_t>(tensor.shape.count());
    f(tensor.name, values.subspan(at, count));
    at += count;
  }
}

// Spread over the vocabulary, to detect a part of the embedding or of the head in the wrong place.
std::vector<std::int32_t> probe_tokens(const engine::models::DecoderSpec& spec) {
  std::vector<std::int32_t> tokens;
  const auto vocabulary = static_cast<std::uint64_t>(spec.vocabulary);
  for (std::uint64_t i = 0; i < 16 && static_cast<std::int64_t>(i) < spec.max_positions; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * 2654435761u + 12345u) % vocabulary));
  return tokens;
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

protocol::Weights publish(engine::train::Trainer& trainer, const engine::parallel::Mesh* mesh,
                          std::uint64_t version) {
  protocol::Weights weights;
  const auto& spec = trainer.model().spec();
  weights.version = version;
  weights.updates = trainer.version();
  weights.probe.tokens = probe_tokens(spec);
  const auto probe = probe_batch(weights.probe.tokens);
  weights.probe.logp = spec.labels > 0 ? trainer.scores(probe, engine::loss::ReadAt::token, {})
                                       : trainer.logprobs(probe, 1);
  auto values = values_of(trainer.model(), mesh);
  if (mesh && !mesh->is_root()) return weights;
  weights.values = std::move(values);
  for_each_tensor(spec, *weights.values, [&](const std::string&, std::span<const float> tensor) {
    weights.checksums.push_back(engine::checkpoint::checksum(tensor));
  });
  return weights;
}

Result<> verify(const protocol::Weights& weights, const engine::models::DecoderSpec& spec) {
  const std::size_t values = weights.values ? weights.values->size() : 0;
  const std::string which = cat("weights of version ", weights.version);
  std::size_t expected = 0, tensors = 0;
  for (const auto& tensor : engine::models::parameter_list(spec))
    if (tensor.trainable) {
      expected += static_cast<std::size_t>(tensor.shape.count());
      ++tensors;
    }
  if (values != expected)
    return fail(Errc::bad_input,
                cat(which, " do not fit: expected ", expected, " values, found ", values));
  if (weights.checksums.size() != tensors)
    return fail(Errc::bad_input,
                cat(which, ": ", weights.checksums.size(), " checksums for ", tensors, " tensors"));
  std::size_t index = 0;
  std::string damaged;
  for_each_tensor(
      spec, *weights.values, [&](const std::string& name, std::span<const float> tensor) {
        if (engine::checkpoint::checksum(tensor) != weights.checksums[index++] && damaged.empty())
          damaged = name;
      });
  if (!damaged.empty())
    return fail(Errc::corrupt,
                cat(which, ": ", damaged, " arrived with other bytes than were sent"));
  return {};
}

}  // namespace troupe::actors::roles
