#include "actors/roles/rollout.h"

#include <algorithm>
#include <chrono>

#include "actors/roles/weights.h"
#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/nn/borrowed_values.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/shard.h"
#include "engine/train/scoring.h"
#include "transports/body.h"
#include "transports/wire/flat.h"

namespace troupe::actors::roles {

Rollout::Rollout(std::unique_ptr<engine::models::Decoder> model,
                 std::unique_ptr<engine::models::Decoder> shadow,
                 std::unique_ptr<engine::serving::Engine> engine,
                 const engine::generate::GeneratorConfig& config,
                 const engine::parallel::Mesh* mesh)
    : model_(std::move(model)),
      shadow_(std::move(shadow)),
      engine_(std::move(engine)),
      decode_(config.decode),
      precision_(config.precision),
      mesh_(mesh),
      borrows_(shadow_ && reads_in_place(*shadow_)),
      arriving_(trained_values(model_->spec())) {
}

Result<Rollout> Rollout::create(std::unique_ptr<engine::models::Decoder> model,
                                std::unique_ptr<engine::models::Decoder> shadow,
                                engine::generate::GeneratorConfig config,
                                const engine::parallel::Mesh* mesh) {
  check((shadow == nullptr) == model->spec().lora.has_value(),
        "Rollout: a shadow for a whole model, none for an adapter");
  if (model->spec().labels > 0)
    return fail(Errc::usage,
                cat("a rollout draws tokens, and this model (", model->spec().architecture,
                    ") has a score head and no language head"));
  auto engine = std::make_unique<engine::serving::Engine>(*model, config);
  RETURN_IF_ERROR(engine->start());
  return Rollout(std::move(model), std::move(shadow), std::move(engine), config, mesh);
}

namespace {

// Gathers the samples of all replicas, in the order of the replicas. A failure of one replica is a
// failure of all.
Result<std::vector<protocol::Completion>> gather_samples(
    engine::parallel::Communicator& replicas, Result<std::vector<protocol::Completion>> mine) {
  using Outcome = std::pair<std::string, std::vector<protocol::Completion>>;
  Outcome outcome = mine ? Outcome{"", std::move(*mine)} : Outcome{mine.error().what, {}};
  const auto bytes = transports::wire::flatten(transports::Body::of(std::move(outcome)).to_wire());
  std::vector<protocol::Completion> all;
  std::optional<Error> failed;
  for (auto& part :
       engine::parallel::gather_strings(replicas, bytes, "the samples of all replicas")) {
    auto wire =
        value_or_throw(transports::wire::unflatten(std::move(part), "samples of a replica"));
    auto body = transports::Body::of_wire(std::move(wire), "samples of a replica");
    auto [error, drawn] = body.take<Outcome>();
    if (!error.empty() && !failed)
      failed = Error{mine ? Errc::internal : mine.error().code, std::move(error)};
    std::move(drawn.begin(), drawn.end(), std::back_inserter(all));
  }
  if (failed) return fail(std::move(*failed));
  return all;
}

}  // namespace

Result<std::vector<protocol::Completion>> Rollout::on(protocol::Generate message) {
  if (!mesh_ || mesh_->dp().size() == 1) return draw(std::move(message));
  const auto share = engine::parallel::even_range(
      static_cast<std::int64_t>(message.requests.size()), mesh_->dp().rank(), mesh_->dp().size());
  message.requests =
      std::vector(message.requests.begin() + share.begin, message.requests.begin() + share.end);
  // A logit that is not finite throws; the other replicas must be notified, because they wait for
  // this one.
  Result<std::vector<protocol::Completion>> mine;
  try {
    mine = draw(std::move(message));
  } catch (const Failure& failure) {
    mine = fail(failure.error());
  }
  return gather_samples(mesh_->dp(), std::move(mine));
}

Result<std::vector<protocol::Completion>> Rollout::draw(protocol::Generate message) {
  RETURN_IF_ERROR(begin(std::move(message)));
  const std::shared_ptr<void> last(nullptr, [this](void*) { engine_->discard_all(); });
  for (;;)
    if (auto all = step()) return std::move(*all);
}

Stepwise<std::vector<protocol::Completion>> Rollout::in_steps(protocol::Generate message) {
  if (service_ && service_->makes_samples()) return take_samples(message);
  auto kept = std::make_shared<protocol::Generate>(std::move(message));
  if (!change_)
    return {[this, kept]() -> std::optional<std::vector<protocol::Completion>> {
      return value_or_throw(on(std::move(*kept)));
    }};
  value_or_throw(begin(std::move(*kept)));
  // A computation that ends early leaves no request behind.
  const std::shared_ptr<void> last(nullptr, [this](void*) { engine_->discard_all(); });
  return {[this, last] { return step(); }};
}

// Other programs may take long: the reply is what there is after a second, so that the run can end.
Stepwise<std::vector<protocol::Completion>> Rollout::take_samples(
    const protocol::Generate& message) {
  using Clock = std::chrono::steady_clock;
  service_->offer(message.requests, version_);
  const auto made = std::make_shared<std::vector<protocol::Completion>>();
  return {[this, made, wanted = message.requests.size(),
           end = Clock::now() +
                 std::chrono::seconds(1)]() -> std::optional<std::vector<protocol::Completion>> {
    for (auto& completion : service_->take()) {
      const auto oldest =
          std::ranges::min_element(completion.versions, {}, &protocol::VersionRun::version);
      completion.updates = std::prev(updates_.upper_bound(oldest->version))->second;
      completion.text = decode_ ? decode_(completion.ids) : std::string();
      made->push_back(std::move(completion));
    }
    if (made->size() < wanted && Clock::now() < end) return std::nullopt;
    return std::move(*made);
  }};
}

/// Submits the requests, whose ids are their indices, or none.
Result<> Rollout::begin(protocol::Generate message) {
  updates_ = {{version_, updates_.at(version_)}};
  drawn_.clear();
  ended_.clear();
  for (auto& draw : message.requests) {
    const std::size_t index = drawn_.size();
    drawn_.push_back({.sample_id = draw.sample_id});
    engine::serving::Job job;
    job.sample_id = draw.sample_id;
    job.request = std::make_shared<const engine::generate::Request>(
        engine::generate::Request{.prompt = std::move(draw.prompt), .params = message.sampling});
    job.on_end = [this](auto result) { ended_.push_back(std::move(result)); };
    engine_->submit(index, std::move(job));
    if (ended_.empty()) continue;
    engine_->discard_all();
    return fail(ended_.front());
  }
  return {};
}

std::optional<std::vector<protocol::Completion>> Rollout::step() {
  engine_->step();
  for (auto& ended : std::exchange(ended_, {})) {
    auto done = value_or_throw(std::move(ended));
    const std::size_t index = done.id;
    const auto oldest = done.versions.empty() ? version_ : done.versions.front();
    drawn_[index] = completion_of(std::move(done), decode_, updates_.at(oldest));
  }
  if (!engine_->idle()) return std::nullopt;
  return std::move(drawn_);
}

std::uint64_t Rollout::on(const protocol::CancelSamples& message) {
  std::uint64_t cancelled = 0;
  const auto& ids = message.sample_ids;
  for (std::size_t n = 0; n < drawn_.size(); ++n) {
    const bool named = ids.empty() || std::ranges::find(ids, drawn_[n].sample_id) != ids.end();
    if (named && engine_->cancel(n)) ++cancelled;
  }
  return cancelled;
}

protocol::Completion completion_of(engine::generate::Generation done,
                                   const engine::generate::TextDecoder& decode,
                                   std::uint64_t updates) {
  std::string text = done.text.empty() && decode ? decode(done.ids) : std::move(done.text);
  return {.sample_id = done.sample_id,
          .ids = std::move(done.ids),
          .logp = std::move(done.sampling_logp),
          .masks = std::move(done.masks),
          .text = std::move(text),
          .finish_reason = done.finish,
          .versions = version_runs(done.versions),
          .updates = updates,
          .interruptions = done.interruptions,
          .restarts = done.restarts};
}

std::vector<protocol::VersionRun> version_runs(const std::vector<std::uint64_t>& versions) {
  std::vector<protocol::VersionRun> runs;
  for (const std::uint64_t version : versions) {
    if (runs.empty() || runs.back().version != version) runs.push_back({version, 0});
    ++runs.back().count;
  }
  return runs;
}

Result<> Rollout::on(protocol::LoadWeights message) {
  return arriving_.load(message.part, base_);
}

Result<> Rollout::on(protocol::MapWeights message) {
  return arriving_.map(message);
}

Result<std::vector<float>> Rollout::on(protocol::PrepareWeights message) {
  auto& weights = message.weights;
  prepared_.reset();
  RETURN_IF_ERROR(complete(weights, arriving_));
  RETURN_IF_ERROR(verify(weights, model_->spec()));
  std::vector<float> logp;
  if (shadow_) {
    set_values(weights.values, *shadow_);
    logp = probe(*shadow_, weights);
  } else {
    logp = prepare_adapter(weights);
  }
  prepared_ = weights.version;
  prepared_updates_ = weights.updates;
  if (borrows_ || !shadow_ || service_) prepared_values_ = weights.values;
  return logp;
}

std::vector<float> Rollout::probe(engine::models::Decoder& model,
                                  const protocol::Weights& weights) {
  return engine::train::logprobs(model, probe_batch(weights.probe.tokens),
                                 {.precision = precision_});
}

// An adapter is small: it replaces the current one during the probe, and is then kept on the host.
std::vector<float> Rollout::prepare_adapter(const protocol::Weights& weights) {
  auto& trained = model_->parameters().trained();
  const auto present = engine::ops::to_host(trained.device(), trained.values());
  set_values(weights.values, *model_);
  prepared_adapter_ = engine::ops::to_host(trained.device(), trained.values());
  auto logp = probe(*model_, weights);
  trained.device().upload(trained.values(), present);
  return logp;
}

// The memory of the former weights receives the next ones; a borrowed array is released instead.
void Rollout::use_shadow() {
  engine::nn::swap_values(model_->parameters(), shadow_->parameters());
  if (borrows_) engine::nn::share_values(model_->parameters(), shadow_->parameters());
}

Result<> Rollout::on(protocol::CommitWeights message) {
  if (prepared_ != message.version)
    return fail(Errc::bad_input,
                cat("weights of version ", message.version, " were not prepared (",
                    prepared_ ? cat("version ", *prepared_, " was") : "nothing was", ")"));
  const auto use = [this]() -> Result<> {
    if (shadow_)
      use_shadow();
    else
      model_->device().upload(model_->parameters().trained().values(), prepared_adapter_);
    return {};
  };
  RETURN_IF_ERROR(
      engine_->set_weights({.write = use,
                            .version = message.version,
                            .effect = change_.value_or(engine::generate::WeightChange())}));
  prepared_.reset();
  version_ = message.version;
  base_ = {version_, std::exchange(prepared_values_, {})};
  updates_[version_] = prepared_updates_;
  if (service_) service_->adopt(version_, base_.values);
  return {};
}

}  // namespace troupe::actors::roles
