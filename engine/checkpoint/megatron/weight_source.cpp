#include "engine/checkpoint/megatron/weight_source.h"

#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/text/text.h"
#include "engine/checkpoint/half.h"

namespace troupe::engine::checkpoint {
namespace {

struct Loaded {
  std::vector<std::byte> buffer;
  std::span<const std::byte> bytes;
};

bool is_float(StoredType type) {
  return type == StoredType::f32 || type == StoredType::bf16 || type == StoredType::f16;
}

float widen(const std::byte* at, StoredType type) {
  if (type == StoredType::f32) {
    float out;
    std::memcpy(&out, at, sizeof out);
    return out;
  }
  std::uint16_t half;
  std::memcpy(&half, at, sizeof half);
  return type == StoredType::bf16 ? bf16_to_float(half) : f16_to_float(half);
}

void narrow(float value, StoredType type, std::byte* at) {
  if (type == StoredType::f32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t half = type == StoredType::bf16 ? float_to_bf16(value) : float_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

}  // namespace

SafetensorsSource::SafetensorsSource(const SafetensorsFolder& folder,
                                     const models::DecoderSpec& spec)
    : folder_(folder), stored_(models::stored_tensors(spec)) {
  for (std::size_t i = 0; i < stored_.size(); ++i)
    for (const models::Rows& rows : stored_[i].rows) places_.emplace(rows.parameter, i);
}

Result<SafetensorsFolder::Location> SafetensorsSource::locate(
    const models::StoredTensor& tensor) const {
  if (const auto found = folder_.find(tensor.name)) return *found;
  return fail(Errc::corrupt, cat(folder_.files().front().path(), ": no tensor ", quote(tensor.name),
                                 ", which config.json asks for"));
}

Result<const models::StoredTensor*> SafetensorsSource::holder(const std::string& parameter) const {
  if (const auto found = places_.find(parameter); found != places_.end())
    return &stored_[found->second];
  return fail(Errc::corrupt, cat(folder_.files().front().path(), ": no weight ", quote(parameter)));
}

Result<> SafetensorsSource::check(const std::string& where) const {
  std::unordered_set<std::string> names;
  for (const models::StoredTensor& tensor : stored_) {
    const auto location = locate(tensor);
    RETURN_IF_ERROR(location);
    if (location->tensor->shape != tensor.shape())
      return fail(Errc::corrupt,
                  cat(location->file->path(), ": tensor ", quote(tensor.name), ": expected ",
                      shape_text(tensor.shape()), ", found ", shape_text(location->tensor->shape)));
    names.insert(tensor.name);
  }
  for (const auto& location : folder_.all())
    if (!names.contains(location.tensor->name) && !location.tensor->name.ends_with(".inv_freq") &&
        location.tensor->name != "lm_head.weight")
      return fail(Errc::corrupt,
                  cat(location.file->path(), ": tensor ", quote(location.tensor->name),
                      " is no weight of the model of ", where));
  return {};
}

Result<StoredType> SafetensorsSource::type(const std::string& parameter) const {
  const auto tensor = holder(parameter);
  RETURN_IF_ERROR(tensor);
  const auto location = locate(**tensor);
  RETURN_IF_ERROR(location);
  return location->tensor->type;
}

Result<std::span<const std::byte>> SafetensorsSource::read(const std::string& parameter,
                                                           std::vector<std::byte>& buffer) const {
  const auto found = holder(parameter);
  RETURN_IF_ERROR(found);
  const models::StoredTensor& tensor = **found;
  const auto location = locate(tensor);
  RETURN_IF_ERROR(location);
  const std::span<const std::byte> whole = location->file->bytes(*location->tensor);
  if (tensor.rows.size() == 1) return whole;
  const std::size_t pitch =
      static_cast<std::size_t>(tensor.columns) * bits_of(location->tensor->type) / 8;
  std::size_t at = 0;
  buffer.clear();
  for (const models::Rows& rows : tensor.rows) {
    const auto bytes = static_cast<std::size_t>(rows.count) * pitch;
    if (rows.parameter == parameter) {  // its blocks are in the order of its rows
      const auto part = whole.subspan(at, bytes);
      buffer.insert(buffer.end(), part.begin(), part.end());
    }
    at += bytes;
  }
  return std::span<const std::byte>(buffer);
}

Result<StoredType> type_of_joined(const models::StoredTensor& tensor, const WeightSource& source) {
  const auto first = source.type(tensor.rows.front().parameter);
  RETURN_IF_ERROR(first);
  for (const models::Rows& rows : tensor.rows) {
    const auto other = source.type(rows.parameter);
    RETURN_IF_ERROR(other);
    if (*other != *first)
      return fail(Errc::unsupported,
                  cat("tensor ", quote(rows.parameter), ": expected ", to_string(*first),
                      " as the tensors that it is joined with, found ", to_string(*other)));
  }
  return first;
}

Result<std::span<const std::byte>> read_joined(const models::StoredTensor& tensor,
                                               const WeightSource& source,
                                               std::vector<std::byte>& buffer) {
  if (tensor.rows.size() == 1) return source.read(tensor.rows.front().parameter, buffer);
  const auto type = type_of_joined(tensor, source);
  RETURN_IF_ERROR(type);
  const std::size_t pitch = static_cast<std::size_t>(tensor.columns) * bits_of(*type) / 8;
  std::unordered_map<std::string, Loaded> parts;
  buffer.clear();
  for (const models::Rows& rows : tensor.rows) {
    Loaded& part = parts[rows.parameter];
    if (part.bytes.empty()) {
      const auto read = source.read(rows.parameter, part.buffer);
      RETURN_IF_ERROR(read);
      part.bytes = *read;
    }
    const auto block = part.bytes.subspan(static_cast<std::size_t>(rows.first) * pitch,
                                          static_cast<std::size_t>(rows.count) * pitch);
    buffer.insert(buffer.end(), block.begin(), block.end());
  }
  return std::span<const std::byte>(buffer);
}

Result<std::vector<std::byte>> gather_shard(const ShardTensor& tensor, const WeightSource& source,
                                            std::size_t bytes) {
  std::unordered_map<std::string, Loaded> loaded;
  std::vector<std::byte> out;
  std::int64_t count = 1;
  for (const auto axis : tensor.shape()) count *= axis;
  out.resize(static_cast<std::size_t>(count) * bytes);
  std::byte* to = out.data();
  const std::size_t width = static_cast<std::size_t>(tensor.columns) * bytes,
                    pitch = static_cast<std::size_t>(tensor.all_columns) * bytes,
                    first = static_cast<std::size_t>(tensor.first_column) * bytes;
  for (const RowBlock& block : tensor.blocks) {
    Loaded& part = loaded[block.parameter];
    if (part.bytes.empty()) {
      const auto read = source.read(block.parameter, part.buffer);
      RETURN_IF_ERROR(read);
      part.bytes = *read;
    }
    const std::byte* from = part.bytes.data() + static_cast<std::size_t>(block.first) * pitch;
    for (std::int64_t row = 0; row < block.count; ++row) {
      std::memcpy(to, from + first, width);
      from += pitch;
      to += width;
    }
  }
  return out;
}

void scatter_shard(const ShardTensor& tensor, std::span<const std::byte> from,
                   const std::string& parameter, std::size_t bytes, std::span<std::byte> into) {
  const std::size_t width = static_cast<std::size_t>(tensor.columns) * bytes,
                    pitch = static_cast<std::size_t>(tensor.all_columns) * bytes,
                    first = static_cast<std::size_t>(tensor.first_column) * bytes;
  const std::byte* at = from.data();
  for (const RowBlock& block : tensor.blocks) {
    const auto rows = static_cast<std::size_t>(block.count);
    if (!block.copy && block.parameter == parameter)
      for (std::size_t row = 0; row < rows; ++row)
        std::memcpy(into.data() + (static_cast<std::size_t>(block.first) + row) * pitch + first,
                    at + row * width, width);
    at += rows * width;
  }
}

Result<> convert_type(std::vector<std::byte>& bytes, StoredType from, StoredType to,
                      const std::string& name) {
  if (from == to) return {};
  if (!is_float(from) || !is_float(to))
    return fail(Errc::unsupported, cat("tensor ", quote(name), ": cannot convert ", to_string(from),
                                       " to ", to_string(to)));
  const std::size_t before = bits_of(from) / 8, after = bits_of(to) / 8,
                    count = bytes.size() / before;
  std::vector<std::byte> out(count * after);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = widen(bytes.data() + i * before, from);
    if (to == StoredType::f16 && std::isfinite(value) && std::abs(value) >= 65520)
      return fail(Errc::usage, cat("tensor ", quote(name), " has the value ", double{value},
                                   ", which fp16 cannot store; set --params-dtype bf16 or fp32"));
    narrow(value, to, out.data() + i * after);
  }
  bytes = std::move(out);
  return {};
}

}  // namespace troupe::engine::checkpoint
