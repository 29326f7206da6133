#include "engine/checkpoint/megatron/megatron_adapter.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/checkpoint/megatron/weight_source.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::string_view wrapper = "base_model.model.", of_a = ".lora_A", of_b = ".lora_B";

}  // namespace

Result<std::vector<float>> floats_of(const TorchFile& file, const PickledTensor& tensor,
                                     const std::string& name) {
  std::vector<std::byte> buffer;
  const auto bytes = file.bytes(tensor, buffer);
  RETURN_IF_ERROR(bytes);
  std::vector<std::byte> wide(bytes->begin(), bytes->end());
  RETURN_IF_ERROR(convert_type(wide, tensor.type, StoredType::f32, name));
  std::vector<float> out(wide.size() / sizeof(float));
  std::memcpy(out.data(), wide.data(), wide.size());
  return out;
}

namespace {

/// What adapter_writer.h writes beside the tensors; 1 in files of MindSpeed.
std::int64_t copies_of(const TorchFile& file) {
  const PickleNode* lora = file.graph().find(file.root(), "lora");
  const PickleNode* copies = lora ? file.graph().find(*lora, "copies") : nullptr;
  return copies && copies->kind == PickleKind::integer && copies->number > 0 ? copies->number : 1;
}

/// "linear_qkv" of "decoder.layers.0.self_attention.linear_qkv.weight".
std::string module_of(const std::string& weight) {
  const std::string path = weight.substr(0, weight.rfind('.'));
  return path.substr(path.rfind('.') + 1);
}

}  // namespace

Result<std::map<std::string, LoraPair>> lora_pairs(
    const TorchFile& file, const std::map<std::string, const PickledTensor*>& tensors) {
  std::map<std::string, LoraPair> out;
  for (const auto& [name, tensor] : tensors) {
    const bool first = name.find(of_a) != name.npos;
    const auto at = name.find(first ? of_a : of_b);
    if (at == name.npos) continue;
    const std::size_t begin = name.starts_with(wrapper) ? wrapper.size() : 0;
    LoraPair& pair = out[name.substr(begin, at - begin) + ".weight"];
    pair.file = &file;
    pair.copies = copies_of(file);
    (first ? pair.a : pair.b) = tensor;
  }
  for (const auto& [weight, pair] : out)
    if (!pair.a || !pair.b)
      return fail(Errc::corrupt,
                  cat(file.path(), ": ", quote(weight), ": expected lora_A and lora_B, found ",
                      pair.a ? "lora_A" : "lora_B", " only"));
  return out;
}

Result<> check_lora_pair(const LoraPair& pair, const ShardTensor& weight,
                         const AdapterSettings& settings) {
  const std::string where = cat(pair.file->path(), ": the adapter of ", quote(weight.name), ": ");
  const auto &a = pair.a->shape, &b = pair.b->shape;
  const std::vector<std::int64_t> shape = weight.shape();
  if (a.size() != 2 || b.size() != 2 || shape.size() != 2 || a[0] != b[1] || a[0] < 1 ||
      a[1] != shape[1] || b[0] != shape[0])
    return fail(Errc::usage, cat(where, "A of shape ", shape_text(a), " and B of shape ",
                                 shape_text(b), " for a weight of shape ", shape_text(shape),
                                 "; the adapter must be divided as --load-dir is"));
  if (a[0] % pair.copies != 0 || (settings.rank > 0 && settings.rank != a[0] / pair.copies))
    return fail(Errc::usage, cat(where, "--lora-r ", settings.rank, ", found rank ", a[0],
                                 pair.copies > 1 ? cat(" of ", pair.copies, " copies") : ""));
  const std::string module = module_of(weight.name);
  if (!settings.targets.empty() &&
      std::ranges::find(settings.targets, module) == settings.targets.end())
    return fail(Errc::usage, cat(where, "--lora-target-modules does not name ", module));
  return {};
}

Result<std::vector<std::byte>> merge_lora(std::span<const std::byte> base, StoredType type,
                                          const ShardTensor& weight, const LoraPair& pair,
                                          double alpha) {
  const auto a = floats_of(*pair.file, *pair.a, weight.name),
             b = floats_of(*pair.file, *pair.b, weight.name);
  RETURN_IF_ERROR(a);
  RETURN_IF_ERROR(b);
  std::vector<std::byte> out(base.begin(), base.end());
  RETURN_IF_ERROR(convert_type(out, type, StoredType::f32, weight.name));
  const auto rank = static_cast<std::size_t>(pair.a->shape[0]),
             columns = static_cast<std::size_t>(pair.a->shape[1]),
             rows = static_cast<std::size_t>(pair.b->shape[0]);
  const double scale = alpha / static_cast<double>(rank);
  std::vector<double> sums(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    std::ranges::fill(sums, 0);
    for (std::size_t r = 0; r < rank; ++r) {
      const double factor = (*b)[row * rank + r];
      for (std::size_t c = 0; c < columns; ++c) sums[c] += factor * (*a)[r * columns + c];
    }
    for (std::size_t c = 0; c < columns; ++c) {
      std::byte* at = out.data() + (row * columns + c) * sizeof(float);
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      value = static_cast<float>(value + scale * sums[c]);
      std::memcpy(at, &value, sizeof value);
    }
  }
  RETURN_IF_ERROR(convert_type(out, StoredType::f32, type, weight.name));
  return out;
}

}  // namespace troupe::engine::checkpoint
