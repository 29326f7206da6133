// Where a launch with a group of two ranks can be reached over the network: nowhere if the system
// allows network namespaces. Where it does not, connections to what listens change nothing.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/support/sanitized.h"
#include "tests/system/child.h"
#include "tests/system/processes.h"
#include "tests/system/runs.h"

namespace troupe::hostile::listening_test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

/// Inodes of the sockets that a process has open.
std::set<std::string> sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  std::error_code failed;
  for (fs::directory_iterator at(cat("/proc/", pid, "/fd"), failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string target = fs::read_symlink(at->path(), failed).string();
    constexpr std::string_view prefix = "socket:[";
    if (target.starts_with(prefix))
      inodes.insert(target.substr(prefix.size(), target.size() - prefix.size() - 1));
  }
  return inodes;
}

/// TCP ports of this network namespace at which one of `inodes` listens, on other interfaces than
/// the loopback too.
std::set<int> open_ports(const std::set<std::string>& inodes) {
  std::set<int> ports;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(read_proc_file(file));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      if (state == "0A" && inodes.contains(inode) && !local.starts_with("0100007F"))
        ports.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

/// Connections to 127.0.0.1:`port`.
std::vector<Descriptor> held_connections(int port, int count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<Descriptor> open;
  for (int i = 0; i < count; ++i) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int done = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    if (done == 0 || errno == EINPROGRESS) open.push_back(std::move(socket));
  }
  return open;
}

class Listening : public test::SystemRuns {
 protected:
  Listening() {
    value_or_throw(
        write_file_durably(path("cluster.yaml"), "groups: [{role: policy, parallel: {tp: 2}}]"));
    fs::create_directory(path("out"));
  }
  /// Starts the launch; `prefix` starts it. Waits for some steps.
  void start(const std::string& prefix) {
    const std::string launched =
        cat("launch --cluster '", path("cluster.yaml"), "' -- ",
            arguments("sft", "out", "--set train.steps=100000 --set train.save_every=50000 "));
    start_command(cat(prefix, " ", command(launched)));
  }
  /// Stops the run, which must be intact.
  void stop() {
    child_->signal(SIGINT);
    EXPECT_EQ(child_->wait(), 130) << said();
  }
  /// Starts `command` and waits for some steps.
  void start_command(const std::string& command) {
    child_.emplace(cat("env ", mark_, " ", command), log());
    ASSERT_TRUE(child_->until([&] { return steps_written("out") >= 3; })) << said();
  }
  std::set<int> ports() const {
    std::set<std::string> inodes;
    std::size_t ranks = 0;
    for (const test::Process& each : test::processes_with(mark_)) {
      inodes.merge(sockets_of(each.pid));
      const auto has = [&](const char* words) {
        return each.command.find(words) != std::string::npos;
      };
      ranks += (has("/troupe worker") || has("/troupe train")) && !has("mpirun");
    }
    // Other users see only mpirun: processes that hold keys are hidden from them.
    if (::geteuid() == 0) {
      EXPECT_EQ(ranks, 2u);
    }
    EXPECT_FALSE(inodes.empty()) << "the sockets of the processes cannot be read";
    return open_ports(inodes);
  }
  std::string said() const { return read_file(log()).value_or(""); }
  std::uintmax_t log_bytes() const {
    std::uintmax_t all = fs::file_size(log());
    for (const auto& each : fs::directory_iterator(path("out/logs"))) all += each.file_size();
    return all;
  }

  const std::string mark_ =
      cat("TROUPE_TEST_MARK=", ::getpid(), "-", fs::path(folder_).filename().string());
  std::optional<test::Child> child_;
};

// Network namespaces are denied by a limit of 0 in a user namespace. The soft limit of open files
// is the usual one, below the number of connections that are held.
constexpr const char* without_namespaces =
    "unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && ulimit -S "
    "-n 1024 && exec \"$@\"' -";
constexpr const char* as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";

bool works(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

TEST_F(Listening, ALaunchHasNoOpenPort) {
  if (!works("'" TROUPE_PROGRAM "' loopback")) GTEST_SKIP() << "no network namespaces here";
  start("");
  EXPECT_THAT(ports(), testing::IsEmpty());
  EXPECT_THAT(said(), Not(HasSubstr("mpirun listens")));
  stop();
}

TEST_F(Listening, ALaunchOfNobodyHasNoOpenPort) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
  if (!works(cat(as_nobody, " '" TROUPE_PROGRAM "' loopback")))
    GTEST_SKIP() << "nobody cannot create network namespaces here, or not read the program";
  fs::permissions(testing::TempDir(), fs::perms::others_exec, fs::perm_options::add);
  for (const std::string& each : {folder_, path("out"), path("cluster.yaml")})
    ASSERT_EQ(::chown(each.c_str(), 65534, 65534), 0);
  start(as_nobody);
  EXPECT_THAT(ports(), testing::IsEmpty());
  EXPECT_THAT(said(), Not(HasSubstr("mpirun listens")));
  stop();
}

TEST_F(Listening, WhereNamespacesAreDeniedHeldConnectionsChangeNothing) {
  if (!works(cat(without_namespaces, " true"))) GTEST_SKIP() << "no user namespaces here";
  start(without_namespaces);
  EXPECT_THAT(said(), HasSubstr("mpirun listens on two ports of all network interfaces"));
  const std::set<int> open = ports();
  EXPECT_THAT(open, testing::SizeIs(2)) << "docs/security.md says so";
  const std::uintmax_t before = log_bytes();
  std::vector<std::vector<Descriptor>> held;
  for (const int port : open) held.push_back(held_connections(port, 1500));
  EXPECT_EQ(held.front().size(), 1500u);
  const std::size_t steps = steps_written("out");
  EXPECT_TRUE(child_->until([&] { return steps_written("out") >= steps + 30; })) << said();
  EXPECT_LT(log_bytes() - before, 1u << 20);
  stop();
}

TEST_F(Listening, RanksOfPlainMpirunOpenNoPorts) {
  if (!works("mpirun --version")) GTEST_SKIP() << "mpirun is not installed";
  start_command(cat("mpirun --allow-run-as-root --oversubscribe -n 2 ",
                    command(arguments("sft", "out",
                                      "--set parallel.tp=2 --set train.steps=100000 --set "
                                      "train.save_every=50000 "))));
  EXPECT_THAT(ports(), testing::SizeIs(2)) << "those of mpirun itself";
  child_->signal(SIGTERM);
  child_->wait();
}

TEST(Loopback, RunsACommandWithoutOtherInterfaces) {
  if (!works("'" TROUPE_PROGRAM "' loopback")) GTEST_SKIP() << "no network namespaces here";
  const launch::ProgramOutput got = launch::run_program("loopback -- cat /proc/net/dev");
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("lo:"));
  EXPECT_EQ(std::ranges::count(got.out, ':'), 1) << got.out;
  EXPECT_EQ(launch::run_program("loopback -- sh -c 'exit 5'").code, 5);
  EXPECT_EQ(launch::run_program("loopback -- /no/such/program").code, 4);
}

}  // namespace
}  // namespace troupe::hostile::listening_test
