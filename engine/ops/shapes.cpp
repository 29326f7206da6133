#include "engine/ops/shapes.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::engine::ops {

void check_host_values(std::string_view operation, const Tensor& x, std::size_t values) {
  if (x.count() != static_cast<std::int64_t>(values))
    check(false, cat(operation, ": another number of values"));
}

void check_same_size(std::string_view operation, std::initializer_list<const Tensor*> operands) {
  const bool same = std::ranges::all_of(
      operands, [&](const Tensor* x) { return x->count() == (*operands.begin())->count(); });
  if (!same) check(false, cat(operation, ": operands differ in size"));
}

void check_bias(std::string_view operation, const Tensor& y, const Tensor& bias) {
  if (width_of(y) != bias.count()) check(false, cat(operation, ": rows [T, F], bias [F]"));
}

void check_packed(const Tensor& packed, DType type, const Shape& shape) {
  check(packed.dtype() == type && packed.shape() == shape,
        "pack: a packed weight of another shape or type");
}

void check_moved_rows(std::string_view operation, const Tensor& each, const Indices& rows,
                      const Tensor& table) {
  const bool fit = width_of(each) == width_of(table) && rows_of(each) == std::ssize(rows.host);
  if (!fit) check(false, cat(operation, ": shapes"));
  const bool inside =
      std::ranges::all_of(rows.host, [&](std::int32_t row) { return row < rows_of(table); });
  if (!inside) check(false, cat(operation, ": a row beyond the table"));
}

GemmSizes gemm_sizes(const Tensor& a, const Tensor& b, const Tensor& c, Gemm how) {
  check(a.shape().rank() == 2 && b.shape().rank() == 2 && c.shape().rank() == 2,
        "gemm: operands are matrices");
  const GemmSizes sizes{c.shape()[0], c.shape()[1], a.shape()[how.transpose_a ? 0 : 1]};
  check(a.shape()[how.transpose_a ? 1 : 0] == sizes.m, "gemm: rows of A and C differ");
  if (is_packed(b)) {
    check(how.transpose_b && how.precision == Precision::bf16,
          "gemm: a packed weight requires transpose_b and bf16");
    check(!how.accumulate || b.dtype() == DType::bf16_packed,
          "gemm: a product with an int8 weight cannot accumulate");
    return sizes;
  }
  check(b.shape()[how.transpose_b ? 0 : 1] == sizes.n, "gemm: columns of B and C differ");
  check(b.shape()[how.transpose_b ? 1 : 0] == sizes.k, "gemm: inner sizes of A and B differ");
  return sizes;
}

void check_norm(const Tensor& x, const Tensor& gain, const Tensor& y, const Tensor& inverse) {
  check(width_of(x) == gain.count() && y.count() == x.count() && inverse.count() == rows_of(x),
        "a norm: x, y [T, D], gain [D], one inverse a row");
}

void check_norm_backward(const Tensor& x, const Tensor& gain, const Tensor& inverse,
                         const Tensor& dy, const Tensor& dx, const Tensor& dgain) {
  check_norm(x, gain, dy, inverse);
  check(dx.count() == x.count() && dgain.count() == gain.count(),
        "a norm's backward: dx [T, D], dgain [D]");
}

void check_layer_norm(const Tensor& gain, const Tensor& bias, const Tensor& mean,
                      const Tensor& inverse) {
  check(mean.count() == inverse.count() && (!bias || bias.count() == gain.count()),
        "layer_norm: mean [T], bias [D]");
}

void check_rope(const Tensor& x, const Indices& positions, const Tensor& cos, const Tensor& sin,
                int heads) {
  const std::int64_t width = width_of(x), half = heads > 0 ? width / heads / 2 : 0;
  check(heads > 0 && half * 2 * heads == width && rows_of(x) == std::ssize(positions.host),
        "rope: x [T, heads*K]");
  check(width_of(cos) == half && width_of(sin) == half && rows_of(cos) == rows_of(sin),
        "rope: cos, sin [P, K/2]");
  for (const std::int32_t position : positions.host)
    check(position >= 0 && position < rows_of(cos), "rope: a position beyond the table");
}

void check_gated_backward(const Tensor& gate, const Tensor& up, const Tensor& dy,
                          const Tensor& dgate, const Tensor& dup, const Tensor* y) {
  check_same_size("gated_backward", {&gate, &up, &dy, &dgate, &dup, y == nullptr ? &gate : y});
}

namespace {

void check_pages(const KeyValues& kv, const Pages& of, std::size_t n, std::int64_t keys) {
  const auto& pages = of.numbers[n];
  const std::int64_t needed = (keys + of.size - 1) / of.size;
  check(needed <= static_cast<std::int64_t>(pages.size()), "attention: a sequence lacks pages");
  for (std::int64_t i = 0; i < needed; ++i) {
    const std::int64_t page = pages[static_cast<std::size_t>(i)];
    check(page >= 0 && (page + 1) * of.size <= rows_of(kv.k),
          "attention: a page outside the cache");
  }
}

// Every row sees a key of the block.
void check_block(const KeyValues& kv, const Layout& layout, std::size_t n, int window) {
  const auto& [first, end, row] = kv.blocks[n];
  check(
      0 <= first && first % 2 == 0 && first < end && 0 <= row && row + end - first <= rows_of(kv.k),
      "attention: a block of keys outside k");
  for (auto t = layout.offsets[n]; t < layout.offsets[n + 1]; ++t) {
    const std::int64_t position = layout.positions[static_cast<std::size_t>(t)];
    check(position >= first && (window == 0 || position - window + 1 < end),
          "attention: a row sees no key of its block");
  }
}

void check_sequence_keys(const KeyValues& kv, const PreparedLayout& layout, std::size_t n,
                         int window) {
  const std::int32_t begin = layout.offsets[n], end = layout.offsets[n + 1];
  check(begin <= end, "attention: offsets decrease");
  std::int64_t keys = 0;
  for (std::int32_t t = begin; t < end; ++t) {
    const std::int32_t position = layout.positions[static_cast<std::size_t>(t)];
    check(position >= 0, "attention: a negative position");
    if (position >= keys) keys = std::int64_t{position} + 1;
  }
  if (!kv.blocks.empty()) {
    check_block(kv, layout, n, window);
  } else if (layout.pages.size > 0) {
    check_pages(kv, layout.pages, n, keys);
  } else {
    check(keys <= end - begin && end <= rows_of(kv.k),
          "attention: a row sees keys beyond its sequence");
  }
}

void check_keys(const KeyValues& kv, const PreparedLayout& layout, const AttentionShape& shape) {
  const std::int64_t width = std::int64_t{shape.kv_heads} * shape.head_size;
  check(width_of(kv.k) == width && width_of(kv.v) == width && rows_of(kv.k) == rows_of(kv.v),
        "attention: k, v are not [rows, G*K]");
  check(static_cast<std::int32_t>(layout.positions.size()) == layout.rows(),
        "attention: one position a row");
  check(layout.offsets.empty() || layout.offsets.front() == 0, "attention: offsets start at 0");
  check(layout.pages.size >= 0, "attention: page size");
  check(layout.pages.size == 0 || std::ssize(layout.pages.numbers) >= layout.sequences(),
        "attention: a sequence has no page list");
  check(
      kv.blocks.empty() || (layout.pages.size == 0 && std::ssize(kv.blocks) == layout.sequences()),
      "attention: one block of keys a sequence, without pages");
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n)
    check_sequence_keys(kv, layout, n, shape.window);
}

}  // namespace

void check_dropout(const Tensor& x, const Dropout& how, const Tensor& y) {
  check(how.probability >= 0 && how.probability < 1, "dropout: a probability in [0, 1)");
  check(rows_of(x) == std::ssize(how.rows.host) && x.count() == y.count(),
        "dropout: x, y [T, F], one id per row");
}

void check_scale_columns(const Tensor& x, const Tensor& factors) {
  check(width_of(x) == factors.count(), "scale_columns: x [T, F], factors [F]");
}

void check_column_dots(const Tensor& a, const Tensor& b, const Tensor& sums) {
  check(width_of(a) == sums.count() && a.count() == b.count(),
        "column_dots: a, b [T, F], sums [F]");
}

void check_row_squares(const Tensor& x, const Tensor& sums) {
  check(sums.count() == rows_of(x), "row_squares: x [T, F], sums [T]");
}

void check_store_bf16(const Tensor& from, const Tensor& to, const FlatPart& part) {
  check(from.count() == to.count() && to.dtype() == DType::bf16 && part.width > 0,
        "store_bf16: f32 and bf16 of one size");
}

void check_attention(const AttentionInputs& in, const Tensor& out, const Tensor* lse) {
  const auto& [q, kv, layout, shape, precision, dropout] = in;
  check(shape.kv_heads > 0 && shape.head_size > 0 && shape.heads > 0 &&
            shape.heads % shape.kv_heads == 0,
        "attention: heads");
  check(shape.window >= 0 && shape.softcap >= 0, "attention: window and softcap");
  check(shape.alibi_slopes.empty() || static_cast<int>(shape.alibi_slopes.size()) == shape.heads,
        "attention: one ALiBi slope per head");
  check(rows_of(q) == layout.rows() && q.count() == rows_of(q) * shape.heads * shape.head_size,
        "attention: q is not [T, H*K]");
  check_keys(kv, layout, shape);
  check(out.count() == q.count() && (lse == nullptr || lse->count() == rows_of(q) * shape.heads),
        "attention: out [T, H*K], lse [T, H]");
  if (dropout == nullptr) return;
  constexpr std::int64_t limit = 1 << 16;
  check(dropout->probability >= 0 && dropout->probability < 1 &&
            std::ssize(dropout->rows.host) == layout.rows() && dropout->layer < limit &&
            dropout->first_head >= 0 && dropout->first_head + shape.heads <= limit,
        "attention: a dropout probability in [0, 1), one id per row, 65536 layers and heads");
}

void check_attention_backward(const AttentionInputs& in, const AttentionBackward& with) {
  check_attention(in, with.out, &with.lse);
  check(in.layout.pages.size == 0, "attention_backward: keys and values in pages");
  check(with.dout.count() == in.q.count() && with.dq.count() == in.q.count(),
        "attention_backward: dout, dq [T, H*K]");
  check(with.dk.count() == in.kv.k.count() && with.dv.count() == in.kv.v.count(),
        "attention_backward: dk, dv differ from k, v in size");
}

void check_targets(const TargetRows& of, std::int64_t rows, std::int64_t vocabulary) {
  check(std::ssize(of.targets) == rows, "head: one target a row");
  if (of.columns != nullptr)
    check(std::ssize(of.columns->sets) == rows && of.columns->words == (vocabulary + 63) / 64,
          "head: a mask of the columns for each row, 64 columns a word");
  for (std::int64_t t = 0; t < rows; ++t) {
    const std::int32_t target = of.targets[static_cast<std::size_t>(t)];
    check(target >= target_elsewhere && target < vocabulary,
          "head: a target outside the vocabulary");
    const std::uint64_t* kept = of.columns_of(t);
    check(kept == nullptr || target < 0 || (kept[target / 64] >> target % 64 & 1) != 0,
          "head: a target that the mask of its row leaves out");
  }
}

void check_head(const HeadInputs& in) {
  const auto& [hidden, weight, targets, scale, precision, adapter, columns] = in;
  check(hidden.shape().rank() == 2 && weight.shape().rank() == 2 &&
            hidden.shape()[1] == weight.shape()[1],
        "head: hidden [T, D], weight [V, D]");
  check_targets({targets.host, columns}, hidden.shape()[0], weight.shape()[0]);
  if (adapter == nullptr) return;
  check(rows_of(adapter->down) == rows_of(hidden) && rows_of(adapter->up) == rows_of(weight) &&
            width_of(adapter->down) == width_of(adapter->up),
        "head: the adapter is not [T, R], [V, R]");
}

void check_token_logprob(const Tensor& logits, const Indices& targets, const Tensor& logp,
                         const Tensor& lse, const ColumnMask* columns) {
  check_targets({targets.host, columns}, rows_of(logits), width_of(logits));
  check(logp.count() == rows_of(logits) && lse.count() == rows_of(logits),
        "token_logprob: logp, lse [M]");
}

void check_sample(const Tensor& logits, const SamplingRows& rows, const SamplingOutputs& out) {
  check(rows_of(logits) == std::ssize(rows.rows) && (out.logp == nullptr) == (out.lse == nullptr),
        "sample: logits [M, V], one way to sample a row, logp and lse or neither");
  for (const Tensor* x : {out.logp, out.lse})
    check(x == nullptr || x->count() == rows_of(logits), "sample: logp, lse [M]");
}

void check_head_outputs(const HeadInputs& in, const HeadOutputs& out) {
  const auto count = std::ssize(in.targets.host);
  check(out.logp.count() == count && out.lse.count() == count &&
            (out.entropy == nullptr || out.entropy->count() == count),
        "head: logp, lse, entropy [T]");
  check((out.whole_lse == nullptr) == (out.whole_entropy == nullptr), "head: both or none");
  for (const Tensor* x : {out.whole_lse, out.whole_entropy})
    check(x == nullptr || x->count() == count, "head: lse, entropy over all columns [T]");
}

void check_head_gradients(const HeadInputs& in, const HeadUpstream& up, const Tensor* entropy,
                          const HeadGradients& to) {
  const auto count = std::ssize(in.targets.host);
  check(up.dlogp.count() == count, "head: dlogp [T]");
  check(up.dentropy == nullptr ||
            (entropy != nullptr && entropy->count() == count && up.dentropy->count() == count),
        "head: entropy [T]");
  check(to.dhidden.count() == in.hidden.count() &&
            (!to.dweight || to.dweight.count() == in.weight.count()),
        "head: gradients");
  check((to.adapter == nullptr) == (in.adapter == nullptr), "head: gradients of the adapter");
}

}  // namespace troupe::engine::ops
