#include "actors/sandbox/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "actors/sandbox/census.h"
#include "actors/sandbox/contained_program.h"
#include "actors/sandbox/helper_messages.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/processes/pipe.h"

namespace troupe::actors::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Intervals of the census: while programs compute, and while all of them wait.
constexpr milliseconds busy_interval{50}, idle_interval{100};

// A program and the socket of the process that uses it.
struct Client {
  Descriptor socket;
  std::unique_ptr<ContainedProgram> program;
};

bool send_start(const Client& client, const Result<>& started) {
  StartReply reply;
  reply.started = started.has_value();
  if (!started) {
    reply.code = started.error().code;
    started.error().what.copy(reply.what.data(), reply.what.size() - 1);
    return send_message(client.socket.get(), bytes_of(reply));
  }
  reply.id = client.program->id();
  const int exited = client.program->exited();
  return send_message(client.socket.get(), bytes_of(reply), {&exited, 1});
}

class Helper {
 public:
  explicit Helper(int parent) : parent_(parent) {}

  // Returns when the parent has ended.
  void run() {
    while (true) {
      const std::vector<bool> ready = wait();
      std::size_t at = 1;
      for (auto client = clients_.begin(); client != clients_.end(); at += 2) {
        const bool reported = ready[at], asked = ready[at + 1];
        const bool keep = (!reported || finish_setup(*client)) && (!asked || answer(*client));
        client = keep ? std::next(client) : clients_.erase(client);
      }
      if (ready[0] && !accept()) return;
      if (Clock::now() >= next_census_) measure();
    }
  }

 private:
  // Descriptors of the parent, then the report and the socket of each client.
  std::vector<bool> wait() const {
    std::vector<int> watched{parent_};
    for (const Client& client : clients_) {
      watched.push_back(client.program->setup_report());
      watched.push_back(client.socket.get());
    }
    return wait_readable(watched, clients_.empty() ? Clock::time_point::max() : next_census_);
  }

  // False at the end of the parent.
  bool accept() {
    char byte = 0;
    std::vector<Descriptor> received;
    if (!receive_message(parent_, &byte, 1, &received)) return false;
    if (received.size() != 4) return true;
    Client client{std::move(received[0]), nullptr};
    auto plan = receive_plan(client.socket.get());
    if (!plan) return true;
    auto program = ContainedProgram::create(
        std::move(*plan), {std::move(received[1]), std::move(received[2]), std::move(received[3])},
        ++started_);
    if (!program) {
      send_start(client, fail(program.error()));
      return true;
    }
    client.program = std::move(*program);
    clients_.push_back(std::move(client));
    return true;
  }

  // These return false when the client is over, which kills its program.
  bool finish_setup(const Client& client) const {
    const auto started = client.program->finish_setup();
    return send_start(client, started) && started;
  }
  bool answer(const Client& client) const {
    char request = 0;
    if (!receive_message(client.socket.get(), &request, 1)) return false;
    if (request == usage_request)
      return send_message(client.socket.get(),
                          bytes_of(UsageReply{client.program->processor_seconds()}));
    send_message(client.socket.get(), bytes_of(client.program->kill()));
    return false;
  }

  void measure() {
    bool active = false;
    const auto processes = clients_.empty() ? std::vector<ProcessEntry>() : descendants();
    for (auto client = clients_.begin(); client != clients_.end();) {
      active |= client->program->measure(processes);
      const bool keep = !client->program->setup_overdue(Clock::now()) || finish_setup(*client);
      client = keep ? std::next(client) : clients_.erase(client);
    }
    next_census_ = Clock::now() + (active ? busy_interval : idle_interval);
  }

  int parent_;
  std::list<Client> clients_;
  unsigned started_ = 0;
  Clock::time_point next_census_ = Clock::now();
};

// A signal that continues a stopped process: at the end of the parent, a helper that was stopped
// sees the end of its socket, kills the programs and exits.
[[noreturn]] void run_helper() {
  ::prctl(PR_SET_NAME, helper_name.data());
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Its session is its own, so signals of the terminal are for the parent, whose end ends it.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) ::signal(number, SIG_IGN);
  struct stat about {};
  if (::fstat(helper_socket, &about) != 0 || !S_ISSOCK(about.st_mode)) ::_exit(2);
  ::fcntl(helper_socket, F_SETFD, FD_CLOEXEC);
  if (::chdir("/") != 0) ::_exit(1);
  counts_shared_mappings();  // reads its own mappings while it can
  Helper(helper_socket).run();
  ::_exit(0);
}

bool checked = false;  // written before main() starts a thread

}  // namespace

void run_if_helper(int argc, const char* const* argv) {
  checked = true;
  if (argc == 1 && argv[0] == helper_name) run_helper();
}

bool can_be_helper() {
  return checked;
}

void protect_memory() {
  const rlimit none{0, 0};
  ::prctl(PR_SET_DUMPABLE, 0);
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace troupe::actors::sandbox
