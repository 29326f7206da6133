#include "engine/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/checkpoint/half.h"

namespace troupe::engine::checkpoint {
namespace {

std::vector<StoredTensor> lay_out(const std::vector<SafetensorsWriter::Plan>& plans) {
  std::vector<StoredTensor> tensors;
  for (const auto& plan : plans) tensors.push_back({plan.name, plan.type, plan.shape, 0, 0});
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  std::size_t at = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check(i == 0 || tensors[i].name != tensors[i - 1].name, "SafetensorsWriter: duplicate name");
    tensors[i].begin = at;
    at += static_cast<std::size_t>(tensors[i].count()) * bits_of(tensors[i].type) / 8;
    tensors[i].end = at;
  }
  return tensors;
}

std::string header(const std::vector<StoredTensor>& tensors,
                   const SafetensorsWriter::Metadata& metadata) {
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

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<Plan>& plans,
                                                    const Metadata& metadata) {
  auto tensors = lay_out(plans);
  auto file = OutputFile::create(path);
  RETURN_IF_ERROR(file);
  RETURN_IF_ERROR(file->write(header(tensors, metadata)));
  return SafetensorsWriter(std::move(*file), std::move(tensors));
}

const StoredTensor& SafetensorsWriter::next(std::string_view name) {
  check(written_ < tensors_.size() && tensors_[written_].name == name,
        "SafetensorsWriter: tensors must be written in the order of tensors()");
  return tensors_[written_++];
}

Result<> SafetensorsWriter::write_bytes(std::string_view name, std::span<const std::byte> bytes) {
  const StoredTensor& tensor = next(name);
  check(bytes.size() == tensor.end - tensor.begin, "SafetensorsWriter: bytes of another size");
  return file_.write(bytes);
}

Result<> SafetensorsWriter::write(std::string_view name, std::span<const float> values) {
  const StoredTensor& tensor = next(name);
  check(values.size() == static_cast<std::size_t>(tensor.count()),
        "SafetensorsWriter: values of another size");
  if (tensor.type == StoredType::f32) return file_.write(std::as_bytes(values));
  check(tensor.type == StoredType::bf16 || tensor.type == StoredType::f16,
        "SafetensorsWriter: floats are written as F32, BF16 or F16");
  const auto narrow = tensor.type == StoredType::bf16 ? float_to_bf16 : float_to_f16;
  std::vector<std::uint16_t> halves(std::min<std::size_t>(values.size(), 1u << 20));
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), halves.size());
    std::transform(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count),
                   halves.begin(), narrow);
    RETURN_IF_ERROR(file_.write(std::as_bytes(std::span(halves).first(count))));
    values = values.subspan(count);
  }
  return {};
}

Result<> SafetensorsWriter::finish() {
  check(written_ == tensors_.size(), "SafetensorsWriter: finished before every tensor was written");
  return file_.finish();
}

}  // namespace troupe::engine::checkpoint
