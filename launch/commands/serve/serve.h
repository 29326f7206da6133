// `troupe serve`: an OpenAI-compatible server for one model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/commands/serve/end_signals.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/http/server.h"

namespace troupe::launch::commands {

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

/// Serves until a signal (end_signals.h), then finishes the accepted requests. Returns the exit
/// code. Throws Failure. Under mpirun, all ranks call it.
int serve(const ServeOptions& options);
/// serve() with models whose engine has started; it ends with them.
int serve_models(const ServeOptions& options, serve::api::ModelSet& models,
                 const EndSignals& signals);

}  // namespace troupe::launch::commands
