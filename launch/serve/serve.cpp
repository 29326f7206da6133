#include "launch/serve/serve.h"

#include <csignal>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/json.h"
#include "engine/base/log.h"
#include "engine/base/terminal_text.h"
#include "engine/base/text.h"
#include "engine/serving/generation_service.h"
#include "engine/serving/pooling_service.h"
#include "launch/serve/api/admin_api.h"
#include "launch/serve/api/api.h"

namespace troupe::launch {

using engine::serving::GenerationService;
using engine::serving::PoolingService;
using engine::serving::ServiceCounters;
using engine::serving::ServiceLimits;

namespace {

constexpr int page_tokens = 16;

/// Blocks the signals that end a server, in this thread and those that it starts, until the process
/// ends; wait() takes them. A second one does not end the process before the requests.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, number);
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

/// What computes the answers: one of them.
struct Engine {
  std::unique_ptr<GenerationService> generation;
  std::unique_ptr<PoolingService> pooling;

  api::Services services() const { return {generation.get(), pooling.get()}; }
  void stop() const {
    if (generation) generation->stop();
    if (pooling) pooling->stop();
  }
};

std::optional<Model> load_draft(const ServeOptions& options) {
  if (options.draft.empty()) return std::nullopt;
  ModelOptions of_draft = options.model.model;
  of_draft.model = options.draft;
  of_draft.adapter.clear();
  return value_or_throw(Model::load(of_draft, NeededHead::language));
}

Engine start_engine(const ServeOptions& options, api::ServedModel& model, Model* draft) {
  const ServiceLimits limits{.max_batch = options.max_batch,
                             .max_waiting = static_cast<std::size_t>(options.max_waiting),
                             .deadline = std::chrono::seconds(options.request_seconds)};
  if (model.pools())
    return {nullptr, std::make_unique<PoolingService>(model.decoder(), model.precision(), limits)};
  engine::generate::GeneratorConfig config;
  config.page_size = page_tokens;
  config.pages = static_cast<std::int32_t>((options.cache_tokens + page_tokens - 1) / page_tokens);
  config.longest = model.context();
  config.prefix_cache = !options.no_prefix_cache;
  config.lookup = options.lookup;
  if (draft != nullptr) config.draft = &draft->decoder();
  config.draft_tokens = options.draft_tokens;
  config.precision = model.precision();
  config.eos_ids = model.eos_ids();
  return {value_or_throw(GenerationService::start(model.decoder(), std::move(config), limits)),
          nullptr};
}

std::unique_ptr<http::Server> start_server(const ServeOptions& options, api::Api& endpoints) {
  http::ApiKeys keys;
  if (!options.api_key_file.empty())
    keys = value_or_throw(http::ApiKeys::read(options.api_key_file));
  std::shared_ptr<http::AccessLog> log;
  if (!options.access_log.empty()) log = value_or_throw(http::AccessLog::open(options.access_log));
  return value_or_throw(
      http::Server::start(options.server, endpoints.routes(), std::move(keys), std::move(log)));
}

/// The listener that changes the server, with its endpoints.
struct Admin {
  std::unique_ptr<api::AdminApi> endpoints;
  std::unique_ptr<http::Server> server;  // ends first
};

Admin start_admin(const ServeOptions& options, api::ServedModel& model, const Engine& engine) {
  const bool wanted = !options.admin_socket.empty() || options.admin_port >= 0;
  if (!wanted && !options.weights_root.empty())
    throw Failure({Errc::usage, "--weights-root needs --admin-socket or --admin-port"});
  if (!wanted) return {};
  if (!engine.generation)
    throw Failure({Errc::usage, "the admin listener changes generation, and the model has none"});
  std::optional<api::WeightsRoot> root;
  if (!options.weights_root.empty())
    root = value_or_throw(api::WeightsRoot::open(options.weights_root));
  http::ServerOptions listener{.unix_socket = options.admin_socket, .threads = 1};
  http::ApiKeys keys;
  if (options.admin_port >= 0) {
    listener.port = options.admin_port;
    keys = value_or_throw(http::ApiKeys::read(options.admin_key_file));
  }
  Admin admin;
  admin.endpoints = std::make_unique<api::AdminApi>(model, *engine.generation, std::move(root));
  admin.server = value_or_throw(http::Server::start(std::move(listener), admin.endpoints->routes(),
                                                    std::move(keys), nullptr));
  std::cerr << for_terminal(cat("admin listener at ", admin.server->url())) << "\n";
  return admin;
}

/// The first line of stdout is for programs, stderr for the user.
void announce(const ServeOptions& options, const api::ServedModel& model,
              const http::Server& server, std::int64_t pages) {
  std::cout << "listening on " << server.url() << std::endl;
  Json body;
  body.set("model", model.name());
  if (model.pools())
    body.set("input", "Once upon a time");
  else
    body.set("prompt", "Once upon a time").set("max_tokens", 16);
  const char* pooling_path = model.labels() == 0 ? "/v1/embeddings" : "/pooling";
  const char* path = model.pools() ? pooling_path : "/v1/completions";
  const std::string cache = pages == 0 ? "" : cat(", cache of ", pages * page_tokens, " tokens");
  const std::string key = options.api_key_file.empty() ? "" : " -H 'Authorization: Bearer KEY'";
  std::cerr << for_terminal(cat("serving ", model.name(), ": context ", model.context(),
                                " tokens, batch of ", options.max_batch, cache, "; try:"))
            << "\n  "
            << for_terminal(cat("curl ", server.url(), path, key,
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

int serve(const ServeOptions& options) {
  const EndSignals signals;  // before any thread exists
  api::ServedModel model = value_or_throw(api::ServedModel::load(options.model));
  std::optional<Model> draft = load_draft(options);
  const Engine engine = start_engine(options, model, draft ? &*draft : nullptr);
  const api::Services services = engine.services();
  api::Api endpoints(model, services, options.version);
  Admin admin = start_admin(options, model, engine);
  const auto server = start_server(options, endpoints);
  announce(options, model, *server, services.counters().pages);
  ServiceCounters before = services.counters();
  while (!signals.wait()) {
    const ServiceCounters now = services.counters();
    report_load(before, now);
    before = now;
  }
  log_info(cat("stopping: requests in progress have ", options.drain_seconds, " s"));
  admin.server.reset();
  if (engine.generation) engine.generation->resume();
  endpoints.drain();
  const bool all = server->drain(std::chrono::seconds(options.drain_seconds));
  if (!all) log_warning("requests were cut off at the end of that time");
  engine.stop();  // its sequences end while their responders exist
  return 0;
}

}  // namespace troupe::launch
