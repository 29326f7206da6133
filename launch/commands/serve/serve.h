// `troupe serve`: an OpenAI-compatible server for one model.
#pragma once

#include <csignal>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <string>
#include <vector>

#include "launch/serve/api/model_set.h"
#include "launch/serve/http/server.h"

namespace troupe::launch::commands {

/// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 (which mpirun forwards) in this thread and
/// in those that it starts, until the process ends; wait() takes them. A second one does not end
/// the process before the requests.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
      sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    // A client that disconnects is no reason to end.
    std::signal(SIGPIPE, SIG_IGN);
  }

  /// Waits for a signal, at most a second; false if none came.
  bool wait() const {
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    return sigtimedwait(&signals_, nullptr, &second) > 0;
  }

 private:
  sigset_t signals_{};
};

struct ServeOptions {
  serve::api::ServedModelOptions model;
  std::vector<std::string> adapters;  ///< NAME=DIR: adapters of the model, named in requests
  serve::http::ServerOptions server;
  std::string api_key_file;      ///< "": no keys
  std::string access_log;        ///< "": none
  std::string admin_socket;      ///< path of the admin listener; "": none
  std::int32_t admin_port = -1;  ///< of an admin listener at 127.0.0.1; 0: any; -1: none
  std::string admin_key_file;    ///< for admin_port
  std::string weights_root;      ///< folder of checkpoints; "": none
  serve::api::EngineOptions engine;
  std::int64_t timeout = 600;   ///< seconds that a rank waits for another
  std::int32_t tp = 1, pp = 1;  ///< sizes of the axes over which ranks of mpirun share the model
  std::int64_t drain_seconds = 30;  ///< after SIGTERM
  std::string version;              ///< of the program, for /version
};

/// Serves until a signal (EndSignals), then finishes the accepted requests. Returns the exit
/// code. Throws Failure. Under mpirun, all ranks call it.
int serve(const ServeOptions& options);
/// serve() with models whose engine has started; it ends with them.
int serve_models(const ServeOptions& options, serve::api::ModelSet& models,
                 const EndSignals& signals);

}  // namespace troupe::launch::commands
