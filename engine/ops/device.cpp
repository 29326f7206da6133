#include "engine/ops/device.h"

#include <utility>

#include "engine/base/errors/check.h"
#include "engine/ops/shapes.h"
#include "engine/ops/visit_rows.h"

namespace troupe::engine::ops {

namespace {

// The row of the cache for the keys of each row.
std::vector<std::int32_t> cache_rows(const Layout& layout, const Pages& pages) {
  std::vector<std::int32_t> rows;
  rows.reserve(layout.positions.size());
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n)
    for (auto t = layout.offsets[n]; t < layout.offsets[n + 1]; ++t) {
      const auto position = layout.positions[static_cast<std::size_t>(t)];
      const auto page = static_cast<std::size_t>(position / pages.size);
      check(page < pages.numbers[n].size(), "prepare: a sequence lacks pages");
      rows.push_back(pages.numbers[n][page] * pages.size + position % pages.size);
    }
  return rows;
}

}  // namespace

Indices Device::indices(std::span<const std::int32_t> numbers) {
  return {{numbers.begin(), numbers.end()}, {}};
}

RowIds Device::row_ids(std::span<const std::uint64_t> ids) {
  return {{ids.begin(), ids.end()}, {}};
}

PreparedLayout Device::prepare(Layout layout, Pages pages) {
  Indices positions = indices(layout.positions), rows;
  if (pages.size > 0) rows = indices(cache_rows(layout, pages));
  return {std::move(layout), pages, std::move(positions), std::move(rows)};
}

void Device::grouped_gemm(std::span<GemmCall> calls) {
  for (GemmCall& call : calls) gemm(call.a, call.b, call.c, call.how);
}

void Device::head_forward_backward(const HeadInputs& in, const HeadUpstream& up,
                                   const HeadOutputs& out, const HeadGradients& to) {
  head(in, {out.logp, out.lse, out.entropy, nullptr, out.whole_lse, out.whole_entropy});
  head_backward(in, {out.lse, out.entropy}, up, to);
}

void Device::sample(const Tensor& logits, const SamplingRows& rows, const SamplingOutputs& out) {
  check_sample(logits, rows, out);
  out.ids.assign(rows.rows.size(), no_target);
  std::vector<std::vector<std::int32_t>> kept(out.kept != nullptr ? rows.rows.size() : 0);
  visit_rows_or_throw(*this, logits, [&](std::size_t i, std::span<const float> row) {
    out.ids[i] = rows.host.sample(static_cast<std::int64_t>(i), row,
                                  out.kept != nullptr ? &kept[i] : nullptr);
  });
  if (out.logp != nullptr) token_logprob(logits, indices(out.ids), 1, *out.logp, *out.lse);
  if (out.kept == nullptr) return;
  *out.kept = {{0}, {}};
  for (const auto& ids : kept) {
    out.kept->ids.insert(out.kept->ids.end(), ids.begin(), ids.end());
    out.kept->offsets.push_back(std::ssize(out.kept->ids));
  }
}

std::vector<float> to_host(Device& device, const Tensor& from) {
  std::vector<float> values(static_cast<std::size_t>(from.count()));
  device.synchronize();
  device.download(from, values);
  return values;
}

Tensor from_host(Device& device, Shape shape, std::span<const float> values) {
  Tensor to = device.empty(shape);
  device.upload(to, values);
  return to;
}

}  // namespace troupe::engine::ops
