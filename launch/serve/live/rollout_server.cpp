#include "launch/serve/live/rollout_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/api.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/formats/chat_formats.h"
#include "launch/serve/http/server.h"
#include "launch/serve/live/experience_api.h"
#include "launch/serve/live/sample_exchange.h"

namespace troupe::launch::serve::live {

namespace {

/// Time of requests in progress at the end of a run; the processes of a cluster have 2 s.
constexpr std::chrono::seconds drain_time{1};
/// Time in which the rollout cannot take over weights, while it waits for samples.
constexpr std::chrono::milliseconds take_time{20};

/// Clients that may lease samples: rollout.lease_keys, all keys, or any process that can open the
/// socket.
Result<std::size_t> clients_of(const RolloutServerOptions& options, const http::ApiKeys& keys) {
  const auto names = keys.names();
  for (const std::string& key : options.lease_keys)
    if (std::ranges::find(names, key) == names.end())
      return fail(Errc::usage, cat("rollout.lease_keys: serve.api_key_file (",
                                   options.serve.api_key_file, ") has no key of the name ",
                                   quote(key), "; its keys are ", join(names, ", ")));
  const auto& chosen = options.lease_keys.empty() ? names : options.lease_keys;
  return std::max<std::size_t>(1, chosen.size());
}

std::int64_t longest_sample(const RolloutServerOptions& options, const api::ServedModel& model) {
  const std::int64_t given = options.max_length;
  return given > 0 ? std::min(given, model.context()) : model.context();
}

}  // namespace

struct RolloutServer::Impl {
  Impl(const RolloutServerOptions& options, std::unique_ptr<api::ModelSet> loaded,
       std::size_t clients)
      : models(std::move(loaded)),
        endpoints(*models, "troupe train", formats::chat_formats()),
        makes_samples(options.makes_samples),
        between_sequences(options.between_sequences),
        exchange({.group = options.group,
                  .lease_time = options.lease_timeout,
                  .clients = clients,
                  .max_leases = static_cast<std::size_t>(options.max_leases)}),
        experience(exchange, sampled, version,
                   {.vocabulary = models->first()->model->vocabulary(),
                    .length = longest_sample(options, *models->first()->model),
                    .keys = options.lease_keys,
                    .mask_bytes = options.mask_bytes,
                    .masks_required = options.masks_required}) {
    if (makes_samples) endpoints.record(sampled, [this] { return experience.metrics(); });
  }

  std::unique_ptr<api::ModelSet> models;
  api::SampledTokens sampled;
  api::Api endpoints;
  const bool makes_samples;
  const bool between_sequences;  ///< weights change between two sequences, not two tokens
  std::atomic<std::uint64_t> version = 0;
  SampleExchange exchange;
  ExperienceApi experience;
  std::unique_ptr<http::Server> server;  // ends first
};

RolloutServer::RolloutServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}

Result<std::shared_ptr<RolloutServer>> RolloutServer::start(const RolloutServerOptions& options) {
  const auto address = listen_address(options.serve.listen);
  RETURN_IF_ERROR(address);
  auto models = api::ModelSet::load(options.model, options.engine);
  RETURN_IF_ERROR(models);
  (*models)->set_paused(true);  // until there are weights
  http::ApiKeys keys;
  if (!options.serve.api_key_file.empty()) {
    auto read = http::ApiKeys::read(options.serve.api_key_file);
    RETURN_IF_ERROR(read);
    keys = std::move(*read);
  }
  const auto clients = clients_of(options, keys);
  RETURN_IF_ERROR(clients);
  auto impl = std::make_unique<Impl>(options, std::move(*models), *clients);
  http::Router routes = impl->endpoints.routes();
  if (impl->makes_samples) impl->experience.add_to(routes);
  auto server = http::Server::start({.host = address->host,
                                     .port = address->port,
                                     .unix_socket = address->unix_socket,
                                     .tls_cert = options.serve.tls_cert,
                                     .tls_key = options.serve.tls_key,
                                     .behind_tls_proxy = options.serve.behind_tls_proxy,
                                     .threads = 1},
                                    std::move(routes), std::move(keys), nullptr);
  if (!server)
    return fail(server.error().code,
                cat("serve.listen = ", quote(options.serve.listen), ": ", server.error().what,
                    " (a run has these options in its section serve)"));
  impl->server = std::move(*server);
  log_info(cat("serving the weights of the rollout at ", impl->server->url()));
  return std::shared_ptr<RolloutServer>(new RolloutServer(std::move(impl)));
}

RolloutServer::~RolloutServer() {
  impl_->endpoints.drain();
  impl_->models->set_paused(false);
  if (!impl_->server->drain(drain_time))
    log_info("requests to the rollout's server were cut off at the end of the run");
  impl_->models->stop();  // their sequences end while their responders exist
}

void RolloutServer::adopt(std::uint64_t version, const SharedArray<float>& values) {
  impl_->version = version;
  impl_->models->adopt_weights(version, values, impl_->between_sequences);
  impl_->models->set_paused(false);
}

bool RolloutServer::makes_samples() const {
  return impl_->makes_samples;
}

void RolloutServer::offer(const std::vector<actors::protocol::SampleRequest>& requests,
                          std::uint64_t version) {
  impl_->exchange.offer(requests, version);
}

std::vector<actors::protocol::Completion> RolloutServer::take() {
  return impl_->exchange.take(take_time);
}

}  // namespace troupe::launch::serve::live
