#include "launch/run/version_store.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "launch/run/finished_samples_file.h"

namespace troupe::launch {
namespace {

namespace checkpoint = engine::checkpoint;
using actors::protocol::Weights;
using checkpoint::StoredType;

constexpr std::string_view folder_name = "versions", samples_name = "samples.safetensors";
constexpr std::string_view values_name = "values", checksums_name = "checksums",
                           tokens_name = "probe.tokens", logp_name = "probe.logp";

std::string folder_of(std::int64_t step) {
  return cat("checkpoint-", step);
}
std::string file_of(std::uint64_t version) {
  return cat("version-", version, ".safetensors");
}

void write(const std::string& path, const Weights& weights) {
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

void VersionStore::save(std::int64_t step, const std::vector<algorithms::SharedWeights>& weights) {
  const auto all = value_or_throw(output_.folder(std::string(folder_name)));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(all.path(), ignored)) {
    const std::string name = entry.path().filename();
    const bool stale = name.starts_with("checkpoint-") && !output_.contains(name);
    if (stale || name == folder_of(step)) std::filesystem::remove_all(entry.path(), ignored);
  }
  if (weights.empty()) return;
  const auto folder = value_or_throw(all.folder(folder_of(step)));
  for (const auto& each : weights) write(folder.path_of(file_of(each->version)), *each);
  value_or_throw(sync_directory(folder.path()));
  value_or_throw(sync_directory(all.path()));
}

algorithms::SharedWeights VersionStore::load(std::int64_t step, std::uint64_t version) {
  const std::string path =
      output_.path_of(cat(folder_name, "/", folder_of(step), "/", file_of(version)));
  auto opened = checkpoint::SafetensorsFile::open(path);
  if (!opened)
    throw Failure({opened.error().code,
                   cat(opened.error().what, "; ", folder_of(step),
                       " needs these older weights, because async.mode is pinned. Resume from "
                       "another checkpoint, or set async.mode to off")});
  auto weights = std::make_shared<Weights>();
  weights->version = number(*opened, "version");
  weights->updates = number(*opened, "updates");
  if (weights->version != version)
    throw Failure(
        {Errc::corrupt, cat(path, ": expected version ", version, ", found ", weights->version)});
  weights->values = std::make_shared<const std::vector<float>>(
      read_bytes<float>(*opened, values_name, StoredType::f32));
  weights->checksums = read_bytes<std::uint64_t>(*opened, checksums_name, StoredType::u64);
  weights->probe.tokens = read_bytes<std::int32_t>(*opened, tokens_name, StoredType::i32);
  weights->probe.logp = read_bytes<float>(*opened, logp_name, StoredType::f32);
  return weights;
}

void VersionStore::save_samples(std::int64_t step,
                                const std::vector<algorithms::FinishedSample>& samples) {
  if (samples.empty()) return;
  const auto all = value_or_throw(output_.folder(std::string(folder_name)));
  const auto folder = value_or_throw(all.folder(folder_of(step)));
  write_finished_samples(folder.path_of(std::string(samples_name)), samples);
  value_or_throw(sync_directory(folder.path()));
  value_or_throw(sync_directory(all.path()));
}

std::vector<algorithms::FinishedSample> VersionStore::load_samples(std::int64_t step) {
  return read_finished_samples(
      output_.path_of(cat(folder_name, "/", folder_of(step), "/", samples_name)));
}

}  // namespace troupe::launch
