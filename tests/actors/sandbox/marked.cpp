#include "tests/actors/sandbox/marked.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actors/sandbox/process.h"
#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/base/processes/process_tree.h"

namespace troupe::actors::sandbox {

std::string denied(Isolation isolation) {
  Limits limits;
  limits.isolation = isolation;
  const auto plan = make_plan({"true"}, limits, "test");
  check(plan.has_value(), "every system has a program called true");
  HelperSupervisor helpers;
  const auto process = Process::start(helpers, *plan);
  return process || process.error().code != Errc::unsupported ? "" : process.error().what;
}

std::vector<int> marked_ids(const std::string& mark) {
  std::vector<int> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string id = at->path().filename().string();
    if (id.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = read_proc_file((at->path() / "cmdline").string());
    if (words.find(mark + '\0') != words.npos) found.push_back(std::stoi(id));
  }
  return found;
}

int marked_processes(const std::string& mark) {
  return static_cast<int>(marked_ids(mark).size());
}

int helper_id() {
  for (const ProcessEntry& entry : descendants())
    if (entry.parent == ::getpid() && !entry.ended &&
        read_proc_file("/proc/" + std::to_string(entry.id) + "/comm") == "troupe-sandbox\n")
      return entry.id;
  return 0;
}

int stopped_processes(std::string_view name) {
  int found = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string state = read_proc_file((at->path() / "stat").string());
    found += state.find("(" + std::string(name) + ") T ") != state.npos;
  }
  return found;
}

std::string hostile_program() {
  const char* given = std::getenv("TROUPE_HOSTILE");
  return given != nullptr ? given : TROUPE_HOSTILE;
}

bool soon(const std::function<bool()>& done) {
  for (int i = 0; i < 1000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Listener::Listener()
    : tcp_(::socket(AF_INET, SOCK_STREAM, 0)), local_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::bind(tcp_, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 && ::listen(tcp_, 4) == 0,
        "a port of this machine");
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::strncpy(local.sun_path + 1, name().c_str(), sizeof local.sun_path - 2);
  const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name().size());
  check(::bind(local_, reinterpret_cast<sockaddr*>(&local), size) == 0 && ::listen(local_, 4) == 0,
        "a name of this machine");
}
Listener::~Listener() {
  ::close(tcp_);
  ::close(local_);
}
std::string Listener::port() const {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(tcp_, reinterpret_cast<sockaddr*>(&bound), &size);
  return std::to_string(ntohs(bound.sin_port));
}
std::string Listener::name() const {
  return "troupe-test-" + std::to_string(::getpid());
}

UnixListener::UnixListener()
    : folder_(std::filesystem::temp_directory_path().string() + "/troupe-test-XXXXXX"),
      socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  check(::mkdtemp(folder_.data()) != nullptr && ::chmod(folder_.c_str(), 0755) == 0,
        "a folder of this test");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path().c_str(), sizeof name.sun_path - 1);
  check(::bind(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0 &&
            ::listen(socket_, 4) == 0 && ::chmod(path().c_str(), 0777) == 0,
        "a socket of this test");
}
UnixListener::~UnixListener() {
  ::close(socket_);
  std::filesystem::remove_all(folder_);
}

Secret::Secret() : path_(testing::TempDir() + "troupe-secret-XXXXXX") {
  file_ = ::mkstemp(path_.data());  // without close-on-exec
  check(file_ >= 0, "a private file");
  ::setenv("TROUPE_TEST_SECRET", "a key", 1);
}
Secret::~Secret() {
  ::close(file_);
  ::unlink(path_.c_str());
  ::unsetenv("TROUPE_TEST_SECRET");
}

TemporaryFolder::TemporaryFolder() : before_(std::filesystem::temp_directory_path().string()) {
  path_ = before_ + "/troupe-test-XXXXXX";
  check(::mkdtemp(path_.data()) != nullptr && ::chmod(path_.c_str(), 0755) == 0,
        "a folder of this test");
  ::setenv("TMPDIR", path_.c_str(), 1);
}
TemporaryFolder::~TemporaryFolder() {
  ::setenv("TMPDIR", before_.c_str(), 1);
  std::filesystem::remove_all(path_);
}

}  // namespace troupe::actors::sandbox
