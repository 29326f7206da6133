#include "engine/train/micro_batches.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/train/run_stages.h"

namespace troupe::engine::train {
namespace {

bool zero(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

std::optional<loss::ValueAndGrads> known_of(const MicroBatches& batch, std::size_t part) {
  return batch.known ? batch.known(part) : std::nullopt;
}

// Options of the passes over a micro-batch.
PassOptions options_of(PassOptions options, bool last) {
  if (last) options.hooks = options.last_hooks;
  return options;
}

void run_on_one_rank(models::Decoder& model, const MicroBatches& batch,
                     const PassOptions& options) {
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    MicroBatchPass pass(model, batch.parts[i], batch.needs,
                        options_of(options, i + 1 == batch.parts.size()));
    const Tensor hidden = pass.empty() ? Tensor() : pass.forward({});  // [T, D]
    const loss::ValueAndGrads grads = batch.loss(i, pass.outputs(hidden, known_of(batch, i)));
    const bool stays = is_zero(grads) && !options.every_gradient;
    if (!options.backward || pass.empty() || stays) continue;  // the gradients would stay
    pass.backward(grads);
  }
}

// The passes of this rank's stage. Micro-batches of which no row is read take no part in the
// schedule; the loss is called for them in their place.
class Stages {
 public:
  Stages(models::Decoder& model, const MicroBatches& batch, const PassOptions& options)
      : model_(model), batch_(batch), options_(options), grads_(batch.parts.size()) {
    for (std::size_t i = 0; i < batch.parts.size(); ++i) {
      passes_.push_back(std::make_unique<MicroBatchPass>(
          model, batch.parts[i], batch.needs, options_of(options, i + 1 == batch.parts.size())));
      if (passes_.back()->empty()) continue;
      scheduled_.push_back(i);
      rows_.push_back(passes_.back()->rows());
    }
  }

  void run() {
    StagePasses passes{rows_,
                       model_.spec().width,
                       static_cast<int>(model_.stage().chunks.size()),
                       [this](std::size_t i, std::size_t chunk, const Tensor& x) {
                         return forward(scheduled_[i], chunk, x);
                       },
                       {},
                       [this](std::size_t i, std::size_t chunk) {
                         passes_[scheduled_[i]]->before_backward(chunk);
                       }};
    if (options_.backward)
      passes.backward = [this](std::size_t i, std::size_t chunk, const Tensor& dy) {
        return backward(scheduled_[i], chunk, dy);
      };
    run_stages(model_.device(), {*model_.pp_tensors(), *model_.pp_gradients()}, passes);
    call_loss_until(batch_.parts.size());
  }

 private:
  Tensor forward(std::size_t part, std::size_t chunk, const Tensor& input) {
    Tensor output = passes_[part]->forward(input, chunk);
    if (model_.stage().ends(chunk)) {
      call_loss_until(part);
      grads_[part] = batch_.loss(next_++, passes_[part]->outputs(output, known_of(batch_, part)));
      output = {};
    }
    if (!options_.backward && chunk + 1 == model_.stage().chunks.size()) passes_[part].reset();
    return output;
  }
  Tensor backward(std::size_t part, std::size_t chunk, const Tensor& doutput) {
    Tensor dinput = model_.stage().ends(chunk)
                        ? passes_[part]->backward(std::exchange(grads_[part], {}))
                        : passes_[part]->backward(doutput, chunk);
    if (chunk == 0) passes_[part].reset();
    return dinput;
  }
  void call_loss_until(std::size_t part) {
    if (!model_.stage().last()) return;
    for (; next_ < part; ++next_) batch_.loss(next_, passes_[next_]->outputs({}, std::nullopt));
  }

  models::Decoder& model_;
  const MicroBatches& batch_;
  const PassOptions& options_;
  std::vector<std::unique_ptr<MicroBatchPass>> passes_;  ///< null where it is complete
  std::vector<std::size_t> scheduled_;
  std::vector<std::int64_t> rows_;          ///< of each scheduled one
  std::size_t next_ = 0;                    ///< micro-batch whose loss is next
  std::vector<loss::ValueAndGrads> grads_;  ///< of each micro-batch, until its backward pass
};

}  // namespace

bool is_zero(const loss::ValueAndGrads& grads) {
  return zero(grads.dlogp) && zero(grads.dentropy) &&
         std::all_of(grads.dscores.begin(), grads.dscores.end(),
                     [](const auto& column) { return zero(column); });
}

std::vector<data::Experience> split_into_parts(const data::Experience& batch, std::int32_t tokens) {
  std::vector<data::Experience> parts;
  const auto bounds = data::micro_batches(batch, tokens);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    parts.push_back(batch.slice(bounds[i], bounds[i + 1]));
  return parts;
}

void run_micro_batches(models::Decoder& model, const MicroBatches& batch,
                       const PassOptions& options) {
  if (model.pp() == nullptr) return run_on_one_rank(model, batch, options);
  Stages(model, batch, options).run();
}

}  // namespace troupe::engine::train
