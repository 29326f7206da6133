// A float64 decoder in plain loops, written from the papers: one sequence, RMSNorm before each
// part, a gated MLP, and the settings in which the families differ. Weights have the names of a
// Llama; the channels of a head are in the order of the files.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace troupe::test {

using Vector = std::vector<double>;

/// A matrix [rows, columns]; a vector has one row.
struct OracleMatrix {
  std::int64_t rows = 0, columns = 0;
  Vector values;
  const double* row(std::int64_t r) const { return values.data() + r * columns; }
};

struct DecoderOracle {
  std::map<std::string, OracleMatrix> weights;
  int layers = 0, heads = 0, kv_heads = 0, head_size = 0;
  double eps = 1e-6, theta = 10000, embedding_multiplier = 1, residual_multiplier = 1,
         logit_scale = 1;
  int rotary_dim = 0;        ///< rotated channels of a head, the first ones; 0: none
  bool interleaved = false;  ///< pairs (2i, 2i + 1); else (i, i + rotary_dim / 2)
  bool alibi = false, normalized_head = false;
  Vector stretch = {};       ///< divides the frequency of each rotated pair (LongRoPE); empty: 1
  double rotary_factor = 1;  ///< multiplies cosines and sines
  /// Multi-head latent attention (DeepSeek-AI 2024, eq. 9-19), where `key_rank` is above 0: heads
  /// of `head_size` channels, the last `rotary_dim` of them rotated and those of keys shared by all
  /// heads; values of `value_size` channels.
  int key_rank = 0, value_size = 0;

  /// Logits [tokens][vocabulary].
  std::vector<Vector> logits(const std::vector<std::int32_t>& tokens) const {
    std::vector<Vector> x;
    const OracleMatrix& table = weights.at("model.embed_tokens.weight");
    for (const auto token : tokens) {
      x.emplace_back(table.row(token), table.row(token) + table.columns);
      for (double& value : x.back()) value *= embedding_multiplier;
    }
    for (int i = 0; i < layers; ++i) layer("model.layers." + std::to_string(i) + ".", x);
    OracleMatrix head = weights.at("lm_head.weight");
    for (std::int64_t v = 0; normalized_head && v < head.rows; ++v) {
      double sum = 0;
      for (std::int64_t c = 0; c < head.columns; ++c) sum += head.row(v)[c] * head.row(v)[c];
      for (std::int64_t c = 0; c < head.columns; ++c)
        head.values[static_cast<std::size_t>(v * head.columns + c)] /= std::sqrt(sum);
    }
    std::vector<Vector> out;
    for (const auto& hidden : x) {
      out.push_back(times(head, norm(hidden, "model.norm")));
      for (double& value : out.back()) value *= logit_scale;
    }
    return out;
  }

  /// Mean negative log-probability of each next token.
  double loss(const std::vector<std::int32_t>& tokens) const {
    const auto all = logits(tokens);
    double sum = 0;
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      double mass = 0;
      for (const double z : all[t]) mass += std::exp(z);
      sum += std::log(mass) - all[t][static_cast<std::size_t>(tokens[t + 1])];
    }
    return sum / static_cast<double>(tokens.size() - 1);
  }

 private:
  static Vector times(const OracleMatrix& matrix, const Vector& x) {
    Vector out;
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < matrix.columns; ++c)
        sum += matrix.row(r)[c] * x[static_cast<std::size_t>(c)];
      out.push_back(sum);
    }
    return out;
  }
  Vector linear(const std::string& name, const Vector& x) const {
    Vector out = times(weights.at(name + ".weight"), x);
    if (const auto bias = weights.find(name + ".bias"); bias != weights.end())
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += bias->second.values[i];
    return out;
  }
  Vector norm(const Vector& x, const std::string& name) const { return norm(x, name, eps); }
  Vector norm(const Vector& x, const std::string& name, double epsilon) const {
    double sum = 0;
    for (const double value : x) sum += value * value;
    const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
    Vector out = x;
    for (std::size_t i = 0; i < x.size(); ++i)
      out[i] *= scale * weights.at(name + ".weight").values[i];
    return out;
  }
  void rotate(double* head, std::size_t position) const {
    for (int i = 0; i < rotary_dim / 2; ++i) {
      const double angle = static_cast<double>(position) * std::pow(theta, -2.0 * i / rotary_dim) /
                           (stretch.empty() ? 1 : stretch[static_cast<std::size_t>(i)]);
      const double cosine = rotary_factor * std::cos(angle), sine = rotary_factor * std::sin(angle);
      double& a = head[interleaved ? 2 * i : i];
      double& b = head[interleaved ? 2 * i + 1 : i + rotary_dim / 2];
      const double before = a;
      a = before * cosine - b * sine;
      b = b * cosine + before * sine;
    }
  }
  // Factors of the distance for a number of heads n that is a power of two, as in the tests: 2^(-8
  // h / n).
  double decay(int head) const { return alibi ? std::exp2(-8.0 * (head + 1) / heads) : 0; }

  Vector attend(int head, std::size_t t, const std::vector<Vector>& q, const std::vector<Vector>& k,
                const std::vector<Vector>& v) const {
    const int from = head * head_size, kv = head / (heads / kv_heads) * head_size;
    const int width = value_size > 0 ? value_size : head_size;
    const int value = head / (heads / kv_heads) * width;
    Vector scores, out(static_cast<std::size_t>(width), 0.0);
    double mass = 0;
    for (std::size_t s = 0; s <= t; ++s) {
      double dot = 0;
      for (int c = 0; c < head_size; ++c) dot += q[t][from + c] * k[s][kv + c];
      const double distance = static_cast<double>(t) - static_cast<double>(s);
      scores.push_back(std::exp(dot / std::sqrt(head_size) - decay(head) * distance));
      mass += scores.back();
    }
    for (std::size_t s = 0; s <= t; ++s)
      for (int c = 0; c < width; ++c) out[c] += scores[s] / mass * v[s][value + c];
    return out;
  }

  // Appends the query, key and value of one row.
  void project(const std::string& prefix, const Vector& h, std::vector<Vector>& q,
               std::vector<Vector>& k, std::vector<Vector>& v) const {
    const std::size_t t = q.size();
    q.push_back(linear(prefix + "self_attn.q_proj", h));
    k.push_back(linear(prefix + "self_attn.k_proj", h));
    v.push_back(linear(prefix + "self_attn.v_proj", h));
    for (int head = 0; head < heads; ++head) rotate(&q[t][head * head_size], t);
    for (int head = 0; head < kv_heads; ++head) rotate(&k[t][head * head_size], t);
  }
  void project_latent(const std::string& prefix, const Vector& h, std::vector<Vector>& q,
                      std::vector<Vector>& k, std::vector<Vector>& v) const {
    const std::string own = prefix + "self_attn.";
    const std::size_t t = q.size();
    const int plain = head_size - rotary_dim;
    q.push_back(
        linear(own + "q_b_proj", norm(linear(own + "q_a_proj", h), own + "q_a_layernorm", 1e-6)));
    for (int head = 0; head < heads; ++head) rotate(&q[t][head * head_size + plain], t);
    const Vector down = linear(own + "kv_a_proj_with_mqa", h);
    Vector shared(down.begin() + key_rank, down.end());
    rotate(shared.data(), t);
    const Vector latent(down.begin(), down.begin() + key_rank);
    const Vector up = linear(own + "kv_b_proj", norm(latent, own + "kv_a_layernorm", 1e-6));
    k.emplace_back();
    v.emplace_back();
    for (int head = 0; head < heads; ++head) {
      const auto first = up.begin() + head * (plain + value_size);
      k[t].insert(k[t].end(), first, first + plain);
      k[t].insert(k[t].end(), shared.begin(), shared.end());
      v[t].insert(v[t].end(), first + plain, first + plain + value_size);
    }
  }

  void layer(const std::string& prefix, std::vector<Vector>& x) const {
    std::vector<Vector> q, k, v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Vector h = norm(x[t], prefix + "input_layernorm");
      key_rank > 0 ? project_latent(prefix, h, q, k, v) : project(prefix, h, q, k, v);
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      Vector joined;
      for (int head = 0; head < heads; ++head) {
        const Vector one = attend(head, t, q, k, v);
        joined.insert(joined.end(), one.begin(), one.end());
      }
      add(linear(prefix + "self_attn.o_proj", joined), x[t]);
      const Vector h = norm(x[t], prefix + "post_attention_layernorm");
      Vector gate = linear(prefix + "mlp.gate_proj", h);
      const Vector up = linear(prefix + "mlp.up_proj", h);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(linear(prefix + "mlp.down_proj", gate), x[t]);
    }
  }
  void add(const Vector& part, Vector& x) const {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += residual_multiplier * part[i];
  }
};

}  // namespace troupe::test
