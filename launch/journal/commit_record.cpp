#include "launch/journal/commit_record.h"

#include <algorithm>

#include "engine/base/text.h"

namespace troupe::launch {
namespace {

// "steps 4 to 10, 12" of those from 1 to `last` that are not among `steps`, which ascend.
std::string missing_steps(const std::vector<std::int64_t>& steps, std::int64_t last) {
  std::vector<std::string> ranges;
  std::int64_t next = 1;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    if (from <= to) ranges.push_back(from == to ? cat(from) : cat(from, " to ", to));
  };
  for (const std::int64_t step : steps) {
    add(next, step - 1);
    next = std::max(next, step + 1);
  }
  add(next, last);
  constexpr std::size_t shown = 8;
  if (ranges.size() > shown) {
    ranges.resize(shown);
    ranges.emplace_back("...");
  }
  return ranges.empty() ? "" : cat(" (without steps ", join(ranges, ", "), ")");
}

void describe_damage(std::vector<std::string>& out, const std::string& path,
                     const KeptLines& kept) {
  if (kept.damaged_bytes == 0) return;
  out.push_back(cat(path, ": removed ", kept.damaged_bytes, " bytes",
                    kept.zero_bytes > 0 ? cat(" (", kept.zero_bytes, " of them zero)") : "",
                    " that are no complete line: a power failure or a full disk leaves them"));
}

std::string describe_gap(const std::string& path, std::int64_t step, std::int64_t expected,
                         std::int64_t found, const std::string& missing) {
  return cat(path, ": expected the ", expected, " lines that it had when checkpoint-", step,
             " was saved, found ", found, missing,
             ": they were lost in a power failure, or removed. The run resumes from the "
             "checkpoint, which is complete; the missing lines are not computed again");
}

}  // namespace

std::string commit_line(std::int64_t step, const JournalLines& lines) {
  Json line;
  line.set("step", step).set("metrics", lines.metrics).set("samples", lines.samples);
  return line.dump() + "\n";
}

std::optional<JournalLines> committed_lines(const OutputFolder& folder, std::int64_t step) {
  const std::string path = folder.path_of(std::string(commit_record_name));
  std::optional<JournalLines> out;
  for_each_line(path, [&](const Json& line, std::string_view) {
    const auto at = get_integer(line, "step", path), metrics = get_integer(line, "metrics", path),
               samples = get_integer(line, "samples", path);
    if (at && *at == step && metrics && samples) out = JournalLines{*metrics, *samples};
  });
  return out;
}

std::vector<std::string> describe_gaps(const OutputFolder& folder, std::int64_t step,
                                       const KeptLines& metrics, const KeptLines& samples) {
  const std::string metrics_path = folder.path_of("metrics.jsonl"),
                    samples_path = folder.path_of("samples.jsonl");
  std::vector<std::string> out;
  describe_damage(out, metrics_path, metrics);
  describe_damage(out, samples_path, samples);
  const auto expected = step > 0 ? committed_lines(folder, step) : std::nullopt;
  if (!expected) return out;
  const auto found = std::ssize(metrics.steps), found_samples = std::ssize(samples.steps);
  if (found != expected->metrics)
    out.push_back(describe_gap(metrics_path, step, expected->metrics, found,
                               missing_steps(metrics.steps, step)));
  if (found_samples != expected->samples)
    out.push_back(describe_gap(samples_path, step, expected->samples, found_samples, ""));
  return out;
}

}  // namespace troupe::launch
