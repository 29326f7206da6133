#include "actors/sandbox/seccomp_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

/// Calls that are allowed with any arguments. They act on the process itself, its descriptors, its
/// children and the files that it sees.
inline constexpr const char* allowed_calls[] = {
    // memory
    "brk", "madvise", "mincore", "mlock", "mlock2", "mlockall", "mprotect", "mremap", "mseal",
    "msync", "munlock", "munlockall", "munmap", "membarrier", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "get_mempolicy",
    // descriptors
    "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "lseek", "_llseek", "pipe",
    "pipe2", "poll", "ppoll", "pread64", "preadv", "preadv2", "pselect6", "pwrite64", "pwritev",
    "pwritev2", "read", "readahead", "readv", "select", "sendfile", "splice", "tee", "write",
    "writev", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
    "epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "signalfd", "signalfd4",
    "timerfd_create", "timerfd_gettime", "timerfd_settime", "pidfd_open",
    // files
    "access", "cachestat", "chdir", "chmod", "chown", "creat", "faccessat", "faccessat2",
    "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat",
    "fdatasync", "fgetxattr", "flistxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "getxattr", "lchown", "lgetxattr", "link", "linkat",
    "listxattr", "llistxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat",
    "open", "openat", "openat2", "readlink", "readlinkat", "rename", "renameat", "renameat2",
    "rmdir", "stat", "statfs", "statx", "symlink", "symlinkat", "sync_file_range", "truncate",
    "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
    // processes and threads
    "arch_prctl", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue",
    "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area", "getpgid",
    "getpgrp", "getpid", "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid",
    "ioprio_get", "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_yield",
    "set_robust_list", "set_thread_area", "set_tid_address", "setrlimit", "vfork", "wait4",
    "waitid", "waitpid", "getcpu", "restart_syscall",
    // signals
    "alarm", "pause", "pidfd_send_signal", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
    "sigaltstack", "tgkill", "tkill",
    // time
    "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday", "nanosleep",
    "setitimer", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "times",
    // users and the system
    "capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getrandom", "getresgid",
    "getresuid", "getuid", "setfsgid", "setfsuid", "setgid", "setregid", "setresgid", "setresuid",
    "setreuid", "setuid", "sysinfo", "uname",
    // sockets that exist; how they come into being is checked
    "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg",
    "sendmsg", "sendto", "shutdown"};

/// Calls that fail with EPERM: they reach out of the sandbox, or hold memory that belongs to no
/// process.
inline constexpr const char* denied_calls[] = {
    // memory that outlives its mappings or is not in any of them
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "shmdt", "semget", "semop",
    "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
    "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "vmsplice", "userfaultfd",
    "io_setup", "io_submit", "remap_file_pages",
    // mounts, namespaces and roots
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree",
    "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare",
    "setns", "statmount", "listmount", "quotactl", "quotactl_fd", "open_by_handle_at",
    "name_to_handle_at", "fanotify_init", "fanotify_mark",
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
    "kcmp", "pidfd_getfd", "move_pages", "migrate_pages", "perf_event_open", "setpriority",
    "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr", "set_mempolicy", "mbind",
    "setgroups",
    // kernel programs, keys, modules and settings
    "bpf", "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key",
    "request_key", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "reboot", "swapon", "swapoff", "settimeofday", "stime", "clock_settime", "clock_adjtime",
    "clock_adjtime64", "adjtimex", "sethostname", "setdomainname", "acct", "syslog", "vhangup",
    "iopl", "ioperm", "modify_ldt", "seccomp", "lookup_dcookie", "nfsservctl", "_sysctl"};

/// Calls on sockets of other programs, allowed by `network: true`. Otherwise sockets exist only in
/// connected pairs.
inline constexpr const char* network_calls[] = {"socket", "connect", "bind",
                                                "listen", "accept",  "accept4"};

using Conditions = std::vector<scmp_arg_cmp>;

// The kernel reads only the low half of an argument of type int.
constexpr scmp_datum_t low_half = 0xffffffff;

scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, low_half, value & low_half};
}
scmp_arg_cmp lacks(unsigned argument, std::uint64_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, bits, 0};
}

// Keeps the first error, so that rules can be added one after the other.
class Rules {
 public:
  Rules() : filter_(::seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), ::seccomp_release) {
    if (!filter_) error_ = -ENOMEM;
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  }

  /// Answers the call if all conditions hold. A name that this libseccomp or this machine does not
  /// have keeps the answer of unknown calls.
  void add(std::uint32_t answer, const char* name, const Conditions& when = {}) {
    const int call = ::seccomp_syscall_resolve_name(name);
    if (call < 0 || error_ != 0) return;
    keep(::seccomp_rule_add_array(filter_.get(), answer, call, static_cast<unsigned>(when.size()),
                                  when.data()));
    if (error_ != 0) at_ = name;
  }
  void allow(const char* name, const Conditions& when = {}) { add(SCMP_ACT_ALLOW, name, when); }
  void deny(const char* name, int error, const Conditions& when = {}) {
    add(SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), name, when);
  }
  /// Allows the call if one argument has one of the values.
  void allow_values(const char* name, unsigned argument, const std::vector<std::uint64_t>& values) {
    for (const std::uint64_t value : values) allow(name, {equals(argument, value)});
  }

  Result<std::vector<sock_filter>> program() {
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree: some programs make a million calls a second
    char path[] = "/tmp/troupe-filter-XXXXXX";
    const int file = ::memfd_create(path, MFD_CLOEXEC);
    if (file < 0) keep(-errno);
    if (error_ == 0) keep(::seccomp_export_bpf(filter_.get(), file));
    const off_t bytes = error_ == 0 ? ::lseek(file, 0, SEEK_END) : 0;
    std::vector<sock_filter> out(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
    if (error_ == 0 && ::pread(file, out.data(), static_cast<std::size_t>(bytes), 0) != bytes)
      keep(-EIO);
    if (file >= 0) ::close(file);
    if (error_ != 0)
      return fail(Errc::unsupported,
                  cat("cannot build the system call filter", at_.empty() ? "" : " at ", at_, ": ",
                      std::strerror(-error_)));
    return out;
  }

 private:
  void set(scmp_filter_attr attribute, std::uint32_t value) {
    if (error_ == 0) keep(::seccomp_attr_set(filter_.get(), attribute, value));
  }
  void keep(int result) {
    if (error_ == 0 && result < 0) error_ = result;
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter_;
  int error_ = 0;
  std::string at_;
};

// Process creation and what a process may change of itself.
void add_process_rules(Rules& rules, const Limits& limits) {
  constexpr std::uint64_t refused = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                                    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
                                    0x80 /* CLONE_NEWTIME */ | CLONE_PARENT | CLONE_PTRACE;
  rules.allow("clone", {lacks(0, refused)});
  // The flags of clone3 are in memory, which a filter cannot read: ENOSYS makes C libraries use
  // clone.
  rules.allow_values("personality", 0, {PER_LINUX, 0xffffffff});
  rules.allow_values(
      "prctl", 0,
      {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_PDEATHSIG, PR_GET_KEEPCAPS,
       PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ, PR_GET_TIMERSLACK,
       PR_SET_TIMERSLACK, PR_GET_SECUREBITS, PR_GET_TID_ADDRESS, PR_GET_THP_DISABLE,
       PR_SET_THP_DISABLE, PR_GET_CHILD_SUBREAPER, PR_SET_CHILD_SUBREAPER});
  // PR_SET_DUMPABLE would hide the mappings from the census.
  for (const int option : {PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP})
    rules.deny("prctl", EPERM, {equals(0, static_cast<std::uint64_t>(option))});
  rules.allow("prlimit64", {equals(0, 0)});
  rules.allow("sched_setaffinity", {equals(0, 0)});
  if (limits.isolation == Isolation::namespaces) {
    for (const char* name : {"setsid", "setpgid", "kill"}) rules.allow(name);
    return;
  }
  rules.deny("setsid", EPERM);
  rules.deny("setpgid", EPERM);
  rules.deny("kill", EPERM, {equals(0, low_half)});
  rules.allow("kill", {{0, SCMP_CMP_MASKED_EQ, 0x80000000, 0}});  // one process
  for (unsigned bit = 0; bit < 31; ++bit)  // a process group: negative, but not -1
    rules.allow("kill", {{0, SCMP_CMP_MASKED_EQ, 0x80000000u | 1u << bit, 0x80000000u}});
}

void add_memory_rules(Rules& rules, bool counts_mappings) {
  constexpr std::uint64_t shared = MAP_SHARED, no_file = MAP_ANONYMOUS;
  if (counts_mappings) return rules.allow("mmap");
  rules.allow("mmap", {lacks(3, shared)});
  rules.allow("mmap", {lacks(3, no_file)});
  rules.allow("mmap", {{1, SCMP_CMP_LE, max_uncounted_mapping, 0}});
  rules.deny("mmap", ENOMEM,
             {{1, SCMP_CMP_GT, max_uncounted_mapping, 0},
              {3, SCMP_CMP_MASKED_EQ, shared | no_file, shared | no_file}});
}

void add_descriptor_rules(Rules& rules) {
  rules.allow_values("ioctl", 1,
                     {TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ, TIOCGPGRP, TIOCSPGRP, FIONREAD,
                      FIONBIO, FIOCLEX, FIONCLEX});
  // Locks of open files and signals for other processes are denied: F_SETOWN, F_SETSIG, F_NOTIFY,
  // F_SETLEASE; F_SETPIPE_SZ makes pipes larger than the census counts.
  rules.allow_values("fcntl", 1,
                     {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK,
                      F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_GETPIPE_SZ,
                      F_GETOWN, F_ADD_SEALS, F_GET_SEALS, F_GETLEASE, F_GETSIG});
  for (const int command : {F_SETPIPE_SZ, F_SETOWN, F_SETOWN_EX, F_SETSIG, F_NOTIFY, F_SETLEASE})
    rules.deny("fcntl", EPERM, {equals(1, static_cast<std::uint64_t>(command))});

  for (const char* name :
       {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"})
    rules.deny(name, ENOTSUP);
}

void add_socket_rules(Rules& rules, const Limits& limits) {
  // A socket of another type could be connected or addressed to other sockets.
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET})
    rules.allow("socketpair", {equals(0, AF_UNIX),
                               {1, SCMP_CMP_MASKED_EQ, low_half & ~(SOCK_CLOEXEC | SOCK_NONBLOCK),
                                static_cast<scmp_datum_t>(type)}});
  // The size of a buffer bounds the memory that a socket holds.
  for (const int option : {SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE})
    rules.deny("setsockopt", EPERM,
               {equals(1, SOL_SOCKET), equals(2, static_cast<std::uint64_t>(option))});
  if (limits.network) {
    for (const char* name : network_calls) rules.allow(name);
    constexpr std::uint64_t last_denied = SO_RCVBUFFORCE;
    rules.allow("setsockopt", {{1, SCMP_CMP_NE, SOL_SOCKET, 0}});
    rules.allow("setsockopt", {equals(1, SOL_SOCKET), {2, SCMP_CMP_GT, last_denied, 0}});
    for (std::uint64_t option = 0; option < last_denied; ++option)
      if (option != SO_SNDBUF && option != SO_RCVBUF && option != SO_SNDBUFFORCE)
        rules.allow("setsockopt", {equals(1, SOL_SOCKET), equals(2, option)});
    return;
  }
  for (const char* name : network_calls) rules.deny(name, EPERM);
}

}  // namespace

Result<std::vector<sock_filter>> make_filter(const Limits& limits, bool counts_mappings) {
  Rules rules;
  for (const char* name : allowed_calls) rules.allow(name);
  for (const char* name : denied_calls) rules.deny(name, EPERM);
  add_process_rules(rules, limits);
  add_memory_rules(rules, counts_mappings);
  add_descriptor_rules(rules);
  add_socket_rules(rules, limits);
  return rules.program();
}

}  // namespace troupe::actors::sandbox
