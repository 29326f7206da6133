#include "actors/sandbox/seccomp_filter.h"

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

namespace troupe::actors::sandbox {
namespace {

#if defined(__x86_64__)
constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox supports x86-64 and arm64"
#endif
// Numbers from here on belong to the x32 ABI, which is denied.
constexpr unsigned x32_calls = 0x40000000;
constexpr unsigned not_permitted = SECCOMP_RET_ERRNO | EPERM;

constexpr int forbidden[] = {
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_move_mount,
    __NR_open_tree,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_unshare,
    __NR_setns,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_pidfd_getfd,
    __NR_process_madvise,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_io_uring_setup,
    __NR_io_uring_enter,
    __NR_io_uring_register,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_kexec_load,
    __NR_kexec_file_load,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_clock_adjtime,
    __NR_adjtimex,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_acct,
    __NR_syslog,
    __NR_quotactl,
    __NR_open_by_handle_at,
    __NR_name_to_handle_at,
    __NR_fanotify_init,
    __NR_vhangup,
#if defined(__x86_64__)
    __NR_iopl,
    __NR_ioperm,
    __NR_modify_ldt,
#endif
};

class Builder {
 public:
  explicit Builder(std::vector<sock_filter>& out) : out_(out) {}
  void add(unsigned code, unsigned value, unsigned char yes = 0, unsigned char no = 0) {
    out_.push_back({static_cast<unsigned short>(code), yes, no, value});
  }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)); }
  void answer(unsigned value) { add(BPF_RET | BPF_K, value); }
  void when(int call, unsigned value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1);
    answer(value);
  }
  // Returns `yes` for the call when `test` holds for the low half of an argument, `no` otherwise.
  void when_argument(int call, int index, unsigned test, unsigned operand, unsigned yes,
                     unsigned no) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4);
    load(offsetof(seccomp_data, args) + sizeof(__u64) * static_cast<std::size_t>(index));
    add(BPF_JMP | test | BPF_K, operand, 0, 1);
    answer(yes);
    answer(no);
  }

 private:
  std::vector<sock_filter>& out_;
};

}  // namespace

std::vector<sock_filter> make_filter(const Limits& limits) {
  constexpr unsigned allow = SECCOMP_RET_ALLOW,
                     new_namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
                                      0x80 /* CLONE_NEWTIME */;
  std::vector<sock_filter> out;
  Builder filter(out);
  filter.load(offsetof(seccomp_data, arch));
  filter.add(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
  filter.answer(SECCOMP_RET_KILL_PROCESS);
  filter.load(offsetof(seccomp_data, nr));
  filter.add(BPF_JMP | BPF_JGE | BPF_K, x32_calls, 0, 1);
  filter.answer(not_permitted);
  for (const int call : forbidden) filter.when(call, not_permitted);
  if (limits.isolation == Isolation::limits) {
    filter.when(__NR_setsid, not_permitted);
    filter.when(__NR_setpgid, not_permitted);
  }
  // The flags of clone3 are in memory, which a filter cannot read. C libraries fall back to clone.
  filter.when(__NR_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  filter.when_argument(__NR_clone, 0, BPF_JSET, new_namespaces, not_permitted, allow);
  filter.when_argument(__NR_prctl, 0, BPF_JEQ, PR_SET_PDEATHSIG, not_permitted, allow);
  filter.when_argument(__NR_ioctl, 1, BPF_JEQ, TIOCSTI, not_permitted, allow);
  if (!limits.network) filter.when_argument(__NR_socket, 0, BPF_JEQ, AF_UNIX, allow, not_permitted);
  filter.answer(allow);
  return out;
}

}  // namespace troupe::actors::sandbox
