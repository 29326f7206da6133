// Crew: the processes of a launch: started, listened to, watched and ended. One that dies ends all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/cluster/child_process.h"
#include "launch/cluster/process_log.h"

namespace troupe::launch {

/// A group that ended although nobody had asked it to.
struct Fallen {
  std::string node;
  pid_t pid = 0;
  std::string how;  ///< "was killed by signal 9 (Killed)"
  std::time_t when = 0;
  std::string last_words, log;
};

/// One sentence for all of them: who, when, how, their last words, and what to do. `output` is the
/// run's directory.
std::string sentence_of(const std::vector<Fallen>& fallen, const std::string& output);

struct CrewOptions {
  std::string output;  ///< the run's directory; what the processes print goes to its folder logs
  std::function<void()> on_death;  ///< called once, on the watcher's thread
  /// Deaths within this time of the first are told as one.
  std::chrono::milliseconds together{150};
  /// A lost connection mostly is a death that will be seen in a moment (mpirun needs one for its
  /// ranks). If not so soon, it counts itself.
  std::chrono::milliseconds silence{1000};
  /// When end() is not called so long after on_death, the watcher ends everybody and this process
  /// itself (exit_process_died).
  std::chrono::milliseconds patience{1000};
};

class Crew {
 public:
  /// Makes the folder of the logs. Throws Failure, as start() does.
  explicit Crew(CrewOptions options);
  ~Crew() { end(); }

  /// Starts a process and tells it `line`. All of them from one thread, which lives longer than
  /// they do, and before watch().
  void start(const std::string& node, const std::vector<std::string>& command,
             std::string_view line);
  void watch();

  /// From any thread: the group has not been heard for too long.
  void lost(const std::string& node, const std::string& why);
  /// True when somebody has died; waits so long for a sign of it, and then until on_death.
  bool fallen_within(std::chrono::milliseconds wait);

  /// Lets everybody go: their input ends, and who has not left after `time` is made to. False when
  /// somebody had to be.
  bool leave(std::chrono::milliseconds time = std::chrono::seconds(3));
  /// Ends everybody, SIGTERM and a second later SIGKILL, until no process is left, children's
  /// children included. Returns who had fallen.
  std::vector<Fallen> end();

 private:
  struct Member {
    std::string node;
    Child child;
    ChildLog log;
    bool alive = true;
    bool closed = false;                ///< nothing will be printed any more; the watcher's alone
    std::optional<std::string> silent;  ///< why it counts as lost
  };
  void watch_loop();
  void wait_for_news(std::vector<Member*>& printed, std::vector<Member*>& ended);
  void listen(Member& member);
  void bury(Member& member);
  void look_for_the_silent();
  void after_a_death();
  void give_up();
  void signal_all(int number);
  bool gone_within(std::chrono::milliseconds time);

  CrewOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  Descriptor wake_;
  std::thread watcher_;
  std::mutex
      mutex_;  // guards all below, Member::alive and Member::silent, and members_ until watch()
  std::condition_variable changed_;
  std::vector<Fallen> fallen_;
  std::optional<std::chrono::steady_clock::time_point> first_death_, first_silence_, told_;
  std::size_t alive_ = 0;
  bool ending_ = false, done_ = false;
};

}  // namespace troupe::launch
