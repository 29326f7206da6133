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
#include "launch/serve/api/api.h"

namespace troupe::launch {

using engine::serving::GenerationService;
using engine::serving::ServiceCounters;

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

std::optional<Model> load_draft(const ServeOptions& options) {
  if (options.draft.empty()) return std::nullopt;
  ModelOptions of_draft = options.model.model;
  of_draft.model = options.draft;
  of_draft.adapter.clear();
  return value_or_throw(Model::load(of_draft, NeededHead::language));
}

std::unique_ptr<GenerationService> start_service(const ServeOptions& options,
                                                 api::ServedModel& model, Model* draft) {
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
  return value_or_throw(
      GenerationService::start(model.decoder(), std::move(config),
                               {.max_batch = options.max_batch,
                                .max_waiting = static_cast<std::size_t>(options.max_waiting),
                                .deadline = std::chrono::seconds(options.request_seconds)}));
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

/// The first line of stdout is for programs, stderr for the user.
void announce(const ServeOptions& options, const api::ServedModel& model,
              const http::Server& server, std::int64_t pages) {
  std::cout << "listening on " << server.url() << std::endl;
  Json body;
  body.set("model", model.name()).set("prompt", "Once upon a time").set("max_tokens", 16);
  const std::string key = options.api_key_file.empty() ? "" : " -H 'Authorization: Bearer KEY'";
  std::cerr << for_terminal(cat("serving ", model.name(), ": context ", model.context(),
                                " tokens, batch of ", options.max_batch, ", cache of ",
                                pages * page_tokens, " tokens; try:"))
            << "\n  "
            << for_terminal(cat("curl ", server.url(), "/v1/completions", key,
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
  const auto service = start_service(options, model, draft ? &*draft : nullptr);
  api::Api endpoints(model, *service, options.version);
  const auto server = start_server(options, endpoints);
  announce(options, model, *server, service->counters().pages);
  ServiceCounters before = service->counters();
  while (!signals.wait()) {
    const ServiceCounters now = service->counters();
    report_load(before, now);
    before = now;
  }
  log_info(cat("stopping: requests in progress have ", options.drain_seconds, " s"));
  endpoints.drain();
  const bool all = server->drain(std::chrono::seconds(options.drain_seconds));
  if (!all) log_warning("requests were cut off at the end of that time");
  service->stop();  // its sequences end while their responders exist
  return 0;
}

}  // namespace troupe::launch
