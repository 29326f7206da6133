// Attention as its definition reads: one row and one head at a time.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/access.h"
#include "engine/ops/cpu/reference.h"

namespace troupe::engine::ops {
namespace {

/// Where key j of sequence n lies.
std::int64_t key_row(const KeyValues& kv, const Layout& layout, std::size_t n, std::int64_t j) {
  if (kv.page_size == 0) return layout.offsets[n] + j;
  return std::int64_t{kv.pages[n][static_cast<std::size_t>(j / kv.page_size)]} * kv.page_size +
         j % kv.page_size;
}

double dot(const double* a, const double* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> all_of(const Tensor& x, Precision precision) {
  return operand(in(x), x.count(), 1, precision);
}
/// A value that becomes an operand.
double rounded(double x, Precision precision) {
  return precision == Precision::bf16 ? double{from_bf16(to_bf16(static_cast<float>(x)))} : x;
}

/// One head of one row: where its query is, and which keys it sees.
struct HeadRow {
  std::size_t sequence;
  std::int64_t row;
  int head;
  std::int64_t first, end;
};

template <class Visit>
void for_each_head_row(const Layout& layout, const AttentionShape& shape, Visit visit) {
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    for (std::int32_t t = layout.offsets[n]; t < layout.offsets[n + 1]; ++t) {
      const std::int64_t end = std::int64_t{layout.positions[static_cast<std::size_t>(t)]} + 1;
      const std::int64_t first =
          shape.window == 0 ? 0 : std::max<std::int64_t>(0, end - shape.window);
      for (int h = 0; h < shape.heads; ++h) visit(HeadRow{n, t, h, first, end});
    }
  }
}

/// The score of key j from its product with the query; `slope`, where wanted, becomes how it rises
/// with the product.
double score(const AttentionShape& shape, const HeadRow& at, std::int64_t j, double product,
             double* slope = nullptr) {
  const double cap = shape.softcap, scaled = double{shape.scale} * product,
               bent = cap > 0 ? std::tanh(scaled / cap) : 0;
  if (slope != nullptr) *slope = double{shape.scale} * (1 - bent * bent);
  const double tilt =
      shape.slopes.empty() ? 0 : double{shape.slopes[static_cast<std::size_t>(at.head)]};
  return (cap > 0 ? cap * bent : scaled) + tilt * static_cast<double>(j + 1 - at.end);
}

}  // namespace

void ReferenceDevice::attention(const Tensor& q, const KeyValues& kv, const Layout& layout,
                                const AttentionShape& shape, Precision precision, Tensor& out_,
                                Tensor* lse) {
  check_attention(q, kv, layout, shape);
  check(out_.count() == q.count() && (lse == nullptr || lse->count() == rows_of(q) * shape.heads),
        "attention: out [T, H*K], lse [T, H]");
  const int size = shape.head_size;
  const std::int64_t width = std::int64_t{shape.kv_heads} * size;
  const std::vector<double> queries = all_of(q, precision), keys = all_of(kv.k, precision),
                            values = all_of(kv.v, precision);
  std::vector<double> p, sum(static_cast<std::size_t>(size));
  for_each_head_row(layout, shape, [&](const HeadRow& at) {
    const std::int64_t column = std::int64_t{at.head / (shape.heads / shape.kv_heads)} * size;
    const std::int64_t place = at.row * shape.heads + at.head;
    p.resize(static_cast<std::size_t>(at.end - at.first));
    for (std::int64_t j = at.first; j < at.end; ++j) {
      const double* key = keys.data() + key_row(kv, layout, at.sequence, j) * width + column;
      p[static_cast<std::size_t>(j - at.first)] =
          score(shape, at, j, dot(queries.data() + place * size, key, size));
    }
    const double highest = *std::max_element(p.begin(), p.end());
    double total = 0;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::int64_t j = at.first; j < at.end; ++j) {
      const double weight = std::exp(p[static_cast<std::size_t>(j - at.first)] - highest);
      const double* value = values.data() + key_row(kv, layout, at.sequence, j) * width + column;
      total += weight;
      for (int i = 0; i < size; ++i)
        sum[static_cast<std::size_t>(i)] += rounded(weight, precision) * value[i];
    }
    for (int i = 0; i < size; ++i)
      out(out_)[place * size + i] = static_cast<float>(sum[static_cast<std::size_t>(i)] / total);
    if (lse != nullptr) out(*lse)[place] = static_cast<float>(highest + std::log(total));
  });
}

void ReferenceDevice::attention_backward(const Tensor& q, const KeyValues& kv, const Layout& layout,
                                         const AttentionShape& shape, Precision precision,
                                         const Tensor& out_, const Tensor& lse, const Tensor& dout,
                                         Tensor& dq, Tensor& dk, Tensor& dv) {
  check_attention(q, kv, layout, shape);
  check(kv.page_size == 0, "attention_backward: not through pages");
  check(out_.count() == q.count() && dout.count() == q.count() && dq.count() == q.count() &&
            lse.count() == rows_of(q) * shape.heads,
        "attention_backward: q, out, dout, dq [T, H*K], lse [T, H]");
  check(dk.count() == kv.k.count() && dv.count() == kv.v.count(),
        "attention_backward: dk, dv are not like k, v");
  const int size = shape.head_size;
  const std::int64_t width = std::int64_t{shape.kv_heads} * size;
  const std::vector<double> queries = all_of(q, precision), keys = all_of(kv.k, precision),
                            values = all_of(kv.v, precision);
  const std::vector<double> aboves = all_of(dout, precision), exact = all_of(dout, Precision::f32),
                            outs = all_of(out_, Precision::f32);
  std::vector<double> key_sum(static_cast<std::size_t>(dk.count())), value_sum(key_sum.size()),
      query_sum(static_cast<std::size_t>(size));
  for_each_head_row(layout, shape, [&](const HeadRow& at) {
    const std::int64_t column = std::int64_t{at.head / (shape.heads / shape.kv_heads)} * size;
    const std::int64_t place = at.row * shape.heads + at.head;
    const double *query = queries.data() + place * size, *above = aboves.data() + place * size;
    const double row_dot = dot(exact.data() + place * size, outs.data() + place * size, size);
    std::fill(query_sum.begin(), query_sum.end(), 0.0);
    for (std::int64_t j = at.first; j < at.end; ++j) {
      double slope = 0;
      const std::int64_t offset = (layout.offsets[at.sequence] + j) * width + column;
      const double* key = keys.data() + offset;
      const double p =
          std::exp(score(shape, at, j, dot(query, key, size), &slope) - double{in(lse)[place]});
      const double ds = rounded(p * (dot(above, values.data() + offset, size) - row_dot) * slope,
                                precision),
                   weight = rounded(p, precision);
      for (int i = 0; i < size; ++i) {
        value_sum[static_cast<std::size_t>(offset + i)] += weight * above[i];
        key_sum[static_cast<std::size_t>(offset + i)] += ds * query[i];
        query_sum[static_cast<std::size_t>(i)] += ds * key[i];
      }
    }
    std::transform(query_sum.begin(), query_sum.end(), out(dq) + place * size,
                   [](double x) { return static_cast<float>(x); });
  });
  std::transform(key_sum.begin(), key_sum.end(), out(dk),
                 [](double x) { return static_cast<float>(x); });
  std::transform(value_sum.begin(), value_sum.end(), out(dv),
                 [](double x) { return static_cast<float>(x); });
}

}  // namespace troupe::engine::ops
