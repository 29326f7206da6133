#include "tests/hostile/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "engine/base/text/text.h"

namespace troupe::hostile {

namespace {

constexpr int cannot_start = 98;
constexpr auto timeout = std::chrono::seconds(120);

void write_text(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY);
  if (file < 0 || ::write(file, text.data(), text.size()) < 0) _exit(cannot_start);
  ::close(file);
}

// A mount namespace of this process's own; who is not root needs a user namespace for it.
void mount_disk(const Surroundings& surroundings) {
  const uid_t user = ::geteuid();
  if (::unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) _exit(cannot_start);
  if (user != 0) write_text("/proc/self/uid_map", cat(user, " ", user, " 1"));
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(cannot_start);
  const unsigned long flags = surroundings.read_only ? MS_RDONLY : 0;
  if (::mount("tmpfs", surroundings.disk.c_str(), "tmpfs", flags, "size=64k") != 0)
    _exit(cannot_start);
}

// The child: never returns.
[[noreturn]] void become(const std::string& files, const std::string& arguments,
                         const Surroundings& surroundings) {
  if (!surroundings.disk.empty()) mount_disk(surroundings);
  if (surroundings.longest_file >= 0) {
    const auto bytes = static_cast<rlim_t>(surroundings.longest_file);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  // What an attack may take of this machine: far above what the tests allow it.
  const rlimit seconds{sanitized ? 600u : 60u, sanitized ? 600u : 60u};
  ::setrlimit(RLIMIT_CPU, &seconds);
  const rlimit memory{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
  if (!sanitized) ::setrlimit(RLIMIT_DATA, &memory);
  ::signal(SIGXFSZ, SIG_DFL);  // as a user's shell has it
  const std::string line = cat("exec '" TROUPE_PROGRAM "' <'", files, ".in' >'", files, ".out' 2>'",
                               files, ".err' ", arguments);
  ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
  _exit(cannot_start);
}

// Waits for the child's end, and kills it when that does not come. True: it ended by itself.
bool ends_in_time(pid_t child) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd waiting{handle, POLLIN, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  const bool ended = handle >= 0 && ::poll(&waiting, 1, static_cast<int>(limit)) == 1;
  if (!ended) ::kill(child, SIGKILL);
  ::close(handle);
  return ended;
}

std::string beginning_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::size_t{1} << 20, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

Ended run_hostile(const std::string& files, const std::string& arguments, const std::string& input,
                  const Surroundings& surroundings) {
  std::ofstream(files + ".in", std::ios::binary | std::ios::trunc) << input;
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) become(files, arguments, surroundings);
  Ended ended;
  ended.in_time = ends_in_time(child);
  int status = 0;
  rusage used{};
  ::wait4(child, &status, 0, &used);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ended.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  ended.started = ended.code != cannot_start;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  ended.processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  ended.peak_mib = static_cast<double>(used.ru_maxrss) / 1024;
  ended.out = beginning_of(files + ".out");
  ended.err = beginning_of(files + ".err");
  for (const char* end : {".in", ".out", ".err"}) ::unlink((files + end).c_str());
  return ended;
}

}  // namespace troupe::hostile
