#include "launch/serve/live/rollout_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/fields.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/serve/api/api.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/formats/chat_formats.h"
#include "launch/serve/http/server.h"
#include "launch/serve/live/experience_api.h"
#include "launch/serve/live/sample_exchange.h"

namespace troupe::launch::live {

namespace {

/// Time of requests in progress at the end of a run; the processes of a cluster have 2 s.
constexpr std::chrono::seconds drain_time{1};
/// Time in which the rollout cannot take over weights, while it waits for samples.
constexpr std::chrono::milliseconds take_time{20};

api::ServedModelOptions model_options(const RunConfig& config) {
  return {.model = {.model = config.model,
                    .adapter = "",
                    .dtype = std::string(name_of(config.train.dtype)),
                    .threads = static_cast<int>(config.serve.threads),
                    .overrides = config.model_overrides,
                    .tokenizer_ids = config.tokenizer_ids},
          .name = config.serve.model_name,
          .chat_template = config.chat_template,
          .runner = "generate",
          .sampling = config.rollout.sampling,
          .names_versions = true};
}

api::EngineOptions engine_options(const RunConfig& config) {
  return {.max_batch = static_cast<std::int32_t>(config.serve.max_batch),
          .max_waiting = config.serve.max_waiting,
          .cache_tokens = config.serve.cache_tokens,
          .request_seconds = config.serve.request_timeout,
          .lookup = static_cast<std::int32_t>(config.rollout.lookup),
          .weights = config.rollout.weights};
}

/// Clients that may lease samples: rollout.lease_keys, all keys, or any process that can open the
/// socket.
Result<std::size_t> clients_of(const RunConfig& config, const http::ApiKeys& keys) {
  const auto names = keys.names();
  for (const std::string& key : config.rollout.lease_keys)
    if (std::ranges::find(names, key) == names.end())
      return fail(Errc::usage, cat("rollout.lease_keys: serve.api_key_file (",
                                   config.serve.api_key_file, ") has no key of the name ",
                                   quote(key), "; its keys are ", join(names, ", ")));
  const auto& chosen = config.rollout.lease_keys.empty() ? names : config.rollout.lease_keys;
  return std::max<std::size_t>(1, chosen.size());
}

std::int64_t longest_sample(const RunConfig& config, const api::ServedModel& model) {
  const std::int64_t given = config.train.max_length;
  return given > 0 ? std::min(given, model.context()) : model.context();
}

}  // namespace

struct RolloutServer::Impl {
  Impl(const RunConfig& config, std::unique_ptr<api::ModelSet> loaded, std::size_t clients)
      : models(std::move(loaded)),
        endpoints(*models, "troupe train", api::chat_formats()),
        makes_samples(config.rollout.source == SampleSource::service),
        between_sequences(!config.async.free()),
        exchange({.group = config.grpo.group,
                  .lease_time = std::chrono::seconds(config.rollout.lease_timeout),
                  .clients = clients,
                  .max_leases = static_cast<std::size_t>(config.rollout.max_leases)}),
        experience(exchange, sampled, version,
                   {.vocabulary = models->first()->model->vocabulary(),
                    .length = longest_sample(config, *models->first()->model),
                    .keys = config.rollout.lease_keys}) {
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

Result<std::shared_ptr<RolloutServer>> RolloutServer::start(const RunConfig& config) {
  const auto address = listen_address(config.serve.listen);
  RETURN_IF_ERROR(address);
  auto models = api::ModelSet::load(model_options(config), engine_options(config));
  RETURN_IF_ERROR(models);
  (*models)->set_paused(true);  // until there are weights
  http::ApiKeys keys;
  if (!config.serve.api_key_file.empty()) {
    auto read = http::ApiKeys::read(config.serve.api_key_file);
    RETURN_IF_ERROR(read);
    keys = std::move(*read);
  }
  const auto clients = clients_of(config, keys);
  RETURN_IF_ERROR(clients);
  auto impl = std::make_unique<Impl>(config, std::move(*models), *clients);
  http::Router routes = impl->endpoints.routes();
  if (impl->makes_samples) impl->experience.add_to(routes);
  auto server = http::Server::start({.host = address->host,
                                     .port = address->port,
                                     .unix_socket = address->unix_socket,
                                     .tls_cert = config.serve.tls_cert,
                                     .tls_key = config.serve.tls_key,
                                     .behind_tls_proxy = config.serve.behind_tls_proxy,
                                     .threads = 1},
                                    std::move(routes), std::move(keys), nullptr);
  if (!server)
    return fail(server.error().code,
                cat("serve.listen = ", quote(config.serve.listen), ": ", server.error().what,
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

}  // namespace troupe::launch::live
