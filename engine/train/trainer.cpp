#include "engine/train/trainer.h"

#include "engine/base/check.h"
#include "engine/nn/gradients.h"
#include "engine/ops/temperature.h"
#include "engine/parallel/reduce.h"
#include "engine/train/share.h"

namespace troupe::engine::train {
namespace {

// [M] head rows to [T] token columns, and back.
std::vector<float> to_tokens(const std::vector<float>& values, const HeadRows& head, std::size_t tokens) {
  std::vector<float> out(tokens, 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) out[static_cast<std::size_t>(head.rows[i]) + 1] = values[i];
  return out;
}

Tensor to_rows(ops::Device& device, const std::vector<float>& column, const HeadRows& head) {
  std::vector<float> out;
  out.reserve(head.rows.size());
  for (const auto row : head.rows) out.push_back(column[static_cast<std::size_t>(row) + 1]);
  return ops::from_host(device, {static_cast<std::int64_t>(out.size())}, out);
}

// The sum of what the replicas found, in the order of the ranks.
BatchLoss summed(parallel::Communicator& dp, const BatchLoss& mine) {
  double numbers[] = {mine.loss, static_cast<double>(mine.tokens)};
  parallel::sum(dp, numbers, "the loss of a batch");
  BatchLoss all{numbers[0], static_cast<std::int64_t>(numbers[1]), {}};
  for (const auto& text : parallel::gather_strings(dp, mine.report.to_json().dump(), "the report of a batch")) {
    const auto json = value_or_throw(parse_json(text, "the report of a batch"));
    all.report.merge(value_or_throw(loss::Report::from_json(json)));
  }
  return all;
}

}  // namespace

Trainer::Trainer(std::unique_ptr<models::Decoder> model, TrainerOptions options, const parallel::Mesh* mesh)
    : model_(std::move(model)),
      options_(std::move(options)),
      dp_(mesh && mesh->grid().dp > 1 ? &mesh->dp() : nullptr),
      optimizer_(model_->parameters(), model_->tp()) {
  check(model_->tp() == (mesh && mesh->grid().tp > 1 ? &mesh->tp() : nullptr), "Trainer: the model lies on another mesh");
}

double Trainer::run_micro_batch(const data::Experience& batch, const loss::AnyLoss& loss, loss::Report& report) {
  ops::Device& device = model_->device();
  const ops::Layout layout = layout_of(batch);
  const nn::Pass pass{device, layout, options_.precision};
  const HeadRows head = head_rows(batch, false);
  const auto count = static_cast<std::int64_t>(head.rows.size());
  if (count == 0) return 0;
  const bool with_entropy = loss.needs().entropy;
  const float inv_temperature = ops::inverse_temperature(loss.needs().temperature);

  nn::Saved saved;
  const Tensor hidden = model_->forward(batch.tokens, pass, saved);  // [T, D]
  Tensor rows = device.empty({count, hidden.shape()[1]});            // [M, D]
  device.gather_rows(hidden, head.rows, rows);
  const auto scores = model_->head().forward(rows, head.targets, inv_temperature, options_.precision, with_entropy);

  const auto logp_T = to_tokens(ops::to_host(device, scores.logp), head, batch.tokens.size());
  const auto entropy_T = with_entropy ? to_tokens(ops::to_host(device, scores.entropy), head, batch.tokens.size()) : std::vector<float>();
  const auto result = loss::evaluate(loss, {logp_T, entropy_T, {}, {}}, batch, report);

  const Tensor dlogp = to_rows(device, result.dlogp, head);
  const Tensor dentropy = result.dentropy.empty() ? Tensor() : to_rows(device, result.dentropy, head);
  const Tensor drows = model_->head().backward(rows, head.targets, inv_temperature, options_.precision, scores, dlogp, dentropy);
  Tensor dhidden = device.empty(hidden.shape());
  device.fill(dhidden, 0);
  device.scatter_rows(drows, head.rows, dhidden);
  model_->backward(batch.tokens, dhidden, pass, saved);
  check(saved.empty(), "Trainer: backward left something on the stack");
  return result.loss;
}

BatchLoss Trainer::run(const data::Experience& batch, const loss::AnyLoss& loss) {
  BatchLoss out;
  const auto bounds = data::micro_batches(batch, options_.micro_batch_tokens);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto part = batch.slice(bounds[i], bounds[i + 1]);
    out.loss += run_micro_batch(part, loss, out.report);
    out.tokens += part.token_count();
  }
  return out;
}

BatchLoss Trainer::forward_backward(const data::Experience& batch, const loss::AnyLoss& loss) {
  batch.validate(model_->spec().vocabulary);
  if (dp_ == nullptr) return run(batch, loss);
  const auto shares = share_out(batch, dp_->size());
  return summed(*dp_, run(batch.select(shares[static_cast<std::size_t>(dp_->rank())]), loss));
}

Result<optim::AdamW::Report> Trainer::update(double learning_rate) {
  nn::sum_gradients(model_->parameters(), model_->tp(), dp_);
  auto result = optimizer_.step(learning_rate, options_.optimizer);
  optimizer_.zero_grad();
  return result;
}

std::vector<float> Trainer::logprobs(const data::Experience& batch, double temperature) {
  return train::logprobs(*model_, batch,
                         {.precision = options_.precision, .micro_batch_tokens = options_.micro_batch_tokens, .temperature = temperature},
                         dp_);
}

}  // namespace troupe::engine::train
