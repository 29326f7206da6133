#include "engine/train/micro_batch_pass.h"

#include "engine/base/check.h"
#include "engine/ops/phase.h"
#include "engine/train/shared_prefixes.h"

namespace troupe::engine::train {
namespace {

// Rows that dropout masks differently, or that are in different places of a ring, are not shared.
// With sequence parallelism the embedding has own rows, none twice.
std::optional<nn::SharedRows> shared_of(const models::Decoder& model, const data::Experience& part,
                                        const PassOptions& options) {
  if (options.dropout || !options.share_prefixes) return std::nullopt;
  if (model.rows_group() != nullptr) return std::nullopt;
  if (model.context() != nullptr && model.context()->ring) return std::nullopt;
  return shared_prefixes(part, model.spec());
}

std::optional<nn::ContextPart> context_of(const models::Decoder& model, const ops::Layout& layout,
                                          const std::optional<nn::SharedRows>& shared) {
  if (model.context() == nullptr) return std::nullopt;
  return nn::context_part(*model.context(), layout, shared ? &*shared : nullptr);
}

// With the ids of the rows that this rank has.
std::optional<nn::Dropout> dropout_of(const models::Decoder& model, const data::Experience& part,
                                      const ops::Layout& layout, const nn::ContextPart* context,
                                      const std::optional<PassDropout>& how) {
  if (!how) return std::nullopt;
  nn::Dropout out{how->key,        row_ids(part, layout), how->hidden, how->attention,
                  how->hidden_key, how->attention_key,    {},          {}};
  if (how->attention > 0)
    out.attention_rows =
        context && context->groups->ring ? row_ids(part, context->ring_layout) : out.rows;
  if (context) out.rows = nn::own_values<std::uint64_t>(*context, out.rows);
  if (how->hidden > 0) out.hidden_rows = out.rows;
  if (const auto* group = model.rows_group(); group != nullptr && how->hidden > 0) {
    const auto [begin, end] =
        parallel::even_range(std::ssize(out.rows), group->rank(), group->size());
    out.hidden_rows.assign(out.rows.begin() + begin, out.rows.begin() + end);
  }
  return out;
}

}  // namespace

MicroBatchPass::MicroBatchPass(models::Decoder& model, const data::Experience& part,
                               const loss::Needs& needs, const PassOptions& options)
    : model_(model),
      part_(part),
      layout_(layout_of(part)),
      shared_(shared_of(model, part, options)),
      context_(context_of(model, layout_, shared_)),
      dropout_(dropout_of(model, part, layout_, context_ ? &*context_ : nullptr, options.dropout)),
      pass_{model.device(),
            layout_,
            options.precision,
            nullptr,
            {},
            dropout_ ? &*dropout_ : nullptr,
            {},
            options.recomputed},
      head_(model, part, needs,
            {.precision = options.precision,
             .every_token = options.every_token,
             .backward = options.backward,
             .context = context_ ? &*context_ : nullptr}),
      saved_(options.backward ? nn::Saved() : nn::Saved::nothing()) {
  pass_.shared = shared_ ? &*shared_ : nullptr;
  pass_.rows_group = model.rows_group();
  pass_.hooks = options.hooks;
  pass_.rows = context_ ? context_->own().size() : std::ssize(part.tokens);
  if (context_) pass_.context = &*context_;
  if (options.offload != nullptr && options.backward)
    pass_.offload = &offloaded_.emplace(*options.offload, model.device());
}

std::int64_t MicroBatchPass::rows() const {
  if (const auto* group = pass_.rows_group)
    return parallel::even_range(pass_.rows, group->rank(), group->size()).size();
  if (context_) return context_->own().size();
  return shared_ ? std::ssize(shared_->index) : std::ssize(part_.tokens);
}

Tensor MicroBatchPass::forward(const Tensor& input, std::size_t chunk) {
  return ops::in_phase(model_.device(), "forward", [&] {
    return model_.forward_stage(part_.tokens, input, pass_, saved_, chunk);
  });
}

HeadOutputs MicroBatchPass::outputs(const Tensor& hidden,
                                    const std::optional<loss::ValueAndGrads>& known) {
  return head_.forward(hidden, known ? &*known : nullptr);
}

Tensor MicroBatchPass::through(const Tensor& dresult, std::size_t chunk) {
  Tensor dinput = model_.backward_stage(part_.tokens, dresult, pass_, saved_, chunk);
  check(chunk > 0 || saved_.empty(), "MicroBatchPass: backward left tensors on the stack");
  return dinput;
}

void MicroBatchPass::before_backward(std::size_t chunk) {
  if (!pass_.recomputed.in_advance) return;
  ops::in_phase(model_.device(), "backward",
                [&] { model_.recompute_in_advance(pass_, saved_, chunk); });
}

Tensor MicroBatchPass::backward(const loss::ValueAndGrads& grads) {
  return ops::in_phase(model_.device(), "backward", [&] {
    return through(head_.backward(grads), model_.stage().chunks.size() - 1);
  });
}

Tensor MicroBatchPass::backward(const Tensor& dresult, std::size_t chunk) {
  return ops::in_phase(model_.device(), "backward", [&] { return through(dresult, chunk); });
}

}  // namespace troupe::engine::train
