#include "engine/ops/cpu/reference/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random/random.h"
#include "engine/ops/cpu/reference/operand.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu::reference {
namespace {

/// Returns the row of key j of sequence n.
std::int64_t key_row(const KeyValues& kv, const PreparedLayout& layout, std::size_t n,
                     std::int64_t j) {
  if (!kv.blocks.empty()) return kv.blocks[n].row + j - kv.blocks[n].first;
  const auto& [size, pages] = layout.pages;
  if (size == 0) return layout.offsets[n] + j;
  return std::int64_t{pages[n][static_cast<std::size_t>(j / size)]} * size + j % size;
}

double dot(const double* a, const double* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// Attention in f16 rounds nothing.
Precision rounding_of(Precision given) {
  return given == Precision::bf16 ? Precision::bf16 : Precision::f32;
}

std::vector<double> all_of(const Tensor& x, Precision precision) {
  return operand(data(x), x.count(), 1, precision);
}

/// One head of one row, and the keys that it sees.
struct HeadRow {
  std::size_t sequence;
  std::int64_t row;
  int head;
  std::int64_t first, end;
  std::int64_t position;
};

template <class Visit>
void for_each_head_row(const AttentionInputs& in, Visit visit) {
  const auto& [q, kv, layout, shape, precision, dropout] = in;
  for (std::size_t n = 0; n + 1 < layout.offsets.size(); ++n) {
    for (std::int32_t t = layout.offsets[n]; t < layout.offsets[n + 1]; ++t) {
      const std::int64_t position = layout.positions[static_cast<std::size_t>(t)];
      std::int64_t end = position + 1;
      std::int64_t first = shape.window == 0 ? 0 : std::max<std::int64_t>(0, end - shape.window);
      if (!kv.blocks.empty()) {
        first = std::max(first, kv.blocks[n].first);
        end = std::min(end, kv.blocks[n].end);
      }
      for (int h = 0; h < shape.heads; ++h) visit(HeadRow{n, t, h, first, end, position});
    }
  }
}

/// Returns the score of key j from its product with the query, and its derivative in `derivative`
/// unless that is nullptr.
double score(const AttentionShape& shape, const HeadRow& at, std::int64_t j, double product,
             double* derivative = nullptr) {
  const double cap = shape.softcap, scaled = double{shape.scale} * product,
               tanh = cap > 0 ? std::tanh(scaled / cap) : 0;
  if (derivative != nullptr) *derivative = double{shape.scale} * (1 - tanh * tanh);
  const double alibi_slope = shape.alibi_slopes.empty()
                                 ? 0
                                 : double{shape.alibi_slopes[static_cast<std::size_t>(at.head)]};
  return (cap > 0 ? cap * tanh : scaled) + alibi_slope * static_cast<double>(j - at.position);
}

/// Returns the factor of the weight of key j: 0 where it is dropped.
double kept(const AttentionDropout* how, const HeadRow& at, std::int64_t j) {
  if (how == nullptr) return 1;
  const std::uint64_t id = how->rows.host[static_cast<std::size_t>(at.row)];
  const auto head = static_cast<std::uint32_t>(how->first_head + at.head);
  const auto words = philox(
      {static_cast<std::uint32_t>(j / 4), low_word(id), high_word(id), how->layer << 16 | head},
      {low_word(how->key), high_word(how->key)});
  return static_cast<double>(words[static_cast<std::size_t>(j % 4)]) <
                 std::floor(how->probability * 0x1.0p32)
             ? 0
             : 1 / (1 - how->probability);
}

void store(const std::vector<double>& values, float* to) {
  std::transform(values.begin(), values.end(), to, [](double x) { return static_cast<float>(x); });
}

}  // namespace

void attention(const AttentionInputs& in, Tensor& out, Tensor* lse) {
  const auto& [q, kv, layout, shape, given, dropout] = in;
  const Precision precision = rounding_of(given);
  const int size = shape.head_size;
  const std::int64_t width = std::int64_t{shape.kv_heads} * size;
  const std::vector<double> queries = all_of(q, precision), keys = all_of(kv.k, precision),
                            values = all_of(kv.v, precision);
  std::vector<double> p, sum(static_cast<std::size_t>(size));
  for_each_head_row(in, [&](const HeadRow& at) {
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
      const double used = rounded(weight * kept(dropout, at, j), precision);
      total += weight;
      for (int i = 0; i < size; ++i) sum[static_cast<std::size_t>(i)] += used * value[i];
    }
    for (int i = 0; i < size; ++i)
      mutable_data(out)[place * size + i] =
          static_cast<float>(sum[static_cast<std::size_t>(i)] / total);
    if (lse != nullptr) mutable_data(*lse)[place] = static_cast<float>(highest + std::log(total));
  });
}

void attention_backward(const AttentionInputs& in, const AttentionBackward& with) {
  const auto& [q, kv, layout, shape, given, dropout] = in;
  const Precision precision = rounding_of(given);
  const int size = shape.head_size;
  const std::int64_t width = std::int64_t{shape.kv_heads} * size;
  const std::vector<double> queries = all_of(q, precision), keys = all_of(kv.k, precision),
                            values = all_of(kv.v, precision);
  const std::vector<double> aboves = all_of(with.dout, precision),
                            exact = all_of(with.dout, Precision::f32),
                            outs = all_of(with.out, Precision::f32);
  std::vector<double> key_sum(static_cast<std::size_t>(with.dk.count())), value_sum(key_sum.size()),
      query_sum(static_cast<std::size_t>(size));
  for_each_head_row(in, [&](const HeadRow& at) {
    const std::int64_t column = std::int64_t{at.head / (shape.heads / shape.kv_heads)} * size;
    const std::int64_t place = at.row * shape.heads + at.head;
    const double *query = queries.data() + place * size, *above = aboves.data() + place * size;
    const double row_dot = dot(exact.data() + place * size, outs.data() + place * size, size);
    std::fill(query_sum.begin(), query_sum.end(), 0.0);
    for (std::int64_t j = at.first; j < at.end; ++j) {
      double derivative = 0;
      const std::int64_t offset = key_row(kv, layout, at.sequence, j) * width + column;
      const double* key = keys.data() + offset;
      const double p = std::exp(score(shape, at, j, dot(query, key, size), &derivative) -
                                double{data(with.lse)[place]});
      const double factor = kept(dropout, at, j),
                   dp = factor * dot(above, values.data() + offset, size);
      const double ds = rounded(p * (dp - row_dot) * derivative, precision),
                   weight = rounded(p * factor, precision);
      for (int i = 0; i < size; ++i) {
        value_sum[static_cast<std::size_t>(offset + i)] += weight * above[i];
        key_sum[static_cast<std::size_t>(offset + i)] += ds * query[i];
        query_sum[static_cast<std::size_t>(i)] += ds * key[i];
      }
    }
    store(query_sum, mutable_data(with.dq) + place * size);
  });
  store(key_sum, mutable_data(with.dk));
  store(value_sum, mutable_data(with.dv));
}

}  // namespace troupe::engine::ops::cpu::reference
