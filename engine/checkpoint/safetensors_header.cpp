#include "engine/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::size_t format_limit = 100'000'000;  // the format's own bound on the header

tl::unexpected<Error> corrupt(const std::string& path, std::string_view what) {
  return fail(Errc::corrupt, cat(path, ": ", what));
}
tl::unexpected<Error> corrupt(const std::string& path, std::string_view tensor,
                              std::string_view what) {
  return fail(Errc::corrupt, cat(path, ": tensor ", quote(tensor), ": ", what));
}

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

Result<std::string_view> header_text(std::span<const std::byte> file, const std::string& path,
                                     const SafetensorsLimits& limits) {
  if (file.size() < length_bytes)
    return corrupt(
        path, cat("expected a safetensors file, which begins with an 8-byte header length; found ",
                  file.size(), " bytes"));
  const std::uint64_t length = little_endian_u64(file);
  if (length > file.size() - length_bytes)
    return corrupt(path, cat("the header is said to have ", length, " bytes, but only ",
                             file.size() - length_bytes,
                             " follow: the file is cut short or is not a safetensors file"));
  if (length > format_limit)
    return corrupt(path, cat("a header of ", length, " bytes; the format allows ", format_limit));
  if (length > limits.header_bytes)
    return fail(Errc::unsupported, cat(path, ": a header of ", length, " bytes; at most ",
                                       limits.header_bytes, " are read"));
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes,
                              static_cast<std::size_t>(length));
  if (!text.starts_with('{'))
    return corrupt(path,
                   cat("the header must be a JSON object, found ", quote(text.substr(0, 16))));
  return text;
}

// Counts the header's JSON values before they are parsed: 16 MiB of "[0,0,0..." would use half a
// gigabyte.
Result<> bound_values(std::string_view text, const std::string& path, std::size_t limit) {
  std::size_t values = 1;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      if (c == '"') inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == ',' || c == '{' || c == '[') {
      ++values;
    }
  }
  if (values > limit)
    return fail(Errc::unsupported,
                cat(path, ": a header of ", values, " values; at most ", limit, " are read"));
  return {};
}

// dump() escapes unprintable characters; only the length remains to be limited.
std::string short_text(const Json& value) {
  const std::string text = value.dump();
  return text.size() <= 24 ? text : quote(text, 24);
}

Result<std::vector<std::int64_t>> non_negative(const Json* list, std::string_view key,
                                               const std::string& path, std::string_view tensor) {
  const auto wrong = [&](std::string_view found) {
    return corrupt(path, tensor,
                   cat("\"", key, "\" must be a list of integers >= 0, found ", found));
  };
  if (!list || !list->is_array()) return wrong(list ? short_text(*list) : "none");
  std::vector<std::int64_t> out;
  out.reserve(list->array().size());
  for (const Json& item : list->array()) {
    if (!item.is_integer() || item.integer() < 0) return wrong(short_text(item));
    out.push_back(item.integer());
  }
  return out;
}

// Number of bytes of the type and shape. An error where it exceeds 63 bits or is not whole.
Result<std::size_t> bytes_needed(const StoredTensor& tensor, const std::string& path) {
  const auto bits = element_count(tensor.shape, bits_of(tensor.type));
  if (!bits)
    return corrupt(path, tensor.name,
                   cat("the sizes ", shape_text(tensor.shape), " multiply to more than 2^63 bits"));
  if (*bits % 8 != 0)
    return corrupt(
        path, tensor.name,
        cat(to_string(tensor.type), " ", shape_text(tensor.shape), " does not fill whole bytes"));
  return static_cast<std::size_t>(*bits / 8);
}

Result<StoredTensor> parse_tensor(const std::string& name, const Json& value,
                                  const std::string& path) {
  if (name.empty()) return corrupt(path, "a tensor without a name");
  if (std::any_of(name.begin(), name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return corrupt(path, name, "control characters in its name");
  if (!value.is_object())
    return corrupt(path, name, cat("must be an object, found ", value.type_name()));
  StoredTensor tensor;
  tensor.name = name;
  const Json* dtype = value.find("dtype");
  if (!dtype || !dtype->is_string()) return corrupt(path, name, "\"dtype\" must be a string");
  const auto type = stored_type(dtype->string());
  if (!type)
    return fail(Errc::unsupported,
                cat(path, ": tensor ", quote(name), ": unknown dtype ", quote(dtype->string())));
  tensor.type = *type;
  auto shape = non_negative(value.find("shape"), "shape", path, name);
  RETURN_IF_ERROR(shape);
  tensor.shape = std::move(*shape);
  const auto offsets = non_negative(value.find("data_offsets"), "data_offsets", path, name);
  RETURN_IF_ERROR(offsets);
  if (offsets->size() != 2)
    return corrupt(path, name,
                   cat("\"data_offsets\" must be two numbers, found ", offsets->size()));
  tensor.begin = static_cast<std::size_t>((*offsets)[0]);
  tensor.end = static_cast<std::size_t>((*offsets)[1]);
  if (tensor.end < tensor.begin)
    return corrupt(path, name, cat("ends at ", tensor.end, ", before it begins at ", tensor.begin));
  const auto needed = bytes_needed(tensor, path);
  RETURN_IF_ERROR(needed);
  if (*needed != tensor.end - tensor.begin)
    return corrupt(path, name,
                   cat(to_string(tensor.type), " ", shape_text(tensor.shape), " needs ", *needed,
                       " bytes, found ", tensor.end - tensor.begin));
  return tensor;
}

Result<> parse_metadata(const Json& value, const std::string& path, SafetensorsHeader& header) {
  if (!value.is_object())
    return corrupt(path,
                   cat("\"__metadata__\" must be an object of strings, found ", value.type_name()));
  for (const auto& [key, text] : value.object()) {
    if (!text.is_string())
      return corrupt(path, cat("\"__metadata__\": ", quote(key), " must be a string, found ",
                               text.type_name()));
    header.metadata.emplace_back(key, text.string());
  }
  return {};
}

// Checks that in the order of their offsets each tensor begins where the previous one ends, and
// that the last ends with the file.
Result<> check_coverage(SafetensorsHeader& header, std::size_t data_bytes,
                        const std::string& path) {
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  std::size_t at = 0;
  for (const auto& tensor : header.tensors) {
    if (tensor.end > data_bytes)
      return corrupt(path, tensor.name,
                     cat("ends at byte ", tensor.end, " of the data, but the file holds ",
                         data_bytes, ": it is cut short or its header is wrong"));
    if (tensor.begin != at)
      return corrupt(path, tensor.name,
                     cat("begins at byte ", tensor.begin, " of the data, expected ", at,
                         tensor.begin < at ? ": it overlaps the tensor before"
                                           : ": there is a hole before it"));
    at = tensor.end;
  }
  if (at != data_bytes)
    return corrupt(
        path, cat("its tensors end at byte ", at, " of the data, but the file holds ", data_bytes));
  return {};
}

}  // namespace

std::int64_t StoredTensor::count() const {
  std::int64_t product = 1;
  for (const auto size : shape) product *= size;
  return product;
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape, std::int64_t unit) {
  std::int64_t product = unit;
  bool empty = false;
  for (const auto size : shape) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return empty ? 0 : product;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  constexpr std::size_t shown = 8;
  for (std::size_t i = 0; i < std::min(shown, shape.size()); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() > shown ? ", ...]" : "]");
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file,
                                                   const std::string& path,
                                                   SafetensorsLimits limits) {
  const auto text = header_text(file, path, limits);
  RETURN_IF_ERROR(text);
  RETURN_IF_ERROR(bound_values(*text, path, limits.values));
  // Three levels: the file, a tensor, its shape.
  const auto json = parse_json(*text, path, {.depth = 3, .bytes = limits.header_bytes});
  if (!json) return fail(Errc::corrupt, json.error().what);

  SafetensorsHeader header;
  header.data_begin = length_bytes + text->size();
  for (const auto& [name, value] : json->object()) {
    if (name == "__metadata__") {
      RETURN_IF_ERROR(parse_metadata(value, path, header));
      continue;
    }
    auto tensor = parse_tensor(name, value, path);
    RETURN_IF_ERROR(tensor);
    header.tensors.push_back(std::move(*tensor));
  }
  RETURN_IF_ERROR(check_coverage(header, file.size() - header.data_begin, path));
  return header;
}

}  // namespace troupe::engine::checkpoint
