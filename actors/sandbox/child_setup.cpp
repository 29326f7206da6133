#include "actors/sandbox/child_setup.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace troupe::actors::sandbox {
namespace {

struct Way {
  const Plan& plan;
  const Ends& ends;

  [[noreturn]] void give_up(Step step, int which = -1) const {
    const Trouble trouble{step, errno, which};
    [[maybe_unused]] const auto told = ::write(ends.report, &trouble, sizeof trouble);
    ::_exit(127);
  }
  void must(bool done, Step step, int which = -1) const {
    if (!done) give_up(step, which);
  }
};

// A process whose parent has ended ends at once. A change of user undoes the wish, so it is said
// twice.
void end_with_parent(const Way& way) {
  way.must(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, Step::parent);
  pollfd parent{way.ends.go, 0, 0};
  if (::poll(&parent, 1, 0) != 0) ::_exit(127);
}

void take_streams(const Way& way) {
  const Ends& ends = way.ends;
  const bool taken =
      ::dup2(ends.input, 0) == 0 && ::dup2(ends.output, 1) == 1 && ::dup2(ends.errors, 2) == 2;
  way.must(taken && ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0, Step::streams);
}

bool harden(const char* path, unsigned long long flags, unsigned depth) {
  mount_attr attributes{};
  attributes.attr_set = flags;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, path, depth, &attributes, sizeof attributes) == 0;
}

bool show(const Shown& thing) {
  const char *from = thing.from.c_str(), *to = thing.to.c_str();
  if (thing.kind == Shown::Kind::link) return ::symlink(from, to) == 0;
  if (thing.kind != Shown::Kind::folder) {
    const int file = ::open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (file < 0) return false;
    ::close(file);
  }
  if (::mount(from, to, nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
  if (thing.kind == Shown::Kind::device) return true;
  return harden(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, AT_RECURSIVE);
}

// The old root goes to /old below an empty one, what is shown is bound into /new, and /new becomes
// the root.
void build_view(const Way& way) {
  constexpr unsigned long quiet = MS_NOSUID | MS_NODEV;
  const Plan& plan = way.plan;
  way.must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, Step::mounts);
  way.must(::mount("tmpfs", "/tmp", "tmpfs", quiet, "mode=755,size=1m") == 0, Step::mounts);
  way.must(::mkdir("/tmp/old", 0755) == 0 && ::mkdir("/tmp/new", 0755) == 0, Step::mounts);
  way.must(::syscall(SYS_pivot_root, "/tmp", "/tmp/old") == 0 && ::chdir("/") == 0, Step::mounts);
  way.must(::mount("tmpfs", "/new", "tmpfs", quiet, "mode=755,size=1m,nr_inodes=4096") == 0,
           Step::mounts);
  way.must(::mkdir("/new/tmp", 0755) == 0, Step::mounts);
  way.must(::mount("tmpfs", "/new/tmp", "tmpfs", quiet, plan.work_options.c_str()) == 0,
           Step::mounts);
  for (const auto& folder : plan.folders)
    way.must(::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST, Step::mounts);
  int which = 0;
  for (const Shown& thing : plan.shown) way.must(show(thing), Step::mounts, which++);
  // Where another /proc hides something, the kernel refuses a new one: the program then has none.
  ::mount("proc", "/new/proc", "proc", quiet | MS_NOEXEC, nullptr);
}

void close_view(const Way& way) {
  way.must(::mkdir("/new/tmp/work", 0777) == 0 && ::chmod("/new/tmp/work", 0777) == 0, Step::proc);
  way.must(harden("/new", MOUNT_ATTR_RDONLY, 0), Step::proc);
  way.must(::chdir("/new") == 0 && ::umount2("/old", MNT_DETACH) == 0, Step::proc);
  way.must(::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0, Step::proc);
}

void take_limits(const Way& way) {
  const Limits& limits = way.plan.limits;
  const auto limit = [&](__rlimit_resource what, rlim_t most) {
    const rlimit both{most, most};
    way.must(::setrlimit(what, &both) == 0, Step::limits);
  };
  constexpr rlim_t mib = 1 << 20;
  const rlim_t memory = static_cast<rlim_t>(limits.memory_mb) * mib;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.cpu_seconds));
  limit(RLIMIT_FSIZE, static_cast<rlim_t>(limits.file_mb) * mib);
  limit(RLIMIT_NPROC, static_cast<rlim_t>(way.plan.processes));
  limit(RLIMIT_NOFILE, 256);
  limit(RLIMIT_MEMLOCK, 0);
  limit(RLIMIT_MSGQUEUE, 0);
  limit(RLIMIT_SIGPENDING, 256);
  limit(RLIMIT_DATA, memory);
  limit(RLIMIT_AS, limits.address_mb != 0 ? static_cast<rlim_t>(limits.address_mb) * mib : memory);
}

// Where we are root, it is nobody: root's private files stay root's, and the limit on processes
// holds (root has none). System calls, not the C library's functions: those tell all threads of the
// parent, which are not here, under a lock that one of them may have held.
void become_nobody(const Way& way) {
  if (::getuid() != 0) return;
  const bool changed = ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                       ::syscall(SYS_setresgid, nobody, nobody, nobody) == 0 &&
                       ::syscall(SYS_setresuid, nobody, nobody, nobody) == 0;
  way.must(changed, Step::user);
}

void forget_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void give_up_calls(const Way& way) {
  const auto& filter = way.plan.filter;
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  way.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, Step::filter);
  way.must(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, Step::filter);
}

// The limit on processes counts those of nobody in every sandbox of this host. Where another
// program has just taken all of them there is none for this one, until that one is stopped: so it
// waits, three seconds at most.
void become_program(const Plan& plan, char* const* run, char* const* environment) {
  constexpr timespec moment{0, 10'000'000};
  for (int tries = 0; tries < 300; ++tries) {
    ::execve(plan.program.c_str(), run, environment);
    if (errno != EAGAIN) return;
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace

void enter(const Plan& plan, const char* folder, const Ends& ends, char* const* run,
           char* const* environment) {
  const Way way{plan, ends};
  const bool own_view = plan.limits.isolation == Isolation::namespaces;
  way.must(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, Step::parent);
  ::close(ends.parents);
  char byte;
  if (::read(ends.go, &byte, 1) != 1) ::_exit(127);
  way.must(::setsid() >= 0 || own_view,
           Step::session);  // the first process of a namespace leads one already
  ::umask(0);
  take_streams(way);
  if (own_view) build_view(way), close_view(way);
  way.must(::chdir(own_view ? work_folder : folder) == 0, Step::folder);
  take_limits(way);
  become_nobody(way);
  end_with_parent(way);
  forget_signals();
  ::umask(077);
  give_up_calls(way);
  become_program(plan, run, environment);
  way.give_up(Step::program);
}

}  // namespace troupe::actors::sandbox
