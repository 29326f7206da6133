#include "actors/roles/weights.h"

#include <algorithm>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/half.h"
#include "engine/checkpoint/manifest.h"
#include "engine/nn/borrowed_values.h"
#include "engine/nn/logical_tensors.h"
#include "engine/ops/borrowed.h"
#include "engine/ops/host_values.h"

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

std::vector<float> rounded_to_bf16(std::span<const float> values) {
  std::vector<float> out;
  out.reserve(values.size());
  for (const float value : values)
    out.push_back(engine::checkpoint::bf16_to_float(engine::checkpoint::float_to_bf16(value)));
  return out;
}

// Spread over the vocabulary, to detect a part of the embedding or of the head in the wrong place.
std::vector<std::int32_t> probe_tokens(const engine::models::DecoderSpec& spec) {
  std::vector<std::int32_t> tokens;
  const auto vocabulary = static_cast<std::uint64_t>(spec.vocabulary);
  for (std::uint64_t i = 0; i < 16 && static_cast<std::int64_t>(i) < spec.max_positions; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * 2654435761u + 12345u) % vocabulary));
  return tokens;
}

// Calls visit(values) on rank 0 for each trained logical tensor.
void visit_tensors(const engine::models::Decoder& model, const engine::parallel::Mesh* mesh,
                   const engine::nn::VisitTensor& visit) {
  const auto& own = model.parameters().trained();
  if (mesh != nullptr && model.pp() != nullptr)
    return engine::nn::gather_each(model.whole().trained(), own, *mesh, visit);
  if (mesh != nullptr) return engine::nn::gather_each(own, *mesh, visit);
  for (const auto& parameter : own.all())
    visit(engine::ops::HostValues(own.device(), parameter.value).values());
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

// Values that are written one tensor after the other, to memory that processes share, or to an
// array of this process.
class PublishedValues {
 public:
  PublishedValues(std::size_t count, bool shared) : count_(count) {
    if (shared) create_memory();
    if (!memory_) array_ = engine::ops::host_array(static_cast<std::int64_t>(count));
  }
  void append(std::span<const float> tensor) {
    if (memory_)
      value_or_throw(memory_->append(std::as_bytes(tensor)));
    else
      std::ranges::copy(tensor, array_.values.begin() + static_cast<std::ptrdiff_t>(written_));
    written_ += tensor.size();
  }
  void finish(protocol::Weights& weights) {
    weights.count = count_;
    weights.values = {array_.owner, array_.values};
    if (!memory_) return;
    value_or_throw(memory_->seal());
    weights.memory = memory_->name();
    weights.values = {memory_, {reinterpret_cast<const float*>(memory_->bytes().data()), count_}};
  }

 private:
  void create_memory() {
    auto memory = SharedMemory::create(count_ * sizeof(float));
    if (memory)
      memory_ = std::move(*memory);
    else
      log_warning(cat("weights are sent through sockets: ", memory.error().what));
  }

  std::size_t count_, written_ = 0;
  std::shared_ptr<SharedMemory> memory_;
  engine::ops::HostArray array_;
};

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
  std::vector<engine::nn::ParameterSpec> tensors = engine::models::parameter_list(spec);
  std::erase_if(tensors, [](const auto& tensor) { return !tensor.trainable; });
  std::optional<PublishedValues> published;
  if (!mesh || mesh->is_root()) published.emplace(trained_values(spec), message.shared_memory);
  visit_tensors(trainer.model(), mesh, [&](std::span<const float> values) {
    const bool rounds = message.as_bf16 && only_multiplied(tensors[weights.checksums.size()]);
    const std::vector<float> rounded = rounds ? rounded_to_bf16(values) : std::vector<float>();
    if (rounds) values = rounded;
    weights.checksums.push_back(engine::checkpoint::checksum(values));
    published->append(values);
  });
  if (published) published->finish(weights);
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

bool reads_in_place(const engine::models::Decoder& model) {
  return model.pp() == nullptr && engine::nn::can_borrow(model.parameters());
}

void set_values(const SharedArray<float>& values, engine::models::Decoder& model) {
  if (reads_in_place(model))
    engine::nn::borrow_values(values, model.parameters());
  else
    engine::nn::scatter_logical(*values, model.whole().trained(), model.parameters().trained());
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
