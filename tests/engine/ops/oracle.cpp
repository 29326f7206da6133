#include "tests/engine/ops/oracle.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random/random.h"

namespace troupe::engine::ops::oracle {
namespace {

std::size_t at(int row, int width, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(column);
}

}  // namespace

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Doubles gemm(const Doubles& a, const Doubles& b, int m, int n, int k, bool transpose_a,
             bool transpose_b) {
  Doubles c(at(m, n, 0));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l)
        c[at(i, n, j)] +=
            a[transpose_a ? at(l, m, i) : at(i, k, l)] * b[transpose_b ? at(j, k, l) : at(l, n, j)];
    }
  }
  return c;
}

Doubles rms_norm(const Doubles& x, const Doubles& gain, double eps, double offset) {
  Doubles y(x.size());
  const std::size_t width = gain.size();
  for (std::size_t t = 0; t < x.size(); t += width) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x[t + i] * x[t + i];
    for (std::size_t i = 0; i < width; ++i)
      y[t + i] = x[t + i] / std::sqrt(sum / static_cast<double>(width) + eps) * (offset + gain[i]);
  }
  return y;
}

Doubles layer_norm(const Doubles& x, const Doubles& gain, const Doubles& bias, double eps) {
  Doubles y(x.size());
  const auto width = gain.size();
  for (std::size_t t = 0; t < x.size(); t += width) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < width; ++i) mean += x[t + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      variance += (x[t + i] - mean) * (x[t + i] - mean) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      y[t + i] =
          (x[t + i] - mean) / std::sqrt(variance + eps) * gain[i] + (bias.empty() ? 0 : bias[i]);
  }
  return y;
}

double activated(Activation activation, double x) {
  const double pi = std::acos(-1.0);
  switch (activation) {
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu2:
      return x > 0 ? x * x : 0;
  }
  return 0;
}

Doubles gated(Activation activation, const Doubles& gate, const Doubles& up) {
  Doubles y(gate.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = activated(activation, gate[i]) * up[i];
  return y;
}

double capped(double x, double cap) {
  return cap == 0 ? x : cap * std::tanh(x / cap);
}

Doubles rope(const Doubles& x, const Rows& positions, const Doubles& cos, const Doubles& sin,
             int heads, int size) {
  Doubles y(x.size());
  for (int t = 0; t < static_cast<int>(positions.size()); ++t) {
    for (int h = 0; h < heads; ++h) {
      for (int i = 0; i < size / 2; ++i) {
        const std::size_t low = at(t, heads * size, h * size + i),
                          high = low + static_cast<std::size_t>(size / 2);
        const std::size_t angle = at(positions[static_cast<std::size_t>(t)], size / 2, i);
        y[low] = x[low] * cos[angle] - x[high] * sin[angle];
        y[high] = x[high] * cos[angle] + x[low] * sin[angle];
      }
    }
  }
  return y;
}

double kept(const AttentionDropout& how, int row, int head, int key) {
  const std::uint64_t id = how.rows.host[static_cast<std::size_t>(row)];
  const auto stream =
      how.layer << 16 | static_cast<std::uint32_t>(how.first_head + std::int64_t{head});
  const auto words =
      philox({static_cast<std::uint32_t>(key / 4), low_word(id), high_word(id), stream},
             {low_word(how.key), high_word(how.key)});
  const double uniform = words[static_cast<std::size_t>(key % 4)] * 0x1.0p-32;
  return uniform < how.probability ? 0 : 1 / (1 - how.probability);
}

Doubles attention(const Doubles& q, const Doubles& k, const Doubles& v, const Layout& layout,
                  const AttentionShape& shape, const AttentionDropout* dropout) {
  Doubles out(q.size());
  const int size = shape.head_size, share = shape.heads / shape.kv_heads;
  for (int n = 0; n < layout.sequences(); ++n) {
    const int begin = layout.offsets[static_cast<std::size_t>(n)],
              end = layout.offsets[static_cast<std::size_t>(n) + 1];
    for (int t = begin; t < end; ++t) {
      for (int h = 0; h < shape.heads; ++h) {
        Doubles p;
        double total = 0;
        const int last = begin + layout.positions[static_cast<std::size_t>(t)];
        const int first = shape.window == 0 ? begin : std::max(begin, last + 1 - shape.window);
        const double slope = shape.alibi_slopes.empty()
                                 ? 0
                                 : double{shape.alibi_slopes[static_cast<std::size_t>(h)]};
        for (int j = first; j <= last; ++j) {
          double score = 0;
          for (int i = 0; i < size; ++i)
            score += q[at(t, shape.heads * size, h * size + i)] *
                     k[at(j, shape.kv_heads * size, h / share * size + i)];
          p.push_back(std::exp(capped(score * double{shape.scale}, double{shape.softcap}) +
                               slope * (j - last)));
          total += p.back();
        }
        for (std::size_t j = 0; j < p.size(); ++j) {
          if (dropout) p[j] *= kept(*dropout, t, h, first - begin + static_cast<int>(j));
          for (int i = 0; i < size; ++i) {
            out[at(t, shape.heads * size, h * size + i)] +=
                p[j] / total *
                v[at(first + static_cast<int>(j), shape.kv_heads * size, h / share * size + i)];
          }
        }
      }
    }
  }
  return out;
}

Head head(const Doubles& hidden, const Doubles& weight, const Rows& targets, const HeadScale& scale,
          int width) {
  Head result{Doubles(targets.size()), Doubles(targets.size())};
  const int vocabulary = static_cast<int>(weight.size()) / width,
            rows = static_cast<int>(targets.size());
  Doubles z = gemm(hidden, weight, rows, vocabulary, width, false, true);
  for (double& value : z)
    value = capped(value * double{scale.logit_scale}, double{scale.softcap}) *
            double{scale.inv_temperature};
  for (int t = 0; t < rows; ++t) {
    const std::int32_t target = targets[static_cast<std::size_t>(t)];
    if (target < 0) continue;
    double total = 0;
    for (int i = 0; i < vocabulary; ++i) total += std::exp(z[at(t, vocabulary, i)]);
    for (int i = 0; i < vocabulary; ++i) {
      const double log_p = z[at(t, vocabulary, i)] - std::log(total);
      if (i == target) result.logp[static_cast<std::size_t>(t)] = log_p;
      result.entropy[static_cast<std::size_t>(t)] -= std::exp(log_p) * log_p;
    }
  }
  return result;
}

Doubles gradient(const std::function<double(const Doubles&)>& f, Doubles x) {
  constexpr double step = 1e-5;
  Doubles slope(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + step;
    const double above = f(x);
    x[i] = middle - step;
    slope[i] = (above - f(x)) / (2 * step);
    x[i] = middle;
  }
  return slope;
}

}  // namespace troupe::engine::ops::oracle
