#include "launch/commands/dry_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <vector>

#include "engine/base/environment/available_memory.h"
#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/base/processes/child_process.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/blocked_signals.h"
#include "launch/commands/explain/preview_text.h"
#include "launch/memory/memory.h"
#include "launch/recipes/recipes.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::commands {

namespace {

namespace fs = std::filesystem;

// Creates a folder on the disk on which the run's output will be.
std::string make_folder(const std::string& output) {
  std::error_code failed;
  fs::path parent = fs::absolute(output, failed).lexically_normal().parent_path();
  while (!fs::exists(parent, failed) && parent != parent.parent_path())
    parent = parent.parent_path();
  std::string folder = (parent / ".troupe-dry-run-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    throw Failure({Errc::io, cat(parent.string(),
                                 ": cannot create a temporary folder: ", std::strerror(errno))});
  return folder;
}

// Waits for the child. Signals from a terminal reach the child as well; others are passed on.
int wait_for(pid_t child, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child && WIFEXITED(status)) return WEXITSTATUS(status);
    if (ended < 0) return run::exit_internal;
    if (ended == child) {
      std::cerr << "troupe: the dry run " << describe_exit(status) << '\n';
      return 128 + WTERMSIG(status);
    }
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(child, signal);
  }
}

struct ActorCall {
  std::string message;
  double asked = 0, began = 0, ended = 0;
};

// The calls between actors of timeline.jsonl, in the order in which they were made.
std::vector<ActorCall> read_calls(const std::string& folder) {
  std::vector<ActorCall> calls;
  const auto text = read_file(folder + "/timeline.jsonl");
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto json = parse_json(line, "timeline.jsonl");
    if (!json || !json->find("message") || !json->find("ended")) continue;
    calls.push_back({json->find("message")->string(), json->find("asked")->number(),
                     json->find("began")->number(), json->find("ended")->number()});
  }
  std::ranges::stable_sort(calls, {}, &ActorCall::asked);
  return calls;
}

// From the sampling of the step, or the first call, to the end of the last update. An evaluation
// before the first step and one after the last are no part of it.
double step_seconds(const std::vector<ActorCall>& calls) {
  const auto update = std::ranges::find(calls, "train_step", &ActorCall::message);
  auto begin = calls.begin();
  for (auto at = calls.begin(); at != update; ++at)
    if (at->message == "generate") begin = at;
  const auto sends_weights = [](const ActorCall& call) {
    return call.message == "publish" || call.message.ends_with("_weights");
  };
  while (begin != calls.begin() && sends_weights(*std::prev(begin))) --begin;
  double end = begin == calls.end() ? 0 : begin->asked;
  for (const ActorCall& call : calls)
    if (call.message == "train_step") end = std::max(end, call.ended);
  return begin == calls.end() ? 0 : end - begin->asked;
}

std::string calls_text(const std::vector<ActorCall>& calls) {
  std::vector<std::string> messages;
  for (const ActorCall& call : calls)
    if (std::ranges::find(messages, call.message) == messages.end())
      messages.push_back(call.message);
  std::string text;
  for (const std::string& message : messages) {
    std::int64_t count = 0;
    double seconds = 0;
    for (const ActorCall& call : calls) {
      if (call.message != message) continue;
      ++count;
      seconds += call.ended - call.began;
    }
    text += labelled_line(
        message, cat(count, count == 1 ? " call, " : " calls, ", to_text(seconds, 3), " s"));
  }
  return text;
}

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->is_regular_file(failed) && !at->is_symlink(failed)) bytes += at->file_size(failed);
  return bytes;
}

void print_report(const config::RunConfig& config, const config::RunConfig& one) {
  const std::vector<ActorCall> calls = read_calls(one.output);
  std::cout << "Dry run of " << config.algorithm << ": one batch of rows, nothing is kept\n"
            << calls_text(calls);
  std::uint64_t saved = 0;  // with the critic and a reference that moves
  for (const char* part : {"", "/critic", "/reference"})
    saved += bytes_in(cat(one.output, part, "/checkpoint-", one.train.steps));
  std::cout << labelled_line("checkpoint", memory::bytes_text(saved));
  std::cout << labelled_line("peak memory", memory::bytes_text(peak_resident_memory()));
  const double step = step_seconds(calls) / static_cast<double>(one.train.steps);
  std::cout << labelled_line(
      "time per step", cat("about ", to_text(step, 3), " s, without checkpoint and evaluation"));
  if (config.train.steps > 0)
    std::cout << labelled_line(
        "time of the run",
        cat("about ", duration_text(step * static_cast<double>(config.train.steps)), " for ",
            config.train.steps, " steps"));
}

int run_step(const config::RunConfig& config, const std::string& folder,
             const std::function<int(const config::RunConfig&)>& run) {
  const config::RunConfig one = one_step_of(config, folder);
  const int code = run(one);
  if (code == 0) print_report(config, one);
  return code;
}

void remove_warmup(config::ScheduleConfig& optimizer) {
  optimizer.schedule = engine::optim::ScheduleKind::constant;
  optimizer.warmup_steps = 0;
  optimizer.decay_steps = 0;
  optimizer.warmup_ratio = optimizer.min_lr_ratio = 0;
}

}  // namespace

config::RunConfig one_step_of(const config::RunConfig& config, const std::string& output) {
  config::RunConfig one = config;
  one.output = output;
  one.resume = config::resume_auto;
  one.serve.listen.clear();
  one.train.steps = recipes::recipe_of(config).row_use(config).updates;
  one.train.save_every = 0;
  remove_warmup(one.train);
  remove_warmup(one.critic);
  one.critic.warmup_rounds = 0;
  one.grpo.dynamic.on = false;
  one.profile.enabled = false;
  return one;
}

int dry_run(const config::RunConfig& config,
            const std::function<int(const config::RunConfig&)>& run) {
  if (config.rollout.source == config::SampleSource::service)
    throw Failure({Errc::usage,
                   "--dry-run: with rollout.source service other programs make the samples; start "
                   "the run, which waits for them"});
  // Blocked before the folder exists: a signal between the two would leave the folder behind.
  const BlockedSignals blocked{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  // A child that ended must stay to be waited for, also if the caller ignored SIGCHLD.
  std::signal(SIGCHLD, SIG_DFL);
  const std::string folder = make_folder(config.output);
  std::cout.flush();
  const pid_t child = fork_with_death_signal(SIGTERM);
  if (child == 0) {
    blocked.restore();
    return run_step(config, folder, run);
  }
  const int start_error = errno;
  const int code = child < 0 ? -1 : wait_for(child, blocked.signals());
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (child < 0)
    throw Failure({Errc::io, cat("cannot start a process: ", std::strerror(start_error))});
  if (failed) throw Failure({Errc::io, cat(folder, ": cannot be removed: ", failed.message())});
  return code;
}

}  // namespace troupe::launch::commands
