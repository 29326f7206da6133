#include "engine/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/half.h"

namespace troupe::engine::checkpoint {

static_assert(std::endian::native == std::endian::little,
              "safetensors files are little-endian; this machine must be too");

namespace {

// Elements may be unaligned (the header has any length): copies them in blocks that the compiler
// can vectorize.
template <class Stored, class Convert, class T>
void convert(std::span<const std::byte> bytes, std::span<T> into, Convert widen) {
  constexpr std::size_t block = 16;
  std::array<Stored, block> values;
  std::array<T, block> wide;
  std::size_t i = 0;
  for (; i + block <= into.size(); i += block) {
    std::memcpy(values.data(), bytes.data() + i * sizeof(Stored), sizeof values);
    for (std::size_t j = 0; j < block; ++j) wide[j] = widen(values[j]);
    std::memcpy(into.data() + i, wide.data(), sizeof wide);
  }
  for (; i < into.size(); ++i) {
    std::memcpy(values.data(), bytes.data() + i * sizeof(Stored), sizeof(Stored));
    into[i] = widen(values[0]);
  }
}

bool holds_floats(StoredType type) {
  return type == StoredType::f32 || type == StoredType::f64 || type == StoredType::bf16 ||
         type == StoredType::f16;
}

template <class T>
bool decode_floats(StoredType type, std::span<const std::byte> bytes, std::span<T> into) {
  switch (type) {
    case StoredType::f32:
      if (std::is_same_v<T, float> && !into.empty())
        std::memcpy(into.data(), bytes.data(), into.size_bytes());
      else
        convert<float>(bytes, into, [](float x) { return static_cast<T>(x); });
      return true;
    case StoredType::f64:
      convert<double>(bytes, into, [](double x) { return static_cast<T>(x); });
      return true;
    case StoredType::bf16:
      convert<std::uint16_t>(bytes, into,
                             [](std::uint16_t x) { return static_cast<T>(bf16_to_float(x)); });
      return true;
    case StoredType::f16:
      convert<std::uint16_t>(bytes, into,
                             [](std::uint16_t x) { return static_cast<T>(f16_to_float(x)); });
      return true;
    default:
      return false;
  }
}

// Returns false also if a value does not fit T.
template <class T>
bool decode_integers(StoredType type, std::span<const std::byte> bytes, std::span<T> into) {
  bool fits = true;
  const auto narrow = [&fits](auto x) {
    fits = fits && static_cast<std::int64_t>(x) >= std::numeric_limits<T>::min() &&
           static_cast<std::int64_t>(x) <= std::numeric_limits<T>::max();
    return static_cast<T>(x);
  };
  switch (type) {
    case StoredType::i64:
      convert<std::int64_t>(bytes, into, narrow);
      return fits;
    case StoredType::i32:
      convert<std::int32_t>(bytes, into, narrow);
      return fits;
    case StoredType::i16:
      convert<std::int16_t>(bytes, into, narrow);
      return fits;
    case StoredType::i8:
      convert<std::int8_t>(bytes, into, narrow);
      return fits;
    case StoredType::u8:
    case StoredType::boolean:
      convert<std::uint8_t>(bytes, into, narrow);
      return fits;
    default:
      return false;
  }
}

std::string range_text(const parallel::Shard& part) {
  return part.whole() ? ""
                      : cat(", indices ", part.begin, " to ", part.end, " of ", part.full,
                            " along axis ", part.axis);
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path, MappedFile file, SafetensorsHeader header)
    : path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i)
    index_.emplace(header_.tensors[i].name, i);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path, SafetensorsLimits limits) {
  auto file = MappedFile::open(path);
  RETURN_IF_ERROR(file);
  auto header = parse_safetensors_header(file->bytes(), path, limits);
  RETURN_IF_ERROR(header);
  return SafetensorsFile(path, std::move(*file), std::move(*header));
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

const std::string* SafetensorsFile::metadata(std::string_view key) const {
  for (const auto& [name, value] : header_.metadata)
    if (name == key) return &value;
  return nullptr;
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return file_.bytes().subspan(header_.data_begin + tensor.begin, tensor.end - tensor.begin);
}

template <class T>
Result<> SafetensorsFile::read(std::string_view name, std::span<T> into) const {
  const StoredTensor* tensor = find(name);
  if (!tensor) return fail(Errc::not_found, cat(path_, ": no tensor ", quote(name)));
  const auto where = [&] { return cat(path_, ": tensor ", quote(name), ": "); };
  if (static_cast<std::size_t>(tensor->count()) != into.size())
    return fail(Errc::bad_input, cat(where(), "expected ", into.size(), " elements, found ",
                                     shape_text(tensor->shape)));
  if constexpr (std::is_floating_point_v<T>) {
    if (decode_floats(tensor->type, bytes(*tensor), into)) return {};
    return fail(Errc::unsupported,
                cat(where(), "expected F32, BF16, F16 or F64, found ", to_string(tensor->type)));
  } else {
    if (decode_integers(tensor->type, bytes(*tensor), into)) return {};
    return fail(Errc::unsupported, cat(where(), "expected integers that fit ", 8 * sizeof(T),
                                       " bits, found ", to_string(tensor->type)));
  }
}

Result<StoredFloats> SafetensorsFile::floats(std::string_view name, const parallel::Shard& part,
                                             std::int64_t count) const {
  const StoredTensor* tensor = find(name);
  if (!tensor) return fail(Errc::not_found, cat(path_, ": no tensor ", quote(name)));
  const auto where = [&] { return cat(path_, ": tensor ", quote(name), ": expected "); };
  const auto& shape = tensor->shape;
  const auto axis = static_cast<std::size_t>(part.axis);
  StoredFloats::Region region;
  bool fits = true;
  if (part.whole()) {
    region.rows = 1;
    region.length = tensor->count();
  } else {
    fits = axis < shape.size() && shape.size() <= 2 && shape[axis] == part.full &&
           0 <= part.begin && part.begin <= part.end && part.end <= part.full;
    const std::int64_t columns = shape.size() == 2 ? shape[1] : 1, wanted = part.end - part.begin;
    region.rows = axis == 0 ? 1 : shape.empty() ? 0 : shape[0];
    region.width = axis == 0 ? 0 : columns;
    region.first = axis == 0 ? part.begin * columns : part.begin;
    region.length = axis == 0 ? wanted * columns : wanted;
  }
  const StoredFloats out(tensor->type, bytes(*tensor), region);
  if (!fits || out.count() != count)
    return fail(Errc::bad_input,
                cat(where(), count, " elements", range_text(part), ", found ", shape_text(shape)));
  if (!holds_floats(tensor->type))
    return fail(Errc::unsupported,
                cat(where(), "F32, BF16, F16 or F64, found ", to_string(tensor->type)));
  return out;
}

void StoredFloats::read(std::int64_t begin, std::span<float> into) const {
  check(0 <= begin && begin + std::ssize(into) <= count(), "StoredFloats: range out of bounds");
  const auto& [rows, width, first, length] = region_;
  const std::size_t size = bits_of(type_) / 8;
  while (!into.empty()) {
    const std::int64_t row = begin / length, column = begin % length;
    const std::size_t run = std::min(static_cast<std::size_t>(length - column), into.size());
    const auto offset = static_cast<std::size_t>(row * width + first + column) * size;
    decode_floats(type_, bytes_.subspan(offset, run * size), into.first(run));
    into = into.subspan(run);
    begin += static_cast<std::int64_t>(run);
  }
}

Result<> SafetensorsFile::read_part(std::string_view name, const parallel::Shard& part,
                                    std::span<float> into) const {
  const auto stored = floats(name, part, std::ssize(into));
  RETURN_IF_ERROR(stored);
  stored->read(0, into);
  return {};
}

Result<> SafetensorsFile::read_f32(std::string_view name, std::span<float> into) const {
  return read(name, into);
}
Result<> SafetensorsFile::read_f64(std::string_view name, std::span<double> into) const {
  return read(name, into);
}
Result<> SafetensorsFile::read_i64(std::string_view name, std::span<std::int64_t> into) const {
  return read(name, into);
}
Result<> SafetensorsFile::read_i32(std::string_view name, std::span<std::int32_t> into) const {
  return read(name, into);
}

Result<> check_finite(std::span<const float> values, const std::string& path,
                      std::string_view tensor) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(Errc::corrupt,
                  cat(path, ": tensor ", quote(tensor), ": element ", i, " is ",
                      static_cast<double>(values[i]), "; every weight must be finite"));
  return {};
}

}  // namespace troupe::engine::checkpoint
