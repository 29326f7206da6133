#include "tests/system/disturbed_runs.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

// Of a run: event files have the time in their names, and a run that starts again adds one. A run
// that was complete does not draw its timeline again.
std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string();
        !name.starts_with("events.out.tfevents.") && name != "timeline.svg")
      names.insert(name);
  return names;
}

}  // namespace

std::size_t wanted_count(const char* name, std::size_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

DisturbedRuns::~DisturbedRuns() {
  if (!HasFailure()) std::filesystem::remove(log());
}

std::string DisturbedRuns::run_of(const std::string& method, const std::string& output) const {
  const bool ranks = method == "sft_ranks";
  return arguments(
      ranks ? "sft" : method, output,
      cat("--set train.steps=12 --set train.save_every=2 --set train.warmup_steps=3",
          ranks ? " --set parallel.tp=2 --set parallel.dp=2 --set parallel.zero=1" : "",
          method == "grpo" ? " --set rollout.top_p=0.8 --set rollout.min_new_tokens=2" : ""));
}

std::string DisturbedRuns::recorder(const std::string& settings) const {
  return cat("env LD_PRELOAD='" TROUPE_FILE_RECORDER "' FILE_RECORDER_ROOT='",
             fs::canonical(folder_).string(), "' ", settings, ' ');
}

std::vector<FileOperation> DisturbedRuns::record(const std::string& method,
                                                 const std::string& output) const {
  const std::string recording = folder_ + ".recording";
  fs::remove(recording);
  const std::string line = cat(recorder(cat("FILE_RECORDER_LOG='", recording, "'")),
                               command(run_of(method, output)), " >>'", log(), "' 2>&1 </dev/null");
  EXPECT_EQ(std::system(line.c_str()), 0) << read_file(log()).value_or("");
  auto operations = read_recording(recording);
  fs::remove(recording);
  EXPECT_GT(operations.size(), 200u);
  return operations;
}

std::vector<std::string> DisturbedRuns::leftovers(const std::string& output) const {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(path(output)))
    if (entry.path().filename().string().find(".tmp-") != std::string::npos)
      out.push_back(entry.path().string());
  return out;
}

void DisturbedRuns::expect_undisturbed(const std::string& whole, const std::string& other) const {
  expect_same_bytes(whole, other);
  for (const char* file : {"samples.jsonl", "samples.txt"})
    EXPECT_EQ(read_file(path(cat(whole, "/", file))).value_or("missing"),
              read_file(path(cat(other, "/", file))).value_or("missing"))
        << file;
  EXPECT_EQ(names_in(path(whole)), names_in(path(other)));
  if (fs::exists(path(whole + "/critic"))) {
    EXPECT_EQ(names_in(path(whole + "/critic")), names_in(path(other + "/critic")));
  }
  EXPECT_EQ(leftovers(other), std::vector<std::string>());
}

}  // namespace troupe::test
