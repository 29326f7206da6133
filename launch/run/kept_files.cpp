#include "launch/run/kept_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/leftovers.h"
#include "launch/run/finished_samples_file.h"
#include "launch/run/version_file.h"

namespace troupe::launch::run {
namespace {

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
                       const std::vector<algorithms::SharedWeights>& weights,
                       const std::vector<FinishedSample>& samples) {
  if (weights.empty() && samples.empty()) return "";
  const std::string name = cat(checkpoint::temporary_prefix, step, "-", ::getpid());
  const auto all = value_or_throw(output.folder(std::string(checkpoint::versions_folder)));
  std::error_code ignored;
  fs::remove_all(all.path_of(name), ignored);  // of a save that failed
  const auto folder = value_or_throw(all.folder(name));
  try {
    for (const auto& each : weights)
      write_version(folder.path_of(version_name(each->version)), *each);
    if (!samples.empty())
      write_finished_samples(folder.path_of(std::string(samples_name)), samples);
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
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::string bad = find_bad_value(samples[i], bounds);
    const auto order = [](const FinishedSample& s) {
      return std::pair(s.batch, s.completion.sample_id);
    };
    if (bad.empty() && i > 0 && order(samples[i]) <= order(samples[i - 1]))
      bad = "expected the samples in the order of batches and ids";
    if (!bad.empty())
      throw Failure({Errc::corrupt, cat(file.path, ": sample ", samples[i].completion.sample_id,
                                        " of batch ", samples[i].batch, ": ", bad)});
  }
  return samples;
}

}  // namespace troupe::launch::run
