#include "engine/checkpoint/safetensors_layout.h"

#include <algorithm>
#include <cstring>

#include "engine/base/errors/check.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/half.h"

namespace troupe::engine::checkpoint {
namespace {

std::vector<StoredTensor> place(const std::vector<TensorPlan>& plans) {
  std::vector<StoredTensor> tensors;
  for (const auto& plan : plans) tensors.push_back({plan.name, plan.type, plan.shape, 0, 0});
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  std::size_t at = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check(i == 0 || tensors[i].name != tensors[i - 1].name, "safetensors: duplicate name");
    tensors[i].begin = at;
    at += static_cast<std::size_t>(tensors[i].count()) * bits_of(tensors[i].type) / 8;
    tensors[i].end = at;
  }
  return tensors;
}

std::string header_of(const std::vector<StoredTensor>& tensors,
                      const SafetensorsMetadata& metadata) {
  Json::Object members;
  if (!metadata.empty()) {
    Json::Object pairs;
    for (const auto& [key, value] : metadata) pairs.emplace_back(key, value);
    members.emplace_back("__metadata__", std::move(pairs));
  }
  for (const auto& tensor : tensors) {
    Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    members.emplace_back(tensor.name,
                         Json::Object{{"dtype", to_string(tensor.type)},
                                      {"shape", std::move(shape)},
                                      {"data_offsets", Json::Array{std::uint64_t{tensor.begin},
                                                                   std::uint64_t{tensor.end}}}});
  }
  std::string text = Json(std::move(members)).dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

}  // namespace

SafetensorsLayout lay_out(const std::vector<TensorPlan>& plans,
                          const SafetensorsMetadata& metadata) {
  auto tensors = place(plans);
  auto header = header_of(tensors, metadata);
  return {std::move(tensors), std::move(header)};
}

std::span<const std::byte> stored_bytes(StoredType type, std::span<const float> values,
                                        std::vector<std::uint16_t>& halves) {
  if (type == StoredType::f32) return std::as_bytes(values);
  check(type == StoredType::bf16 || type == StoredType::f16,
        "safetensors: floats are written as F32, BF16 or F16");
  halves.resize(values.size());
  std::ranges::transform(values, halves.begin(),
                         type == StoredType::bf16 ? float_to_bf16 : float_to_f16);
  return std::as_bytes(std::span(halves));
}

}  // namespace troupe::engine::checkpoint
