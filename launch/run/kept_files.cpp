#include "launch/run/kept_files.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/train.h"
#include "actors/roles/weights.h"
#include "engine/base/files/file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/leftovers.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/models/spec.h"
#include "launch/run/finished_samples_file.h"

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
  const auto value = text ? parse_number<std::uint64_t>(*text) : std::nullopt;
  if (!value)
    throw Failure({Errc::corrupt, cat(file.path(), ": expected a number in the metadata at ", key,
                                      ", found ", text ? quote(*text) : "none")});
  return *value;
}

/// Durably. Throws Failure: Errc::io.
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

/// Compares the number of the version, the number of values and the checksums of the tensors with
/// those of a model of this shape. Throws Failure: Errc::not_found, corrupt; both name the file.
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

namespace checkpoint = engine::checkpoint;
namespace fs = std::filesystem;
using actors::protocol::Completion;
using algorithms::FinishedSample;

constexpr std::string_view samples_name = "samples.safetensors";

std::string version_name(std::uint64_t version) {
  return cat("version-", version, ".safetensors");
}

// In the checkpoint, or where version 0.1.0 wrote it.
KeptFile find_file(const std::string& checkpoint, const std::string& name) {
  std::error_code failed;
  const std::string own = cat(checkpoint, "/training/", name);
  if (fs::exists(own, failed)) return {own, true};
  const fs::path folder = fs::weakly_canonical(checkpoint, failed);
  const std::string beside = cat(folder.parent_path().string(), "/", checkpoint::versions_folder,
                                 "/", folder.filename().string(), "/", name);
  if (!failed && fs::exists(beside, failed)) return {beside, false};
  return {};
}

// "" if the runs of versions are those of the tokens.
std::string find_bad_runs(const Completion& completion) {
  std::uint64_t tokens = 0;
  for (const auto& run : completion.versions) {
    if (run.count == 0) return "expected runs of versions of at least 1 token, found one of none";
    tokens += run.count;
  }
  if (tokens == completion.ids.size()) return "";
  return cat("expected the versions of ", completion.ids.size(), " tokens, found ", tokens);
}

std::string find_bad_columns(const Completion& completion,
                             const engine::data::SampleBounds& bounds) {
  const std::vector<std::int64_t> tokens(completion.ids.begin(), completion.ids.end());
  std::vector<std::int64_t> mask(completion.sampled.begin(), completion.sampled.end()), versions;
  if (mask.empty()) mask.assign(tokens.size(), 1);
  for (const auto& run : completion.versions)
    versions.insert(versions.end(), run.count, static_cast<std::int64_t>(run.version));
  const std::vector<double> logp(completion.logp.begin(), completion.logp.end());
  const auto bad =
      engine::data::find_bad_value({tokens, mask, logp, versions, completion.reward}, bounds);
  return bad ? bad->what : "";
}

// What no sample of the checkpoint can have, or "".
std::string find_bad_value(const FinishedSample& sample, const KeptBounds& bounds) {
  const Completion& c = sample.completion;
  if (sample.batch < 0) return cat("expected a batch, at least 0, found ", sample.batch);
  if (c.updates > bounds.updates)
    return cat("expected at most ", bounds.updates, " updates of its weights, found ", c.updates);
  if (auto bad = find_bad_runs(c); !bad.empty()) return bad;
  return find_bad_columns(c, bounds.sample);
}

}  // namespace

std::string stage_kept(const OutputFolder& output, std::int64_t step,
                       const std::vector<algorithms::SharedWeights>& weights) {
  if (weights.empty()) return "";
  const std::string name = cat(checkpoint::temporary_prefix, step, "-", ::getpid());
  const auto all = value_or_throw(output.folder(std::string(checkpoint::versions_folder)));
  std::error_code ignored;
  fs::remove_all(all.path_of(name), ignored);  // of a save that failed
  const auto folder = value_or_throw(all.folder(name));
  try {
    for (const auto& each : weights)
      write_version(folder.path_of(version_name(each->version)), *each);
    value_or_throw(sync_directory(folder.path()));
  } catch (...) {
    fs::remove_all(folder.path(), ignored);
    ::rmdir(all.path().c_str());
    throw;
  }
  return cat(checkpoint::versions_folder, "/", name);
}

KeptFile kept_version(const std::string& checkpoint, std::uint64_t version) {
  return find_file(checkpoint, version_name(version));
}

KeptFile kept_samples(const std::string& checkpoint) {
  return find_file(checkpoint, std::string(samples_name));
}

algorithms::SharedWeights read_kept_version(const std::string& checkpoint, std::uint64_t version,
                                            const engine::models::DecoderSpec& spec) {
  const KeptFile file = kept_version(checkpoint, version);
  if (file.path.empty())
    throw Failure({Errc::not_found,
                   cat(checkpoint, "/training/", version_name(version),
                       ": is missing; the checkpoint needs these older weights, because "
                       "async.mode is pinned. Resume from another checkpoint, or set async.mode "
                       "to off")});
  return std::make_shared<const actors::protocol::Weights>(read_version(file.path, version, spec));
}

std::vector<FinishedSample> read_kept_samples(const std::string& checkpoint,
                                              const KeptBounds& bounds) {
  const KeptFile file = kept_samples(checkpoint);
  if (file.path.empty()) return {};
  auto samples = read_finished_samples(file.path);
  check_samples(samples, file.path, bounds);
  return samples;
}

void check_samples(const std::vector<FinishedSample>& samples, const std::string& where,
                   const KeptBounds& bounds) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::string bad = find_bad_value(samples[i], bounds);
    const auto order = [](const FinishedSample& s) {
      return std::pair(s.batch, s.completion.sample_id);
    };
    if (bad.empty() && i > 0 && order(samples[i]) <= order(samples[i - 1]))
      bad = "expected the samples in the order of batches and ids";
    if (!bad.empty())
      throw Failure({Errc::corrupt, cat(where, ": sample ", samples[i].completion.sample_id,
                                        " of batch ", samples[i].batch, ": ", bad)});
  }
}

}  // namespace troupe::launch::run
