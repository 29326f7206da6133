#include "launch/profile/run_profile.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "engine/base/log/log.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/ops/profiled_device.h"
#include "engine/parallel/profiled_communicator.h"
#include "launch/profile/report.h"

namespace troupe::launch::profile {
namespace {

std::int64_t processor_nanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

RecorderOptions options_of(const config::ProfileConfig& p) {
  return {.step_start = p.step_start,
          .step_end = p.step_end,
          .stack = p.with_stack,
          .shapes = p.record_shapes};
}

OutputFolder open_folder(const config::RunConfig& config) {
  const std::string& chosen = config.profile.save_path;
  if (chosen.empty()) {
    const auto output = value_or_throw(OutputFolder::open(config.output, config.output_mode));
    return value_or_throw(output.folder("profile"));
  }
  std::error_code failed;
  std::filesystem::create_directories(chosen, failed);
  if (failed)
    throw Failure(
        {Errc::io, cat("profile.save_path: ", chosen, ": cannot create: ", failed.message())});
  return value_or_throw(OutputFolder::open(chosen, config.output_mode));
}

}  // namespace

Profiler::Profiler(const config::RunConfig& config, const StepBoard& board, RecordedRank of,
                   OutputFolder folder, std::string files)
    : of_(std::move(of)),
      folder_(std::move(folder)),
      files_(std::move(files)),
      bf16_(config.train.dtype == engine::ops::Precision::bf16),
      wants_counts_(config.profile.level == config::ProfileLevel::level2) {
  RecorderSources sources{.step = [&board] { return board.step(); },
                          .now = steady_nanoseconds,
                          .ceiling = [this] { return measure(); }};
  if (config.profile.with_memory) sources.memory = [this] { return memory(); };
  if (config.profile.with_cpu) sources.busy = processor_nanoseconds;
  if (wants_counts_ && Counters::open())
    sources.counts = [this] { return counters_ ? counters_->read() : Counts(); };
  wants_counts_ = static_cast<bool>(sources.counts);
  recorder_.emplace(options_of(config.profile), std::move(sources),
                    [this](const Recorder& recorder) { write(recorder); });
}

Profiler::~Profiler() {
  finish();
}

std::unique_ptr<engine::ops::Device> Profiler::watch(std::unique_ptr<engine::ops::Device> device) {
  const std::shared_ptr<engine::ops::Device> inner = std::move(device);
  devices_.push_back(inner);
  return engine::ops::make_profiled_device(inner, *recorder_);
}

std::unique_ptr<engine::parallel::Communicator> Profiler::watch(
    std::unique_ptr<engine::parallel::Communicator> communicator) {
  return engine::parallel::make_profiled(std::move(communicator), *recorder_);
}

// Called when the threads of the device exist.
engine::ops::Ceiling Profiler::measure() {
  if (wants_counts_) {
    auto opened = Counters::open();
    if (opened) counters_ = std::move(*opened);
  }
  const auto device = devices_.empty() ? nullptr : devices_.back().lock();
  return device ? engine::ops::measure_ceiling(*device, bf16_) : engine::ops::Ceiling();
}

std::int64_t Profiler::memory() const {
  std::int64_t bytes = 0;
  for (const auto& each : devices_)
    if (const auto device = each.lock()) bytes += static_cast<std::int64_t>(device->memory().now);
  return bytes;
}

void Profiler::write(const Recorder& recorder) {
  table_ = table_text(recorder, of_);
  const std::pair<const char*, std::string> files[] = {{"trace.json", trace_json(recorder, of_)},
                                                       {"operators.csv", table_csv(recorder)},
                                                       {"operators.txt", table_}};
  for (const auto& [name, content] : files)
    if (auto written = folder_.replace(files_ + name, content); !written)
      log_warning(cat("profile: ", written.error().what));
  counters_.reset();
}

std::string Profiler::finish() {
  recorder_->finish();
  return table_;
}

std::unique_ptr<engine::ops::Device> watched(Profiler* by,
                                             std::unique_ptr<engine::ops::Device> device) {
  return by ? by->watch(std::move(device)) : std::move(device);
}

RunProfile::RunProfile(const config::RunConfig& config, std::string node, bool leads)
    : config_(config), node_(std::move(node)) {
  if (!config_.profile.enabled) return;
  folder_ = open_folder(config_);
  const std::string board = config_.output + "/.profile_steps";
  board_.emplace(value_or_throw(leads ? StepBoard::create(board) : StepBoard::open(board)));
  if (config_.profile.level != config::ProfileLevel::level2 || !leads) return;
  if (const auto counters = Counters::open(); !counters)
    log_warning(cat("profile.level level2: ", counters.error().what, "; using level1"));
}

RunProfile::~RunProfile() {
  if (!board_) return;
  const auto& chosen = config_.profile.ranks;
  const auto speaker = ranks_.find(chosen.front() < 0 ? 0 : std::ranges::min(chosen));
  if (speaker == ranks_.end()) return;
  const std::string table = speaker->second->finish();
  if (table.empty())
    log_warning(cat("profile: the run ended before step ", config_.profile.step_start,
                    ", so nothing was profiled; lower profile.step_start"));
  else
    std::fprintf(stderr, "%s(files: %s)\n", table.c_str(), for_terminal(folder_->path()).c_str());
}

void RunProfile::at_step(std::int64_t step) {
  if (board_) board_->publish(step);
}

bool RunProfile::chosen(int rank) const {
  const auto& ranks = config_.profile.ranks;
  return ranks.front() < 0 || std::ranges::find(ranks, rank) != ranks.end();
}

Profiler* RunProfile::rank(int rank) {
  if (!board_ || !chosen(rank)) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& profiler = ranks_[rank];
  if (!profiler) {
    const std::string name = cat(node_, node_.empty() ? "" : " ", "rank ", rank);
    const std::string files = cat(node_, node_.empty() ? "" : ".", "rank", rank, ".");
    profiler = std::make_unique<Profiler>(
        config_, *board_, RecordedRank{name, rank, board_->origin()}, *folder_, files);
  }
  return profiler.get();
}

engine::parallel::Mesh RunProfile::watched(engine::parallel::Mesh given) {
  if (!board_ || config_.profile.level == config::ProfileLevel::level0) return given;
  const int place = given.world().rank();
  auto world = given.world().split(0, place);
  Profiler* profiler = rank(place);
  return value_or_throw(engine::parallel::Mesh::create(
      profiler ? profiler->watch(std::move(world)) : std::move(world), given.grid()));
}

}  // namespace troupe::launch::profile
