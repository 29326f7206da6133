#include "launch/commands/serve/serve.h"

#include <malloc.h>

#include <iostream>
#include <memory>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/base/log/log.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "launch/commands/serve/under_mpirun.h"
#include "launch/run/hangs.h"
#include "launch/serve/api/admin_api.h"
#include "launch/serve/api/api.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/formats/chat_formats.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::commands {

using engine::serving::ServiceCounters;

namespace {

/// NAME and DIR of an adapter, NAME=DIR.
std::pair<std::string, std::string> name_and_folder(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
    throw Failure({Errc::usage, cat("--adapter ", quote(text), ": expected NAME=DIR")});
  return {text.substr(0, sign), text.substr(sign + 1)};
}

void load_adapters(const ServeOptions& options, serve::api::ModelSet& models) {
  for (const std::string& adapter : options.adapters) {
    const auto [name, folder] = name_and_folder(adapter);
    if (auto loaded = models.load_adapter(name, folder); !loaded)
      throw Failure({loaded.error().code, cat("--adapter ", adapter, ": ", loaded.error().what)});
  }
}

std::unique_ptr<serve::http::Server> start_server(const ServeOptions& options,
                                                  serve::api::Api& endpoints) {
  serve::http::ApiKeys keys;
  if (!options.api_key_file.empty())
    keys = value_or_throw(serve::http::ApiKeys::read(options.api_key_file));
  std::shared_ptr<serve::http::AccessLog> log;
  if (!options.access_log.empty())
    log = value_or_throw(serve::http::AccessLog::open(options.access_log));
  return value_or_throw(serve::http::Server::start(options.server, endpoints.routes(),
                                                   std::move(keys), std::move(log)));
}

/// The listener that changes the server, with its endpoints.
struct Admin {
  std::unique_ptr<serve::api::AdminApi> endpoints;
  std::unique_ptr<serve::http::Server> server;  // ends first
};

Admin start_admin(const ServeOptions& options, serve::api::ModelSet& models) {
  const bool wanted = !options.admin_socket.empty() || options.admin_port >= 0;
  if (!wanted && !options.weights_root.empty())
    throw Failure({Errc::usage, "--weights-root needs --admin-socket or --admin-port"});
  if (!wanted) return {};
  if (models.first()->generation == nullptr)
    throw Failure({Errc::usage, "the admin listener changes generation, and the model has none"});
  std::optional<serve::api::WeightsRoot> root;
  if (!options.weights_root.empty())
    root = value_or_throw(serve::api::WeightsRoot::open(options.weights_root));
  serve::http::ServerOptions listener{.unix_socket = options.admin_socket, .threads = 1};
  serve::http::ApiKeys keys;
  if (options.admin_port >= 0) {
    listener.port = options.admin_port;
    keys = value_or_throw(serve::http::ApiKeys::read(options.admin_key_file));
  }
  Admin admin;
  admin.endpoints = std::make_unique<serve::api::AdminApi>(models, std::move(root));
  admin.server = value_or_throw(serve::http::Server::start(
      std::move(listener), admin.endpoints->routes(), std::move(keys), nullptr));
  std::cerr << for_terminal(cat("admin listener at ", admin.server->url())) << "\n";
  return admin;
}

/// The first line of stdout is for programs, stderr for the user.
void announce(const ServeOptions& options, const serve::api::ServedModel& model,
              const serve::http::Server& server, std::int64_t cached) {
  const bool local = !options.server.unix_socket.empty();
  std::cout << "listening on " << (local ? "unix:" : "") << server.url() << std::endl;
  Json body;
  body.set("model", model.name());
  if (model.pools())
    body.set("input", "Once upon a time");
  else
    body.set("prompt", "Once upon a time").set("max_tokens", 16);
  const char* pooling_path = model.labels() == 0 ? "/v1/embeddings" : "/pooling";
  const char* path = model.pools() ? pooling_path : "/v1/completions";
  const std::string cache = cached == 0 ? "" : cat(", cache of ", cached, " tokens");
  const std::string key = options.api_key_file.empty() ? "" : " -H 'Authorization: Bearer KEY'";
  std::cerr << for_terminal(cat("serving ", model.name(), ": context ", model.context(),
                                " tokens, batch of ", options.engine.max_batch, cache, "; try:"))
            << "\n  "
            << for_terminal(cat("curl ", local ? cat("--unix-socket ", server.url(), " ") : "",
                                local ? "http://localhost" : server.url(), path, key,
                                " -H 'Content-Type: application/json' -d '", body.dump(), "'"))
            << "\n";
}

/// One line per second while the server is busy.
void report_load(const ServiceCounters& before, const ServiceCounters& now) {
  const std::int64_t tokens = now.generated_tokens - before.generated_tokens;
  if (tokens == 0 && now.running == 0) return;
  const std::int64_t steps = now.steps - before.steps;
  log_info(
      cat(now.running, " running, ", now.waiting, " waiting, ", tokens, " tokens/s, batch ",
          to_text(steps == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(steps), 1),
          ", cache ", now.pages - now.free_pages - now.idle_pages, "/", now.pages,
          " pages, prefix hits ", now.prefix_hits - before.prefix_hits, "/",
          now.prefix_queries - before.prefix_queries, " tokens"));
}

}  // namespace

int serve_models(const ServeOptions& options, serve::api::ModelSet& models,
                 const EndSignals& signals) {
  load_adapters(options, models);
  serve::api::Api endpoints(models, options.version, serve::formats::chat_formats());
  Admin admin = start_admin(options, models);
  const auto server = start_server(options, endpoints);
  announce(options, *models.first()->model, *server,
           models.counters().pages * serve::api::page_tokens);
  ServiceCounters before = models.counters();
  while (!signals.wait()) {
    const ServiceCounters now = models.counters();
    report_load(before, now);
    before = now;
  }
  log_info(cat("stopping: requests in progress have ", options.drain_seconds, " s"));
  admin.server.reset();
  models.set_paused(false);
  endpoints.drain();
  const bool all = server->drain(std::chrono::seconds(options.drain_seconds));
  if (!all) log_warning("requests were cut off at the end of that time");
  models.stop();  // their sequences end while their responders exist
  return 0;
}

int serve(const ServeOptions& options) {
  // Blocks of bodies and answers go back to the system when they are freed; without a fixed
  // threshold glibc keeps them in its arenas after the first one.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  if (transports::mpi::under_mpirun()) return serve_under_mpirun(options);
  check_alone(options);
  const EndSignals signals;  // before any thread exists
  const run::HangGuard hangs;
  const auto models = value_or_throw(serve::api::ModelSet::load(options.model, options.engine));
  return serve_models(options, *models, signals);
}

}  // namespace troupe::launch::commands
