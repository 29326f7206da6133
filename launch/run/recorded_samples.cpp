#include "launch/run/recorded_samples.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "algorithms/training/sample_ledger.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/ledger/stored_samples.h"

namespace troupe::launch::run {

using engine::ledger::Anchor;

std::optional<Anchor> anchor_of(const std::string& checkpoint) {
  const std::string path = cat(checkpoint, "/", engine::checkpoint::journal_file);
  const auto journal = read_json(path);
  const Json* stored = journal ? journal->find("ledger") : nullptr;
  if (!stored) return std::nullopt;
  Anchor anchor;
  anchor.length = value_or_throw(get_integer(*stored, "length", path));
  anchor.head = value_or_throw(get_string(*stored, "head", path));
  return anchor;
}

std::optional<RecordedSamples> read_recorded_samples(const std::string& checkpoint,
                                                     const KeptBounds& bounds) {
  const auto anchor = anchor_of(checkpoint);
  if (!anchor) return std::nullopt;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::weakly_canonical(checkpoint, failed);
  if (failed) return std::nullopt;
  const std::string output = folder.parent_path().string(),
                    where = cat(output, "/", engine::ledger::database_name);
  auto stored = engine::ledger::read_samples(output, *anchor, bounds.sample.newest);
  if (!stored && stored.error().code == Errc::not_found) return std::nullopt;
  RecordedSamples out{.samples = {}, .removed = value_or_throw(stored).removed};
  for (auto& each : stored->samples) {
    const std::string what = cat(where, ": sample ", each.sample, " of batch ", each.batch);
    out.samples.push_back({each.batch, algorithms::completion_of(each.payload, what)});
    each.payload.clear();
  }
  std::ranges::sort(out.samples, {}, [](const algorithms::FinishedSample& sample) {
    return std::pair(sample.batch, sample.completion.sample_id);
  });
  check_samples(out.samples, where, bounds);
  return out;
}

}  // namespace troupe::launch::run
