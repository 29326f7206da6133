#include "launch/journal/run_journal.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <optional>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/journal/events_file.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/plot.h"
#include "launch/journal/progress.h"
#include "launch/journal/samples_file.h"
#include "launch/journal/timeline.h"

namespace troupe::launch {

namespace {

// `terminal` is held by a log line from its first hook to its second, or by the progress line.
// Hooks are plain functions, so they use a global; they stay installed after the journal is
// destroyed, because a log line may be between them.
std::mutex terminal;
Progress* on_terminal = nullptr;
void hide_progress() {
  terminal.lock();
  if (on_terminal) on_terminal->hide();
}
void show_progress() {
  if (on_terminal) on_terminal->show();
  terminal.unlock();
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
double steady_time() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A new path in the folder. TensorBoard reads the files in the order of their names.
std::string events_path(const std::string& folder) {
  for (auto second = static_cast<std::int64_t>(wall_time());; ++second) {
    std::string path = cat(folder, "/events.out.tfevents.", second, ".troupe");
    if (::access(path.c_str(), F_OK) != 0) return path;
  }
}

}  // namespace

struct RunJournal::Files {
  LineFile metrics, events;
  Timeline timeline;
  std::optional<LineFile> samples, texts;  // created with the first sample
};

RunJournal::RunJournal(std::string folder, std::string title, std::int64_t log_every)
    : folder_(std::move(folder)),
      title_(std::move(title)),
      progress_(std::make_unique<Progress>(stderr, stderr_options(log_every), steady_time)) {
  {
    const std::lock_guard lock(terminal);
    on_terminal = progress_.get();
  }
  set_log_hooks(hide_progress, show_progress);
}

RunJournal::~RunJournal() {
  {
    const std::lock_guard lock(terminal);
    on_terminal = nullptr;
    progress_->finish();
  }
  if (files_) plot();
}

void RunJournal::begin(std::int64_t total_steps, std::int64_t done_steps) {
  // A run that starts over also repeats its evaluation of step 0.
  const std::int64_t last = done_steps > 0 ? done_steps : -1;
  value_or_throw(truncate_after(folder_ + "/metrics.jsonl", last, true));
  value_or_throw(truncate_samples_after(folder_, done_steps));
  const auto open = [&](const std::string& path) { return value_or_throw(LineFile::open(path)); };
  files_ = std::make_unique<Files>(Files{open(folder_ + "/metrics.jsonl"),
                                         open(events_path(folder_)),
                                         Timeline(folder_, done_steps),
                                         {},
                                         {}});
  value_or_throw(files_->events.append(tf_record(version_event(wall_time()))));
  value_or_throw(files_->events.append(tf_record(restart_event(wall_time(), done_steps + 1))));
  if (on_step_) on_step_(done_steps + 1);
  const std::lock_guard lock(terminal);
  progress_->begin(total_steps, done_steps);
}

void RunJournal::record(std::int64_t step, const algorithms::Metrics& metrics) {
  value_or_throw(files_->metrics.append(metrics_line(step, metrics)));
  value_or_throw(files_->events.append(tf_record(metrics_event(wall_time(), step, metrics))));
  files_->timeline.record(step);
  if (on_step_ && step > 0) on_step_(step + 1);
  const std::lock_guard lock(terminal);
  progress_->step(step, metrics);
}

void RunJournal::answered(const actors::AskRecord& ask) {
  if (files_) files_->timeline.answered(ask);
}

void RunJournal::sample(std::int64_t step, const algorithms::Sample& sample) {
  if (!files_->samples) {
    files_->samples = value_or_throw(LineFile::open(folder_ + "/samples.jsonl"));
    files_->texts = value_or_throw(LineFile::open(folder_ + "/samples.txt"));
  }
  value_or_throw(files_->samples->append(sample_line(step, sample)));
  value_or_throw(files_->texts->append(sample_text(step, sample)));
}

void RunJournal::status(std::string_view text) {
  const std::lock_guard lock(terminal);
  progress_->status(text);
}

void RunJournal::plot() {
  if (auto drawn = plot_run(folder_, title_); !drawn) log_warning(drawn.error().what);
  if (!files_) return;
  if (auto drawn = files_->timeline.draw(); !drawn) log_warning(drawn.error().what);
}

}  // namespace troupe::launch
