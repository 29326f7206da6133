#include "actors/roles/trainer.h"

#include "actors/roles/weights.h"
#include "engine/base/environment/available_memory.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::actors::roles {

Trainer::Trainer(std::unique_ptr<engine::train::Trainer> trainer, engine::loss::LossTable losses,
                 Saver save, const engine::parallel::Mesh* mesh, std::string label)
    : trainer_(std::move(trainer)),
      losses_(std::move(losses)),
      save_(std::move(save)),
      mesh_(mesh),
      label_(std::move(label)) {
}

// Logged, because metrics do not depend on threads and micro-batches.
Trainer::~Trainer() {
  if (!trainer_ || !saved_ || label_.empty() || (mesh_ && !mesh_->is_root())) return;
  constexpr double mib = 1024 * 1024;
  log_info(cat("peak resident memory ",
               to_text(static_cast<double>(peak_resident_memory()) / mib, 0),
               " MiB of the process (", label_, ", rank 0)"));
}

Result<protocol::StepStats> Trainer::on(protocol::TrainStep message) {
  const auto loss = engine::loss::make_loss(losses_, message.loss);
  RETURN_IF_ERROR(loss);
  const auto found = trainer_->forward_backward(message.batch, *loss);
  const auto updated = trainer_->update(message.learning_rate);
  if (!updated)
    return fail(updated.error().code, cat("step ", trainer_->version() + 1, ", loss ", found.loss,
                                          ": ", updated.error().what));
  protocol::StepStats stats{found.loss,
                            updated->grad_norm,
                            message.learning_rate,
                            static_cast<double>(found.tokens),
                            trainer_->version(),
                            {}};
  stats.entropy = found.report.find(engine::loss::entropy_statistic);
  stats.ratio = found.report.find(engine::loss::ratio_statistic);
  for (const auto& [name, value] : found.report.values()) stats.metrics.emplace_back(name, value);
  stats.experts = {found.experts.layers, found.experts.counts};
  if (const auto* scale = trainer_->loss_scale()) {
    stats.metrics.emplace_back("loss_scale", scale->value());
    stats.metrics.emplace_back("skipped", static_cast<double>(scale->state().skipped));
  }
  return stats;
}

std::vector<float> Trainer::on(protocol::Logprobs message) {
  if (message.base && !trainer_->model().spec().lora)
    throw Failure({Errc::bad_input,
                   "log-probabilities of the base need a model with an adapter; this one is "
                   "trained whole"});
  return trainer_->logprobs(message.batch, message.temperature, message.base);
}

std::vector<float> Trainer::on(protocol::Score message) {
  return trainer_->scores(message.batch, message.at, message.candidates);
}

// The receivers that read the former values where they lie keep them alive.
protocol::Weights Trainer::on(protocol::Publish message) {
  if (!message.in_parts) return publish(*trainer_, mesh_, message.version);
  before_ = std::exchange(published_, {});
  if (!message.keep_before) before_ = {};
  auto weights = publish_in_parts(*trainer_, mesh_, message);
  published_ = {message.version, std::exchange(weights.values, {})};
  return weights;
}

Result<protocol::WeightPart> Trainer::on(protocol::ReadWeights message) {
  if (mesh_ && !mesh_->is_root()) return protocol::WeightPart();
  if (!published_.values || published_.version != message.version)
    return fail(
        Errc::bad_input,
        cat("weights of version ", message.version, " were not published (",
            published_.values ? cat("version ", published_.version, " was") : "none were", ")"));
  return weight_part(message, *published_.values, before_);
}

Result<std::string> Trainer::on(protocol::Save message) {
  RETURN_IF_ERROR(on(protocol::FinishSave{.wait = true}));
  saved_ = true;
  auto started = save_(message.step, message.state, *trainer_);
  RETURN_IF_ERROR(started);
  writing_ = std::move(*started);
  trainer_->optimizer().set_reader(writing_.get());
  return message.overlapped ? std::string() : on(protocol::FinishSave{.wait = true});
}

Result<std::string> Trainer::on(protocol::FinishSave message) {
  if (not_written_) return fail(*not_written_);
  if (!writing_) return std::string();
  auto result = writing_->finish(message.wait);
  if (!result) return std::string();
  trainer_->optimizer().set_reader(nullptr);
  writing_.reset();
  if (!*result) not_written_ = result->error();
  return std::move(*result);
}

}  // namespace troupe::actors::roles
