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

#include "actors/sandbox/landlock.h"

namespace troupe::actors::sandbox {
namespace {

// Below the training, which waits for it.
constexpr int niceness = 10;

struct Setup {
  const SandboxPlan& plan;
  const ChildPipes& pipes;

  [[noreturn]] void report_failure(SetupStep step, int which = -1) const {
    const SetupError error{step, errno, which};
    [[maybe_unused]] const auto written = ::write(pipes.report, &error, sizeof error);
    ::_exit(127);
  }
  void require(bool done, SetupStep step, int which = -1) const {
    if (!done) report_failure(step, which);
  }
};

// Has the kernel kill this process when its parent ends. A change of user clears the setting, so
// this is called again after it.
void die_with_parent(const Setup& setup) {
  setup.require(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, SetupStep::parent);
  pollfd parent{setup.pipes.go, 0, 0};
  if (::poll(&parent, 1, 0) != 0) ::_exit(127);
}

void redirect_streams(const Setup& setup) {
  const ChildPipes& pipes = setup.pipes;
  const bool taken =
      ::dup2(pipes.input, 0) == 0 && ::dup2(pipes.output, 1) == 1 && ::dup2(pipes.errors, 2) == 2;
  setup.require(taken && ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0,
                SetupStep::streams);
}

bool set_mount_attributes(const char* path, unsigned long long flags, unsigned depth) {
  mount_attr attributes{};
  attributes.attr_set = flags;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, path, depth, &attributes, sizeof attributes) == 0;
}

bool make_mount(const Mount& mount) {
  const char *from = mount.from.c_str(), *to = mount.to.c_str();
  if (mount.kind == Mount::Kind::link) return ::symlink(from, to) == 0;
  if (mount.kind != Mount::Kind::folder) {
    const int file = ::open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (file < 0) return false;
    ::close(file);
  }
  if (::mount(from, to, nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
  if (mount.kind == Mount::Kind::device) return true;
  return set_mount_attributes(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                              AT_RECURSIVE);
}

// Moves the old root to /old below an empty root, binds the mounts into /new, and makes /new the
// root.
void build_root(const Setup& setup) {
  constexpr unsigned long no_devices = MS_NOSUID | MS_NODEV;
  const SandboxPlan& plan = setup.plan;
  setup.require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
                SetupStep::mounts);
  setup.require(::mount("tmpfs", "/tmp", "tmpfs", no_devices, "mode=755,size=1m") == 0,
                SetupStep::mounts);
  setup.require(::mkdir("/tmp/old", 0755) == 0 && ::mkdir("/tmp/new", 0755) == 0,
                SetupStep::mounts);
  setup.require(::syscall(SYS_pivot_root, "/tmp", "/tmp/old") == 0 && ::chdir("/") == 0,
                SetupStep::mounts);
  setup.require(
      ::mount("tmpfs", "/new", "tmpfs", no_devices, "mode=755,size=1m,nr_inodes=4096") == 0,
      SetupStep::mounts);
  setup.require(::mkdir("/new/tmp", 0755) == 0, SetupStep::mounts);
  setup.require(::mount("tmpfs", "/new/tmp", "tmpfs", no_devices, plan.work_options.c_str()) == 0,
                SetupStep::mounts);
  for (const auto& folder : plan.folders)
    setup.require(::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST, SetupStep::mounts);
  // shm_open() and sem_open() need it; part of the same file system, whose size is limited.
  setup.require(::mkdir("/new/tmp/.shm", 01777) == 0 && ::chmod("/new/tmp/.shm", 01777) == 0 &&
                    ::mount("/new/tmp/.shm", "/new/dev/shm", nullptr, MS_BIND, nullptr) == 0,
                SetupStep::mounts);
  int which = 0;
  for (const Mount& mount : plan.mounts)
    setup.require(make_mount(mount), SetupStep::mounts, which++);
  // The kernel refuses a new /proc if the present one is partly hidden; the program then has none.
  ::mount("proc", "/new/proc", "proc", no_devices | MS_NOEXEC, nullptr);
}

void detach_old_root(const Setup& setup) {
  setup.require(::mkdir("/new/tmp/work", 0777) == 0 && ::chmod("/new/tmp/work", 0777) == 0,
                SetupStep::proc);
  setup.require(set_mount_attributes("/new", MOUNT_ATTR_RDONLY, 0), SetupStep::proc);
  setup.require(::chdir("/new") == 0 && ::umount2("/old", MNT_DETACH) == 0, SetupStep::proc);
  setup.require(::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0,
                SetupStep::proc);
}

void set_limits(const Setup& setup) {
  const Limits& limits = setup.plan.limits;
  const auto limit = [&](__rlimit_resource what, rlim_t value) {
    const rlimit both{value, value};
    setup.require(::setrlimit(what, &both) == 0, SetupStep::limits);
  };
  constexpr rlim_t mib = 1 << 20;
  const rlim_t memory = static_cast<rlim_t>(limits.memory_mb) * mib;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.cpu_seconds));
  limit(RLIMIT_FSIZE, static_cast<rlim_t>(limits.file_mb) * mib);
  limit(RLIMIT_NPROC, static_cast<rlim_t>(setup.plan.processes));
  limit(RLIMIT_NOFILE, 64);  // each may be a pipe or a socket with a buffer
  limit(RLIMIT_MEMLOCK, 0);
  limit(RLIMIT_MSGQUEUE, 0);
  limit(RLIMIT_SIGPENDING, 256);
  limit(RLIMIT_DATA, memory);
  setup.require(::setpriority(PRIO_PROCESS, 0, niceness) == 0, SetupStep::limits);
  limit(RLIMIT_AS, limits.address_mb != 0 ? static_cast<rlim_t>(limits.address_mb) * mib : memory);
}

// Changes from root to nobody, so that root's private files stay inaccessible and the limit on
// processes applies (root has none). Uses system calls, because the C library's functions notify
// all threads of the parent, which do not exist here, under a lock that one of them may have held.
void become_nobody(const Setup& setup) {
  if (::getuid() != 0) return;
  const bool changed = ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                       ::syscall(SYS_setresgid, nobody, nobody, nobody) == 0 &&
                       ::syscall(SYS_setresuid, nobody, nobody, nobody) == 0;
  setup.require(changed, SetupStep::user);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void restrict_files(const Setup& setup, const char* folder) {
  const bool done =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      restrict_with_landlock({folder, setup.plan.limits.network, setup.plan.zero_device});
  setup.require(done, SetupStep::landlock);
}

// The kernel kills this process rather than its parent when the machine is out of memory.
void offer_to_oom_killer() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, "1000", 4);
  ::close(file);
}

void install_filter(const Setup& setup) {
  const auto& filter = setup.plan.filter;
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  setup.require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, SetupStep::filter);
  setup.require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, SetupStep::filter);
}

// The limit on processes counts those of user nobody in every sandbox of this host. When another
// program uses all of them, exec fails until that program is killed, so this retries for up to
// three seconds.
void exec_program(const SandboxPlan& plan, char* const* run, char* const* environment) {
  constexpr timespec moment{0, 10'000'000};
  for (int tries = 0; tries < 300; ++tries) {
    ::execve(plan.program.c_str(), run, environment);
    if (errno != EAGAIN) return;
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace

void run_child(const SandboxPlan& plan, const char* folder, const ChildPipes& pipes,
               char* const* run, char* const* environment) {
  const Setup setup{plan, pipes};
  const bool own_root = plan.limits.isolation == Isolation::namespaces;
  setup.require(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, SetupStep::parent);
  ::close(pipes.parents);
  char byte;
  if (::read(pipes.go, &byte, 1) != 1) ::_exit(127);
  // The first process of a namespace already leads a session.
  setup.require(::setsid() >= 0 || own_root, SetupStep::session);
  ::umask(0);
  redirect_streams(setup);
  offer_to_oom_killer();
  if (own_root) {
    build_root(setup);
    detach_old_root(setup);
  }
  setup.require(::chdir(own_root ? work_folder : folder) == 0, SetupStep::folder);
  if (!own_root) restrict_files(setup, folder);
  set_limits(setup);
  become_nobody(setup);
  die_with_parent(setup);
  reset_signals();
  ::umask(077);
  install_filter(setup);
  exec_program(plan, run, environment);
  setup.report_failure(SetupStep::program);
}

}  // namespace troupe::actors::sandbox
