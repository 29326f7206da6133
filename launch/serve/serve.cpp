#include "launch/serve/serve.h"

#include <csignal>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

Engine start_engine(const ServeOptions& options, api::ServedModel& model) {
  const ServiceLimits limits{.max_batch = options.max_batch,
                             .max_waiting = static_cast<std::size_t>(options.max_waiting),
                             .deadline = std::chrono::seconds(options.request_seconds)};
  if (model.pools())
    return {nullptr, std::make_unique<PoolingService>(model.decoder(), model.precision(), limits)};
  engine::generate::GeneratorConfig config;
  config.page_size = page_tokens;
  config.pages = static_cast<std::int32_t>((options.cache_tokens + page_tokens - 1) / page_tokens);
  config.longest = model.context();
  config.precision = model.precision();
  config.eos_ids = model.eos_ids();
  return {value_or_throw(GenerationService::start(model.decoder(), std::move(config), limits)),
          nullptr};
}

/// A model with its engine.
struct Host {
  Host(const ServeOptions& options, const api::ServedModelOptions& which)
      : model(value_or_throw(api::ServedModel::load(which))),
        engine(start_engine(options, model)) {}

  api::ServedModel model;
  Engine engine;
};

/// The options of an adapter, NAME=DIR.
api::ServedModelOptions adapter_options(const api::ServedModelOptions& base,
                                        const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
    throw Failure({Errc::usage, cat("--adapter ", quote(text), ": expected NAME=DIR")});
  api::ServedModelOptions options = base;
  options.name = text.substr(0, sign);
  options.model.adapter = text.substr(sign + 1);
  return options;
}

/// The model, and its adapters behind it.
std::vector<std::unique_ptr<Host>> load_models(const ServeOptions& options) {
  std::vector<std::unique_ptr<Host>> hosts;
  hosts.push_back(std::make_unique<Host>(options, options.model));
  if (!options.adapters.empty() && hosts[0]->model.pools())
    throw Failure({Errc::usage, "--adapter: the model generates no text"});
  if (!options.adapters.empty() && !options.weights_root.empty())
    throw Failure({Errc::usage,
                   "--adapter is not possible with --weights-root, which changes the "
                   "weights below the adapters"});
  for (const std::string& adapter : options.adapters) {
    const api::ServedModelOptions wanted = adapter_options(options.model, adapter);
    for (const auto& host : hosts)
      if (host->model.name() == wanted.name)
        throw Failure({Errc::usage, cat("--adapter: two models are called ", quote(wanted.name))});
    hosts.push_back(std::make_unique<Host>(options, wanted));
  }
  return hosts;
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

Admin start_admin(const ServeOptions& options, const std::vector<std::unique_ptr<Host>>& hosts) {
  const bool wanted = !options.admin_socket.empty() || options.admin_port >= 0;
  if (!wanted && !options.weights_root.empty())
    throw Failure({Errc::usage, "--weights-root needs --admin-socket or --admin-port"});
  if (!wanted) return {};
  std::vector<GenerationService*> services;
  for (const auto& host : hosts) services.push_back(host->engine.generation.get());
  if (services[0] == nullptr)
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
  admin.endpoints =
      std::make_unique<api::AdminApi>(hosts[0]->model, std::move(services), std::move(root));
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
          ", cache ", now.pages - now.free_pages, "/", now.pages, " pages"));
}

}  // namespace

int serve(const ServeOptions& options) {
  const EndSignals signals;  // before any thread exists
  const auto hosts = load_models(options);
  std::vector<api::Served> models;
  for (const auto& host : hosts) models.push_back({&host->model, host->engine.services()});
  api::Api endpoints(models, options.version);
  Admin admin = start_admin(options, hosts);
  const auto server = start_server(options, endpoints);
  announce(options, hosts[0]->model, *server, sum_of_counters(models).pages);
  ServiceCounters before = sum_of_counters(models);
  while (!signals.wait()) {
    const ServiceCounters now = sum_of_counters(models);
    report_load(before, now);
    before = now;
  }
  log_info(cat("stopping: requests in progress have ", options.drain_seconds, " s"));
  admin.server.reset();
  for (const auto& host : hosts)
    if (host->engine.generation) host->engine.generation->resume();
  endpoints.drain();
  const bool all = server->drain(std::chrono::seconds(options.drain_seconds));
  if (!all) log_warning("requests were cut off at the end of that time");
  for (const auto& host : hosts)
    host->engine.stop();  // its sequences end while their responders exist
  return 0;
}

}  // namespace troupe::launch
