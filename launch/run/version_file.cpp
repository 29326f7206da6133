#include "launch/run/version_file.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <vector>

#include "actors/roles/weights.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"

namespace troupe::launch::run {
namespace {

namespace checkpoint = engine::checkpoint;
using actors::protocol::Weights;
using checkpoint::StoredType;

constexpr std::string_view values_name = "values", checksums_name = "checksums",
                           tokens_name = "probe.tokens", logp_name = "probe.logp";

template <class T>
std::vector<T> read_bytes(const checkpoint::SafetensorsFile& file, std::string_view name,
                          StoredType type) {
  const auto* tensor = file.find(name);
  if (!tensor || tensor->type != type)
    throw Failure(
        {Errc::corrupt, cat(file.path(), ": expected a tensor ", name, " of type ", to_string(type),
                            ", found ", tensor ? to_string(tensor->type) : "none")});
  std::vector<T> values(static_cast<std::size_t>(tensor->count()));
  const auto bytes = file.bytes(*tensor);
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).begin());
  return values;
}

std::uint64_t number(const checkpoint::SafetensorsFile& file, std::string_view key) {
  const std::string* text = file.metadata(key);
  std::uint64_t value = 0;
  const char* end = text ? text->data() + text->size() : nullptr;
  if (!text || std::from_chars(text->data(), end, value).ptr != end)
    throw Failure({Errc::corrupt, cat(file.path(), ": expected a number in the metadata at ", key,
                                      ", found ", text ? quote(*text) : "none")});
  return value;
}

}  // namespace

void write_version(const std::string& path, const Weights& weights) {
  const std::span<const float> values = *weights.values;
  const auto size = [](std::size_t count) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(count)};
  };
  auto writer = value_or_throw(checkpoint::SafetensorsWriter::create(
      path,
      {{std::string(values_name), StoredType::f32, size(values.size())},
       {std::string(checksums_name), StoredType::u64, size(weights.checksums.size())},
       {std::string(tokens_name), StoredType::i32, size(weights.probe.tokens.size())},
       {std::string(logp_name), StoredType::f32, size(weights.probe.logp.size())}},
      {{"version", std::to_string(weights.version)},
       {"updates", std::to_string(weights.updates)}}));
  const auto names = writer.tensors();
  for (const auto& tensor : names) {
    if (tensor.name == values_name) value_or_throw(writer.write(tensor.name, values));
    if (tensor.name == logp_name) value_or_throw(writer.write(tensor.name, weights.probe.logp));
    if (tensor.name == checksums_name)
      value_or_throw(writer.write_bytes(tensor.name, std::as_bytes(std::span(weights.checksums))));
    if (tensor.name == tokens_name)
      value_or_throw(
          writer.write_bytes(tensor.name, std::as_bytes(std::span(weights.probe.tokens))));
  }
  value_or_throw(writer.finish());
}

Weights read_version(const std::string& path, std::uint64_t version,
                     const engine::models::DecoderSpec& spec) {
  const auto file = value_or_throw(checkpoint::SafetensorsFile::open(path));
  Weights weights;
  weights.version = number(file, "version");
  weights.updates = number(file, "updates");
  if (weights.version != version)
    throw Failure(
        {Errc::corrupt, cat(path, ": expected version ", version, ", found ", weights.version)});
  weights.values = std::make_shared<const std::vector<float>>(
      read_bytes<float>(file, values_name, StoredType::f32));
  weights.checksums = read_bytes<std::uint64_t>(file, checksums_name, StoredType::u64);
  weights.probe.tokens = read_bytes<std::int32_t>(file, tokens_name, StoredType::i32);
  weights.probe.logp = read_bytes<float>(file, logp_name, StoredType::f32);
  if (const auto same = actors::roles::verify(weights, spec); !same)
    throw Failure({Errc::corrupt, cat(path, ": ", same.error().what)});
  return weights;
}

}  // namespace troupe::launch::run
