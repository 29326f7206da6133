#include "engine/train/micro_batch_pass.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/ops/phase.h"

namespace troupe::engine::train {
namespace {

// Rows that dropout masks differently, or that are in different places of a ring, are not shared.
// With sequence parallelism the embedding has own rows, none twice.
std::optional<nn::SharedRows> shared_of(const models::Decoder& model, const data::Experience& part,
                                        const PassOptions& options) {
  if (options.dropout || !options.share_prefixes) return std::nullopt;
  if (model.rows_group() != nullptr) return std::nullopt;
  if (model.context() != nullptr && model.context()->ring) return std::nullopt;
  auto shared = shared_prefixes(part, model.spec());
  if (!shared) return shared;
  for (ops::Indices* rows : {&shared->index, &shared->inverse})
    *rows = model.device().indices(rows->host);
  return shared;
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
  ops::Device& device = model.device();
  std::vector<std::uint64_t> ids = row_ids(part, layout);
  nn::Dropout out{.key = how->key,
                  .hidden = how->hidden,
                  .attention = how->attention,
                  .hidden_key = how->hidden_key,
                  .attention_key = how->attention_key};
  if (how->attention > 0)
    out.attention_rows = device.row_ids(
        context && context->groups->ring ? row_ids(part, context->ring_layout) : ids);
  if (context) ids = nn::own_values<std::uint64_t>(*context, ids);
  out.rows = device.row_ids(ids);
  if (how->hidden == 0) return out;
  parallel::Range own{0, std::ssize(ids)};
  if (const auto* group = model.rows_group())
    own = parallel::even_range(std::ssize(ids), group->rank(), group->size());
  out.hidden_rows = device.row_ids(std::span(ids).subspan(static_cast<std::size_t>(own.begin),
                                                          static_cast<std::size_t>(own.size())));
  return out;
}

}  // namespace

std::optional<nn::SharedRows> shared_prefixes(const data::Experience& part,
                                              const models::DecoderSpec& spec) {
  if (spec.keys_depend_on_length()) return std::nullopt;
  nn::SharedRows rows;
  rows.inverse.host.reserve(part.tokens.size());
  for (std::size_t n = 0; n + 1 < part.offsets.size(); ++n) {
    const auto begin = part.tokens.begin() + part.offsets[n],
               end = part.tokens.begin() + part.offsets[n + 1];
    const auto before = part.tokens.begin() + part.offsets[n == 0 ? 0 : n - 1];
    const auto shared = n == 0 ? 0 : std::mismatch(begin, end, before, begin).first - begin;
    for (std::ptrdiff_t i = 0; i < shared; ++i)
      rows.inverse.host.push_back(
          rows.inverse.host[static_cast<std::size_t>(before - part.tokens.begin() + i)]);
    for (std::ptrdiff_t i = shared; i < end - begin; ++i) {
      rows.inverse.host.push_back(static_cast<std::int32_t>(rows.index.host.size()));
      rows.index.host.push_back(static_cast<std::int32_t>(begin - part.tokens.begin() + i));
    }
  }
  if (8 * (rows.inverse.host.size() - rows.index.host.size()) < rows.inverse.host.size() ||
      rows.inverse.host.empty())
    return std::nullopt;
  return rows;
}

MicroBatchPass::MicroBatchPass(models::Decoder& model, const data::Experience& part,
                               const loss::Needs& needs, const PassOptions& options)
    : model_(model),
      part_(part),
      layout_(model.device().prepare(layout_of(part))),
      shared_(shared_of(model, part, options)),
      context_(context_of(model, layout_, shared_)),
      dropout_(dropout_of(model, part, layout_, context_ ? &*context_ : nullptr, options.dropout)),
      pass_{model.device(),
            layout_,
            options.precision,
            nullptr,
            dropout_ ? &*dropout_ : nullptr,
            {},
            options.recomputed},
      head_(model, part, needs,
            {.precision = options.precision,
             .every_token = options.every_token,
             .backward = options.backward,
             .context = context_ ? &*context_ : nullptr}),
      every_row_(options.every_row),
      counts_routes_(options.counts_routes),
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
  return shared_ ? std::ssize(shared_->index.host) : std::ssize(part_.tokens);
}

Tensor MicroBatchPass::forward(const Tensor& input, std::size_t chunk) {
  return ops::in_phase(model_.device(), "forward", [&] {
    const nn::CountsRoutes counts(model_.balance(), counts_routes_);
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
