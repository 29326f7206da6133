// System calls of sandboxed programs, by name. A call that stands in no list returns ENOSYS, as on
// a kernel that does not have it.
#pragma once

namespace troupe::actors::sandbox {

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

}  // namespace troupe::actors::sandbox
