#include "launch/journal/commit_record.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::launch::journal {
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

std::string describe_change(const std::string& path, std::int64_t step, const LinesRecord& expected,
                            const std::string& found) {
  return cat(path, ": expected the checksum ", expected.xxh3_128, " that its ", expected.lines,
             " lines had when checkpoint-", step, " was saved, found ", found,
             ": a line was changed or damaged since. The run resumes from the checkpoint, which "
             "does not depend on them");
}

void describe_difference(std::vector<std::string>& out, const std::string& path, std::int64_t step,
                         const LinesRecord& expected, const KeptLines& found,
                         const std::string& missing) {
  const std::string sum = found.sum.xxh3_128();
  if (std::ssize(found.steps) != expected.lines)
    out.push_back(describe_gap(path, step, expected.lines, std::ssize(found.steps), missing));
  else if (!expected.xxh3_128.empty() && expected.xxh3_128 != sum)
    out.push_back(describe_change(path, step, expected, sum));
}

Json to_json(const LinesRecord& record) {
  return Json::Object{
      {"lines", record.lines}, {"bytes", record.bytes}, {"xxh3_128", record.xxh3_128}};
}

std::optional<LinesRecord> lines_record(const Json& journal, std::string_view name) {
  const Json* file = journal.find(name);
  if (file == nullptr || !file->is_object()) return std::nullopt;
  const auto lines = get_integer(*file, "lines", ""), bytes = get_integer(*file, "bytes", "");
  const auto sum = get_string(*file, "xxh3_128", "");
  if (!lines || !bytes || !sum) return std::nullopt;
  return LinesRecord{*lines, static_cast<std::uint64_t>(*bytes), *sum};
}

}  // namespace

Json to_json(const JournalRecord& record) {
  return Json::Object{{"metrics.jsonl", to_json(record.metrics)},
                      {"samples.jsonl", to_json(record.samples)}};
}

std::optional<JournalRecord> journal_record(const Json& journal) {
  if (!journal.is_object()) return std::nullopt;
  const auto metrics = lines_record(journal, "metrics.jsonl"),
             samples = lines_record(journal, "samples.jsonl");
  if (!metrics || !samples) return std::nullopt;
  return JournalRecord{*metrics, *samples};
}

std::optional<JournalRecord> committed_lines(const OutputFolder& folder, std::int64_t step) {
  const std::string path = folder.path_of(std::string(commit_record_name));
  std::optional<JournalRecord> out;
  for_each_line(path, [&](const Json& line, std::string_view) {
    const auto at = get_integer(line, "step", path), metrics = get_integer(line, "metrics", path),
               samples = get_integer(line, "samples", path);
    if (at && *at == step && metrics && samples)
      out = JournalRecord{{*metrics, 0, ""}, {*samples, 0, ""}};
  });
  return out;
}

std::vector<std::string> describe_gaps(const OutputFolder& folder, std::int64_t step,
                                       const std::optional<JournalRecord>& expected,
                                       const KeptLines& metrics, const KeptLines& samples) {
  const std::string metrics_path = folder.path_of("metrics.jsonl"),
                    samples_path = folder.path_of("samples.jsonl");
  std::vector<std::string> out;
  describe_damage(out, metrics_path, metrics);
  describe_damage(out, samples_path, samples);
  if (!expected || step == 0) return out;
  describe_difference(out, metrics_path, step, expected->metrics, metrics,
                      missing_steps(metrics.steps, step));
  describe_difference(out, samples_path, step, expected->samples, samples, "");
  return out;
}

}  // namespace troupe::launch::journal
