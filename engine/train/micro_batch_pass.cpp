#include "engine/train/micro_batch_pass.h"

#include "engine/base/check.h"
#include "engine/ops/phase.h"
#include "engine/train/scoring.h"
#include "engine/train/shared_prefixes.h"

namespace troupe::engine::train {

MicroBatchPass::MicroBatchPass(models::Decoder& model, const data::Experience& part,
                               const loss::Needs& needs, const PassOptions& options)
    : model_(model),
      part_(part),
      layout_(layout_of(part)),
      dropout_(dropout_of(part, options.dropout)),
      shared_(dropout_ || !options.share_prefixes ? std::nullopt
                                                  : shared_prefixes(part, model.spec())),
      pass_{model.device(),
            layout_,
            options.precision,
            nullptr,
            {},
            dropout_ ? &*dropout_ : nullptr,
            {},
            options.recomputed},
      head_(model, part, needs, {options.precision, options.every_token, options.backward}),
      saved_(options.backward ? nn::Saved() : nn::Saved::nothing()) {
  pass_.shared = shared_ ? &*shared_ : nullptr;
}

std::int64_t MicroBatchPass::rows() const {
  return shared_ ? std::ssize(shared_->index) : std::ssize(part_.tokens);
}

Tensor MicroBatchPass::forward(const Tensor& input) {
  return ops::in_phase(model_.device(), "forward",
                       [&] { return model_.forward_stage(part_.tokens, input, pass_, saved_); });
}

HeadOutputs MicroBatchPass::outputs(const Tensor& hidden,
                                    const std::optional<loss::ValueAndGrads>& known) {
  return head_.forward(hidden, known ? &*known : nullptr);
}

Tensor MicroBatchPass::backward(const loss::ValueAndGrads& grads) {
  return ops::in_phase(model_.device(), "backward", [&] {
    Tensor dinput = model_.backward_stage(part_.tokens, head_.backward(grads), pass_, saved_);
    check(saved_.empty(), "MicroBatchPass: backward left tensors on the stack");
    return dinput;
  });
}

Tensor MicroBatchPass::backward(const Tensor& dresult) {
  return ops::in_phase(model_.device(), "backward", [&] {
    Tensor dinput = model_.backward_stage(part_.tokens, dresult, pass_, saved_);
    check(saved_.empty(), "MicroBatchPass: backward left tensors on the stack");
    return dinput;
  });
}

}  // namespace troupe::engine::train
