#include "launch/cluster/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread_with_blocked_signals.h"
#include "launch/run/exit_code.h"

namespace troupe::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string clock_of(std::time_t when) {
  std::tm local{};
  std::array<char, 16> text{};
  ::localtime_r(&when, &local);
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

std::string one_of(const Fallen& f) {
  const std::string words =
      f.last_words.empty() ? "it said nothing" : cat("its last words: ", quote(f.last_words, 600));
  return cat(f.node, " (process ", f.pid, ") ", f.how, " at ", clock_of(f.when), ", ", words, " (",
             f.log, ")");
}

}  // namespace

std::string sentence_of(const std::vector<Fallen>& fallen, const std::string& output) {
  std::vector<std::string> each;
  for (const Fallen& one : fallen) each.push_back(one_of(one));
  std::error_code none;
  const auto latest = std::filesystem::read_symlink(output + "/latest", none);
  const std::string next = none ? "no checkpoint is there yet, the same command starts the run anew"
                                : cat("the same command goes on from ", latest.string());
  return cat(join(each, "; and "), ". All processes of the run have ended; ", next);
}

Crew::Crew(CrewOptions options)
    : options_(std::move(options)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::error_code failed;
  std::filesystem::create_directories(options_.output + "/logs", failed);
  if (failed)
    throw Failure({Errc::io, cat(options_.output, "/logs: cannot create: ", failed.message())});
  take_in_orphans();
}

void Crew::start(const std::string& node, const std::vector<std::string>& command,
                 std::string_view line) {
  ChildLog log(node, cat(options_.output, "/logs/", node, ".log"));
  auto child = value_or_throw(Child::start(command));
  auto member =
      std::make_unique<Member>(Member{node, std::move(child), std::move(log), true, false, {}});
  // One that died before it could listen is told by its death.
  if (auto told = member->child.tell(line); !told && told.error().code != Errc::closed)
    throw Failure(told.error());
  const std::lock_guard lock(mutex_);  // those that came first may be lost already
  members_.push_back(std::move(member));
  ++alive_;
}

void Crew::watch() {
  watcher_ = thread_with_blocked_signals("troupe/crew", [this] { watch_loop(); });
}

void Crew::lost(const std::string& node, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    for (auto& member : members_)
      if (member->node == node && member->alive) member->silent = why;
    if (!first_silence_) first_silence_ = steady_clock::now();
  }
  changed_.notify_all();
  ::eventfd_write(wake_.get(), 1);
}

bool Crew::fallen_within(milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [this] { return first_death_ || first_silence_; }))
    return false;
  return changed_.wait_for(lock, options_.silence + options_.together + options_.patience,
                           [this] { return told_.has_value(); });
}

void Crew::watch_loop() {
  for (;;) {
    std::vector<Member*> printed, ended;
    wait_for_news(printed, ended);
    for (Member* member : printed) listen(*member);
    for (Member* member : ended) listen(*member), bury(*member);
    after_a_death();
    const std::lock_guard lock(mutex_);
    if (done_) break;
  }
  for (auto& member : members_) listen(*member), member->log.finish();
}

void Crew::wait_for_news(std::vector<Member*>& printed, std::vector<Member*>& ended) {
  std::vector<pollfd> files{{wake_.get(), POLLIN, 0}};
  int time = -1;
  {
    const std::lock_guard lock(mutex_);
    if (first_death_ || first_silence_) time = 20;
    for (auto& member : members_) {
      files.push_back({!member->closed ? member->child.output() : -1, POLLIN, 0});
      files.push_back({member->alive ? member->child.ending() : -1, POLLIN, 0});
    }
  }
  ::poll(files.data(), files.size(), time);
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (files[1 + 2 * i].revents != 0) printed.push_back(members_[i].get());
    if (files[2 + 2 * i].revents != 0) ended.push_back(members_[i].get());
  }
}

void Crew::listen(Member& member) {
  std::array<char, 1 << 16> buffer;
  while (!member.closed) {
    const ssize_t count = ::read(member.child.output(), buffer.data(), buffer.size());
    if (count > 0)
      member.log.add({buffer.data(), static_cast<std::size_t>(count)});
    else if (count == 0)
      member.closed = true;
    else if (errno != EINTR)
      return;
  }
}

void Crew::bury(Member& member) {
  const std::lock_guard lock(
      mutex_);  // who sends signals never meets a number that belongs to somebody else by now
  const auto status = member.child.reap();
  if (!status) return;
  member.alive = false;
  --alive_;
  const bool told =
      std::ranges::any_of(fallen_, [&](const Fallen& f) { return f.pid == member.child.pid(); });
  if (!ending_ && !told) {
    fallen_.push_back({member.node, member.child.pid(), ending_text(*status), std::time(nullptr),
                       member.log.last_words(), member.log.path()});
    if (!first_death_) first_death_ = steady_clock::now();
  }
  changed_.notify_all();
}

// A group that is silent but not dead is as good as dead: it is killed, which the next look finds
// out.
void Crew::look_for_the_silent() {
  for (auto& member : members_) {
    if (!member->alive || !member->silent) continue;
    fallen_.push_back({member->node, member->child.pid(), *member->silent, std::time(nullptr),
                       member->log.last_words(), member->log.path()});
    member->child.signal(SIGKILL);
  }
}

void Crew::after_a_death() {
  std::unique_lock lock(mutex_);
  if (ending_) return;
  const auto now = steady_clock::now();
  const auto passed = [now](const auto& since, milliseconds time) {
    return since && now - *since >= time;
  };
  if (told_) {
    lock.unlock();
    if (passed(told_, options_.patience)) give_up();
  } else if (passed(first_death_, options_.together) || passed(first_silence_, options_.silence)) {
    look_for_the_silent();
    told_ = now;
    changed_.notify_all();
    lock.unlock();
    options_.on_death();
  }
}

// Main is in the middle of something long. The dead are told, everybody else goes, and the kernel
// cleans up behind us.
void Crew::give_up() {
  sweep_children();
  const std::string text = cat("troupe: ", sentence_of(fallen_, options_.output), "\n");
  std::fputs(text.c_str(), stderr);
  ::_exit(exit_process_died);
}

void Crew::signal_all(int number) {
  const std::lock_guard lock(mutex_);
  for (auto& member : members_)
    if (member->alive) member->child.signal(number);
}

bool Crew::gone_within(milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return alive_ == 0; });
}

bool Crew::leave(milliseconds time) {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& member : members_) member->child.dismiss();
  }
  return gone_within(time);
}

std::vector<Fallen> Crew::end() {
  if (done_) return {};
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  signal_all(SIGTERM);
  if (watcher_.joinable() && !gone_within(std::chrono::seconds(1)))
    signal_all(SIGKILL), gone_within(std::chrono::seconds(1));
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  if (watcher_.joinable()) watcher_.join();
  sweep_children();
  return std::move(fallen_);
}

}  // namespace troupe::launch
