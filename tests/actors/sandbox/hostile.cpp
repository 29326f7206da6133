// A reward program that behaves until a completion is "bad", and then does what its first argument
// names. Its second argument is a mark by which the test finds its processes, the third a port, a
// name or "file:" and a path. Plain C++: the tests need no interpreter.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/actors/sandbox/memory_attacks.h"

namespace {

std::string third;

void say(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(1, text.data() + at, text.size() - at);
    if (wrote <= 0) ::_exit(9);
    at += static_cast<std::size_t>(wrote);
  }
}
void answer(long id, const std::string& reward) {
  say("{\"id\":" + std::to_string(id) + ",\"reward\":" + reward + "}\n");
}
[[noreturn]] void sleep_forever() {
  for (;;) ::pause();
}

// Returns one bit for each forbidden action that succeeded; a contained program returns 0.
long probe(const std::vector<bool>& possible) {
  long found = 0;
  for (std::size_t i = 0; i < possible.size(); ++i) found |= possible[i] ? 1L << i : 0;
  return found;
}

void flood(int descriptor, const char* text) {
  for (const std::size_t size = std::strlen(text);;)
    if (::write(descriptor, text, size) < 0) sleep_forever();
}

bool connects(int family, const sockaddr* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  return fd >= 0 && ::connect(fd, address, size) == 0;
}

long network() {
  sockaddr_in tcp{};
  tcp.sin_family = AF_INET;
  tcp.sin_port = htons(static_cast<unsigned short>(std::atoi(third.c_str())));
  tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return probe({connects(AF_INET, reinterpret_cast<sockaddr*>(&tcp), sizeof tcp),
                ::socket(AF_INET6, SOCK_DGRAM, 0) >= 0, ::socket(AF_NETLINK, SOCK_RAW, 0) >= 0,
                ::socket(AF_PACKET, SOCK_RAW, 0) >= 0, ::socket(AF_INET, SOCK_RAW, 1) >= 0});
}

long abstract_socket() {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path + 1, third.c_str(), sizeof name.sun_path - 2);
  return probe({connects(AF_UNIX, reinterpret_cast<sockaddr*>(&name),
                         static_cast<socklen_t>(sizeof(sa_family_t) + 1 + third.size()))});
}

// Sockets of others, by their path: a stream, and a datagram from one end of a pair.
long unix_socket() {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, third.c_str(), sizeof name.sun_path - 1);
  const auto* address = reinterpret_cast<const sockaddr*>(&name);
  int pair[2] = {-1, -1};
  const bool datagrams = ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0;
  const bool sent = ::sendto(pair[0], "x", 1, 0, address, sizeof name) == 1;
  const bool paired = ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
  return probe({connects(AF_UNIX, address, sizeof name), datagrams, sent, !paired,
                ::connect(pair[0], address, sizeof name) == 0});
}

bool readable(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY) >= 0;
}

bool foreign_process() {
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return false;
  bool found = false;
  while (const dirent* entry = ::readdir(processes)) {
    const long id = std::atol(entry->d_name);
    found |=
        id > 0 && id != ::getpid() && readable(std::string("/proc/") + entry->d_name + "/environ");
  }
  ::closedir(processes);
  return found;
}

long open_descriptors() {
  long open = 0;
  for (int fd = 3; fd < 256; ++fd) open += ::fcntl(fd, F_GETFD) >= 0;
  return open;
}

long secrets() {
  return probe({std::getenv("TROUPE_TEST_SECRET") != nullptr, open_descriptors() > 0,
                readable(third.substr(third.find(':') + 1)), readable("/etc/shadow"),
                foreign_process(), readable("/proc/1/mem") && ::getpid() != 1,
                ::open("/usr/troupe-hostile", O_CREAT | O_WRONLY, 0600) >= 0});
}

long escapes() {
  const rlimit more{RLIM_INFINITY, RLIM_INFINITY};
  return probe(
      {::unshare(CLONE_NEWUSER) == 0, ::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) == 0,
       ::setrlimit(RLIMIT_AS, &more) == 0, ::setuid(0) == 0, ::prctl(PR_SET_PDEATHSIG, 0) == 0,
       ::syscall(SYS_bpf, 0, nullptr, 0) >= 0, ::syscall(SYS_io_uring_setup, 8, nullptr) >= 0,
       ::syscall(SYS_add_key, "user", "a", "b", 1, -3) >= 0, ::sethostname("troupe", 6) == 0,
       ::chroot("/tmp") == 0, ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) >= 0});
}

long attack(pid_t parent) {
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
  return probe({::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr) == 0,
                ::syscall(SYS_process_vm_readv, parent, &here, 1, &there, 1, 0) >= 0,
                ::kill(parent, SIGKILL) == 0 && parent > 1});
}

// Memory, environment, mappings and descriptors of its parent, and its signals.
long reads_parent() {
  const std::string parent = "/proc/" + third.substr(third.find(':') + 1);
  const int memory = ::open((parent + "/mem").c_str(), O_RDWR);
  char byte = 0;
  const rlimit none{0, 0};
  return probe({memory >= 0, ::pread(memory, &byte, 1, 0x400000) == 1,
                readable(parent + "/environ"), readable(parent + "/maps"),
                readable(parent + "/fd/0"), readable(parent + "/fd/2"),
                ::prlimit(static_cast<pid_t>(std::atol(parent.c_str() + 6)), RLIMIT_AS, &none,
                          nullptr) == 0});
}

bool killed_by(int signal, void (*deed)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    deed();
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

bool fails_with(long result, int error) {
  return result == -1 && errno == error;
}

// Calls that a list of forbidden ones forgot, calls of other ABIs, calls that do not exist.
long unknown_calls() {
  constexpr long quotactl_fd = 443, memfd_secret = 447, statmount = 457, listmount = 458,
                 open_tree_attr = 467, nonexistent = 5000;
  std::vector<bool> possible{::syscall(SYS_personality, 0x0040000L) != -1};
  for (const long call : {quotactl_fd, memfd_secret, statmount, listmount, open_tree_attr})
    possible.push_back(!fails_with(::syscall(call, 0, 0, 0, 0), EPERM) && errno != ENOSYS);
  for (const long call : {nonexistent, 0x3fffffffL})
    possible.push_back(!fails_with(::syscall(call, 0, 0, 0), ENOSYS));
#if defined(__x86_64__)
  possible.push_back(!killed_by(SIGSYS, [] { ::syscall(0x40000000L + SYS_getpid); }));
  possible.push_back(!killed_by(SIGSYS, [] {
    asm volatile("int $0x80" ::"a"(20) : "memory", "r8", "r9");
  }) && !killed_by(SIGSEGV, [] { asm volatile("int $0x80" ::"a"(20)
                                              : "memory", "r8", "r9"); }));
#endif
  const long sibling = ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  if (sibling == 0) ::_exit(0);
  possible.push_back(sibling > 0);
  return probe(possible);
}

// Children that compute after the answer.
void spin_in_children() {
  for (int i = 0; i < 3; ++i)
    if (::fork() == 0)
      for (volatile long steps = 0;;) steps = steps + 1;
}

void hold_memory(long id, const std::string& how) {
  for (int i = 0; i < 3; ++i)
    if (::fork() == 0) {
      memory_attacks().at(how)();
      sleep_forever();
    }
  answer(id, std::to_string(memory_attacks().at(how)()));
}

void start_daemon() {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_IGN);
  ::close(0);
  ::close(1);
  ::close(2);
  sleep_forever();
}

[[noreturn]] void busy() {
  volatile long steps = 0;
  for (;;) steps = steps + 1;
}

void fork_bomb() {
  for (;;) ::fork();
}

// Writes to the memory, so that it becomes resident.
void grow(std::size_t mib) {
  volatile char* memory = static_cast<char*>(std::malloc(mib << 20));
  if (memory == nullptr) {
    std::cerr << "no memory for " << mib << " MiB" << std::endl;
    std::abort();
  }
  for (std::size_t i = 0; i < mib << 20; i += 4096) memory[i] = 1;
}

void grow_together() {
  for (int i = 0; i < 6; ++i)
    if (::fork() == 0) {
      grow(40);
      sleep_forever();
    }
  sleep_forever();
}

// Writes a file until an error; returns its size in MiB.
long huge_file() {
  ::signal(SIGXFSZ, SIG_IGN);
  const int file = ::open("huge", O_CREAT | O_WRONLY, 0600);
  const std::vector<char> mib(1 << 20, 'x');
  long written = 0;
  while (written < 1000 &&
         ::write(file, mib.data(), mib.size()) == static_cast<ssize_t>(mib.size()))
    ++written;
  return written;
}

void delete_own_folder() {
  if (::chdir("/") == 0) ::rmdir(std::getenv("HOME"));
}

using Deed = std::function<void(long id)>;

const std::map<std::string, Deed>& lies() {
  static const std::map<std::string, Deed> all{
      {"wrong_id", [](long id) { answer(id + 7, "1"); }},
      {"earlier_id", [](long id) { answer(id - 1, "1"); }},
      {"twice",
       [](long id) {
         say("{\"id\":" + std::to_string(id) + ",\"reward\":1}\n{\"id\":" + std::to_string(id) +
             ",\"reward\":0}\n");
       }},
      {"out_of_order",
       [](long id) {
         answer(id + 1, "1");
         answer(id, "1");
       }},
      {"nan", [](long id) { answer(id, "NaN"); }},
      {"infinite", [](long id) { answer(id, "1e400"); }},
      {"huge_number", [](long id) { answer(id, "1e30"); }},
      {"huge_integer", [](long id) { answer(id, std::string(5000, '9')); }},
      {"string_reward", [](long id) { answer(id, "\"1\""); }},
      {"missing_reward", [](long id) { say("{\"id\":" + std::to_string(id) + "}\n"); }},
      {"missing_id", [](long) { say("{\"reward\":1}\n"); }},
      {"string_id", [](long id) { say("{\"id\":\"" + std::to_string(id) + "\",\"reward\":1}\n"); }},
      {"not_an_object", [](long) { say("[1]\n"); }},
      {"not_json", [](long) { say("reward is 1\n"); }},
      {"empty_line", [](long) { say("\n"); }},
      {"not_utf8",
       [](long id) {
         say("{\"id\":" + std::to_string(id) + ",\"reward\":1,\"note\":\"\xff\xfe\"}\n");
       }},
      {"deep", [](long) { say(std::string(20000, '[') + "\n"); }},
      {"same_key",
       [](long id) { say("{\"id\":" + std::to_string(id) + ",\"reward\":1,\"reward\":0}\n"); }},
      {"bad_parts",
       [](long id) {
         say("{\"id\":" + std::to_string(id) + ",\"reward\":1,\"parts\":{\"a\":1e300}}\n");
       }},
      {"half_a_line",
       [](long id) {
         say("{\"id\":" + std::to_string(id) + ",\"rew");
         std::exit(0);
       }},
  };
  return all;
}

const std::map<std::string, Deed>& deeds() {
  static const std::map<std::string, Deed> all{
      {"hang", [](long) { sleep_forever(); }},
      {"busy", [](long) { busy(); }},
      {"ignores_signals",
       [](long) {
         for (int n = 1; n < NSIG; ++n) ::signal(n, SIG_IGN);
         sleep_forever();
       }},
      {"daemon",
       [](long) {
         start_daemon();
         std::exit(0);
       }},
      {"daemon_and_answer",
       [](long id) {
         start_daemon();
         answer(id, "1");
       }},
      {"fork_bomb", [](long) { fork_bomb(); }},
      {"flood_lines", [](long) { flood(1, "no\n"); }},
      {"endless_line",
       [](long) { flood(1, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); }},
      {"flood_errors",
       [](long) { flood(2, "help help help help help help help help help help help\n"); }},
      {"allocates",
       [](long) {
         grow(10240);
         sleep_forever();
       }},
      {"grows_together", [](long) { grow_together(); }},
      {"segfault",
       [](long) {
         volatile int* nothing = nullptr;
         *nothing = 1;
       }},
      {"aborts",
       [](long) {
         std::cerr << "assertion failed: 1 == 2\n";
         std::abort();
       }},
      {"exits_0", [](long) { std::exit(0); }},
      {"exits_3",
       [](long) {
         std::cerr << "cannot continue\n";
         std::exit(3);
       }},
      {"answers_and_exits",
       [](long id) {
         answer(id, "1");
         std::exit(0);
       }},
      {"closes_output",
       [](long) {
         ::close(1);
         sleep_forever();
       }},
      {"network", [](long id) { answer(id, std::to_string(network())); }},
      {"unix_socket", [](long id) { answer(id, std::to_string(unix_socket())); }},
      {"reads_parent", [](long id) { answer(id, std::to_string(reads_parent())); }},
      {"unknown_calls", [](long id) { answer(id, std::to_string(unknown_calls())); }},
      {"holds_memory", [](long id) { hold_memory(id, third); }},
      {"spins_in_children",
       [](long id) {
         spin_in_children();
         answer(id, "1");
       }},
      {"spins_and_hangs",
       [](long) {
         spin_in_children();
         sleep_forever();
       }},
      {"many_parts",
       [](long id) {
         std::string parts;
         for (int i = 0; i < 64; ++i)
           parts += (i == 0 ? "\"p" : ",\"p") + std::to_string(id * 64 + i) + "\":1";
         say("{\"id\":" + std::to_string(id) + ",\"reward\":1,\"parts\":{" + parts + "}}\n");
       }},
      {"abstract_socket", [](long id) { answer(id, std::to_string(abstract_socket())); }},
      {"secrets", [](long id) { answer(id, std::to_string(secrets())); }},
      {"escapes", [](long id) { answer(id, std::to_string(escapes())); }},
      {"attack",
       [](long id) {
         answer(id, std::to_string(attack(static_cast<pid_t>(std::atol(third.c_str())))));
       }},
      {"kills_all",
       [](long id) {
         ::kill(-1, SIGKILL);
         answer(id, "0");
       }},
      {"huge_file", [](long id) { answer(id, std::to_string(huge_file())); }},
      {"deletes_its_folder",
       [](long id) {
         delete_own_folder();
         answer(id, "1");
       }},
      {"with_parts",
       [](long id) {
         say("{\"id\":" + std::to_string(id) + ",\"reward\":0.5,\"parts\":{\"style\":0.25}}\n");
       }},
  };
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  third = count > 3 ? arguments[3] : "";
  if (mode == "exits_at_once") return 4;
  if (mode == "never_reads") sleep_forever();
  if (mode == "closes_input") {
    ::close(0);
    sleep_forever();
  }
  for (std::string line; std::getline(std::cin, line);) {
    const long id = std::atol(line.c_str() + std::strlen("{\"id\":"));
    const auto& known = lies().count(mode) ? lies() : deeds();
    if (line.find("\"completion\":\"bad") != line.npos && known.count(mode))
      known.at(mode)(id);
    else if (const auto slow = line.find("\"completion\":\"slow"); slow != line.npos) {
      ::usleep(20000);
      answer(id,
             std::to_string(std::atoi(line.c_str() + slow + std::strlen("\"completion\":\"slow"))));
    } else
      answer(id, "1");
  }
}
