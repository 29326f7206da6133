#include "launch/journal/run_journal.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/journal/diagnostic_file.h"
#include "launch/journal/events_file.h"
#include "launch/journal/metrics_file.h"
#include "launch/journal/plot.h"
#include "launch/journal/progress.h"
#include "launch/journal/samples_file.h"
#include "launch/journal/timeline.h"

namespace troupe::launch::journal {

namespace {

double value_of(const algorithms::Metrics& metrics, std::string_view name) {
  const double* value = algorithms::find_metric(metrics, name);
  return value ? *value : std::nan("");
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string local_time(double clock) {
  const auto seconds = static_cast<std::time_t>(clock);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M:%S", &parts);
  return buffer;
}

// Between two lines of dashes of its length.
std::string validation_lines(std::int64_t step, double loss) {
  // Megatron bounds the exponent so that the perplexity stays finite.
  const std::string text = cat(" validation loss at iteration ", step, " on validation set | ",
                               formatted("lm loss value: %.6E | ", loss),
                               formatted("lm loss PPL: %.6E | ", std::exp(std::min(20.0, loss))));
  const std::string dashes(text.size() + 1, '-');
  return cat(dashes, '\n', text, '\n', dashes, '\n');
}

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
// The clock of AskRecord.
std::int64_t steady_nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
std::string four_digits(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", value);
  return buffer;
}

/// A new name in the folder. TensorBoard reads the files in the order of their names.
std::string events_name(const OutputFolder& folder) {
  for (auto second = static_cast<std::int64_t>(wall_time());; ++second) {
    std::string name = cat("events.out.tfevents.", second, ".troupe");
    if (!folder.contains(name)) return name;
  }
}

/// "eval/loss 3.47, eval/reward 0.62", or "". Lengths and spreads are in metrics.jsonl only.
std::string evaluation_text(const algorithms::Metrics& metrics) {
  std::string out;
  for (const auto& [name, value] : metrics)
    if (name.starts_with("eval/") && !name.starts_with("eval/completions/") &&
        !name.ends_with("/std"))
      out += cat(out.empty() ? "" : ", ", name, ' ', four_digits(value));
  return out;
}

/// Steps of metrics.jsonl, as they were recorded.
void for_each_step(const std::string& path,
                   const std::function<void(std::int64_t, const algorithms::Metrics&)>& visit) {
  for_each_line(path, [&](const Json& line, std::string_view) {
    algorithms::Metrics metrics;
    for (const auto& [name, value] : line.object())
      if (name != "step")
        metrics.emplace_back(name, value.is_number() ? value.number() : std::nan(""));
    visit(get_integer(line, "step", path).value_or(0), metrics);
  });
}

}  // namespace

/// Metrics of methods and their names in the lines of MindSpeed-LLM 2.2.0 (DPO; ORM and PRM).
constexpr std::array<std::array<const char*, 2>, 2> beside_loss{
    {{"rewards/accuracies", "rewards/accuracies"}, {"accuracy", "acc"}}};

std::string MegatronLog::step(std::int64_t step, const algorithms::Metrics& metrics, double seconds,
                              double flops, double clock) {
  std::string out;
  if (step > 0) {
    ++steps_;
    loss_ += value_of(metrics, "loss");
    seconds_ += seconds;
    flops_ += flops;
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += value_of(metrics, beside_loss[i][0]);
  }
  if (steps_ > 0 && options_.every > 0 && step % options_.every == 0) {
    out = line(step, metrics, clock);
    steps_ = 0;
    loss_ = seconds_ = flops_ = 0;
    sums_ = {};
  }
  const double eval = value_of(metrics, "eval/loss");
  return std::isnan(eval) ? out : out + validation_lines(step, eval);
}

std::string MegatronLog::line(std::int64_t step, const algorithms::Metrics& metrics, double clock) {
  const auto count = static_cast<double>(steps_);
  const auto whole = [](std::int64_t value) { return static_cast<long long>(value); };
  const std::int64_t consumed = options_.consumed(step);
  const double* scale = algorithms::find_metric(metrics, "loss_scale");
  const double* skipped = algorithms::find_metric(metrics, "skipped");
  const double before = std::exchange(skipped_, skipped ? *skipped : 0);
  std::string throughput, others;
  if (options_.throughput)
    throughput = formatted(" throughput per GPU (TFLOP/s/GPU): %.1f |",
                           seconds_ > 0 ? 1e-12 * flops_ / seconds_ / options_.ranks : 0.0);
  for (std::size_t i = 0; i < sums_.size(); ++i)
    if (!std::isnan(sums_[i]))  // the method has the metric
      others += formatted(" %s: %.6E |", beside_loss[i][1], sums_[i] / count);
  return cat(
      " [", local_time(clock), "]",
      formatted(" iteration %8lld/%8lld |", whole(step), whole(total_)),
      formatted(" consumed samples: %12lld |", whole(consumed)),
      formatted(" elapsed time per iteration (ms): %.1f |", 1000 * seconds_ / count), throughput,
      formatted(" learning rate: %.6E |", options_.learning_rate(total_, step + 1)),
      formatted(" global batch size: %5lld |", whole(consumed - options_.consumed(step - 1))),
      formatted(" lm loss: %.6E |", loss_ / count), others,
      formatted(" loss scale: %.1f |", scale ? *scale : 1.0),
      formatted(" grad norm: %.3f |", value_of(metrics, "grad_norm")),
      formatted(" number of skipped iterations: %3.0f |", skipped_ - before),
      " number of nan iterations:   0 |\n");
}

struct RunJournal::Files {
  LineFile metrics;
  DiagnosticFile timings, events;
  Timeline timeline;
  Result<> texts_rewritten;
  std::optional<LineFile> samples;  // created with the first sample
  std::optional<DiagnosticFile> texts;
  Result<> loads_truncated;
  std::optional<DiagnosticFile> loads;  // created with the first ones
};

RunJournal::RunJournal(OutputFolder folder, std::string title, std::string method,
                       std::int64_t log_every)
    : folder_(std::move(folder)),
      title_(std::move(title)),
      progress_(std::make_unique<Progress>(stderr, terminal::stderr_options(),
                                           log_level() > LogLevel::info ? 0 : log_every,
                                           terminal::steady_seconds)),
      health_(std::move(method)) {
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
  end(RunEnd::failed);  // by an exception, unless it has ended before
  if (!plotted_) plot();
}

void RunJournal::open_files(std::int64_t done_steps) {
  // A run that starts over also repeats its evaluation of step 0.
  const std::int64_t last = done_steps > 0 ? done_steps : -1;
  const auto truncate = [&](const std::string& name, bool once) {
    return value_or_throw(truncate_after(folder_, name, last, once));
  };
  const auto open = [&](const std::string& name) {
    return value_or_throw(LineFile::open(folder_, name, OnFullDisk::wait));
  };
  KeptLines metrics = truncate("metrics.jsonl", true), samples = truncate("samples.jsonl", false);
  const auto expected = expected_ ? expected_ : committed_lines(folder_, done_steps);
  for (const std::string& gap : describe_gaps(folder_, done_steps, expected, metrics, samples))
    log_warning(gap);
  metrics_lines_ = std::ssize(metrics.steps);
  samples_lines_ = std::ssize(samples.steps);
  metrics_sum_ = std::move(metrics.sum);
  samples_sum_ = std::move(samples.sum);
  const auto timings = truncate_timings_after(folder_, "timings.jsonl", last);
  wall_before_ = timings.value_or(0);
  const auto loads = truncate_after(folder_, "experts.jsonl", last, false);
  files_ = std::make_unique<Files>(Files{
      .metrics = open("metrics.jsonl"),
      .timings = DiagnosticFile(folder_, "timings.jsonl", timings ? Result<>() : fail(timings)),
      .events = DiagnosticFile(folder_, events_name(folder_), {}),
      .timeline = Timeline(folder_, done_steps, timeline_bytes_),
      .texts_rewritten = rewrite_sample_texts(folder_),
      .samples = {},
      .texts = {},
      .loads_truncated = loads ? Result<>() : fail(loads),
      .loads = {}});
}

void RunJournal::begin(std::int64_t total_steps, std::int64_t done_steps) {
  open_files(done_steps);
  for_each_step(folder_.path_of("metrics.jsonl"),
                [this](std::int64_t step, const auto& of_step) { health_.check(step, of_step); });
  files_->timings.append(timings_header(wall_time(), total_steps, done_steps, measured_));
  files_->events.append(tf_record(version_event(wall_time())));
  files_->events.append(tf_record(restart_event(wall_time(), done_steps + 1)));
  plotted_ = false;
  ended_ = false;
  if (on_step_) on_step_(done_steps + 1);
  if (megatron_) megatron_->begin(total_steps);
  began_ = terminal::steady_seconds();
  times_.begin(steady_nanoseconds_now());
  async_.begin(steady_nanoseconds_now());
  const std::lock_guard lock(terminal);
  progress_->begin(total_steps, done_steps);
}

// Writes the line of timings.jsonl and returns its metrics.
algorithms::Metrics RunJournal::end_step_times(std::int64_t step,
                                               const std::vector<std::string>& warnings) {
  const std::int64_t now = steady_nanoseconds_now();
  seconds_ = times_.end(now);
  auto metrics = timing_metrics(seconds_, work_, measured_);
  const auto async = async_.end(now);
  metrics.insert(metrics.end(), async.begin(), async.end());
  if (more_times_) {
    const auto more = more_times_();
    metrics.insert(metrics.end(), more.begin(), more.end());
  }
  const double wall = wall_before_ + terminal::steady_seconds() - began_;
  files_->timings.append(timings_line(step, wall_time(), wall, metrics, warnings));
  return metrics;
}

void RunJournal::print_as_megatron(std::int64_t step, const algorithms::Metrics& metrics,
                                   const StepSpeed& speed) {
  const std::string lines =
      megatron_->step(step, metrics, speed.seconds, work_.model_flops, wall_time());
  if (lines.empty()) return;
  hide_progress();
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
  show_progress();
}

void RunJournal::log_findings(std::int64_t step, const algorithms::Metrics& metrics,
                              const std::vector<std::string>& warnings) {
  if (const std::string evaluation = evaluation_text(metrics); !evaluation.empty())
    log_info(cat("step ", step, ": ", evaluation));
  for (const std::string& warning : warnings) log_warning(warning);
}

void RunJournal::end(RunEnd how) {
  if (!files_ || ended_) return;
  ended_ = true;
  files_->timings.append(timings_end(wall_time(), how));
}

void RunJournal::record(std::int64_t step, const algorithms::Metrics& metrics) {
  const std::string line = metrics_line(step, metrics);
  value_or_throw(files_->metrics.append(line));
  metrics_sum_.add(line);
  ++metrics_lines_;
  plotted_ = false;
  auto all = metrics;
  const auto warnings = health_.check(step, metrics);
  const auto timing = end_step_times(step, warnings);
  all.insert(all.end(), timing.begin(), timing.end());
  files_->events.append(tf_record(metrics_event(wall_time(), step, all)));
  files_->timeline.record(step);
  if (on_step_ && step > 0) on_step_(step + 1);
  const StepSpeed speed{work_.processed.tokens, seconds_.all -
                                                    seconds_.parts[index_of(StepPart::eval)] -
                                                    seconds_.parts[index_of(StepPart::save)]};
  if (megatron_) print_as_megatron(step, metrics, speed);
  work_ = {};
  {
    const std::lock_guard lock(terminal);
    progress_->step(step, metrics, speed);
  }
  log_findings(step, metrics, warnings);
}

void RunJournal::enter(algorithms::Activity activity) {
  times_.enter(activity, steady_nanoseconds_now());
}

void RunJournal::passed(const algorithms::ModelPass& pass) {
  if (!measured_.flops) return;
  const auto [model, hardware] = measured_.flops(pass);
  work_.model_flops += model;
  work_.hardware_flops += hardware;
}

void RunJournal::overlap(const algorithms::Overlap& now) {
  async_.changed(now, steady_nanoseconds_now());
}

void RunJournal::answered(const actors::AskRecord& ask) {
  if (!files_) return;
  files_->timeline.answered(ask);
  times_.answered(ask);
}

void RunJournal::sample(std::int64_t step, const algorithms::Sample& given) {
  algorithms::Sample sample = given;
  if (pieces_ && !sample.sampled.empty()) sample.pieces = pieces_(sample.ids, sample.sampled);
  if (!files_->samples) {
    files_->samples = value_or_throw(LineFile::open(folder_, "samples.jsonl", OnFullDisk::wait));
    files_->texts.emplace(folder_, "samples.txt", files_->texts_rewritten);
  }
  const std::string line = sample_line(step, sample);
  value_or_throw(files_->samples->append(line));
  samples_sum_.add(line);
  ++samples_lines_;
  files_->texts->append(sample_text(step, sample));
}

void RunJournal::loads(std::int64_t step, const actors::protocol::ExpertLoads& of_step) {
  if (!files_->loads) files_->loads.emplace(folder_, "experts.jsonl", files_->loads_truncated);
  const std::size_t experts = of_step.counts.size() / of_step.layers.size();
  for (std::size_t i = 0; i < of_step.layers.size(); ++i) {
    Json line;
    const auto own = std::span(of_step.counts).subspan(i * experts, experts);
    line.set("step", step)
        .set("layer", of_step.layers[i])
        .set("tokens", Json::Array(own.begin(), own.end()));
    files_->loads->append(line.dump() + "\n");
  }
}

// The order matters: what a checkpoint relies on is durable before the checkpoint can be.
Json RunJournal::commit(std::int64_t) {
  value_or_throw(files_->metrics.sync());
  if (files_->samples) value_or_throw(files_->samples->sync());
  value_or_throw(folder_.sync());
  return to_json(JournalRecord{{metrics_lines_, metrics_sum_.bytes(), metrics_sum_.xxh3_128()},
                               {samples_lines_, samples_sum_.bytes(), samples_sum_.xxh3_128()}});
}

void RunJournal::progress(std::string_view text, std::int64_t done, std::int64_t total) {
  const std::lock_guard lock(terminal);
  progress_->status(text, done, total);
}

void RunJournal::plot() {
  plotted_ = true;
  if (auto drawn = plot_run(folder_, title_); !drawn) warn_of_abandoned_file(drawn.error());
  if (!files_) return;
  if (auto drawn = files_->timeline.draw(); !drawn) warn_of_abandoned_file(drawn.error());
}

}  // namespace troupe::launch::journal
