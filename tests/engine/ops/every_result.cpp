#include "tests/engine/ops/every_result.h"

namespace troupe::engine::ops {
namespace {

using Results = std::map<std::string, Floats>;

struct Round {
  Device& on;
  Results results;

  Tensor random(Shape shape, std::uint64_t seed) {
    return from_host(on, shape, random_floats(shape.count(), seed));
  }
  void keep(const std::string& name, const Tensor& x) { results[name] = to_host(on, x); }

  void products() {
    for (const auto precision : {Precision::f32, Precision::bf16}) {
      for (const std::int64_t m : {1, 7, 100, 300}) {
        for (const auto& [name, ta, tb] : {std::tuple{"nn", false, false},
                                           {"nt", false, true},
                                           {"tn", true, false},
                                           {"tt", true, true}}) {
          const std::int64_t n = 333, k = 700;
          Tensor c = random({m, n}, 3);
          const Tensor a = ta ? random({k, m}, 1) : random({m, k}, 1),
                       b = tb ? random({n, k}, 2) : random({k, n}, 2);
          on.gemm(a, b, c, {ta, tb, true, precision});
          keep(std::string(name) + std::to_string(m) + (precision == Precision::bf16 ? "bf16" : ""),
               c);
        }
      }
    }
  }

  void grouped_products() {
    for (const auto precision : {Precision::f32, Precision::bf16}) {
      const std::string in = precision == Precision::bf16 ? " in bf16" : "";
      for (const std::int64_t m : {5, 300}) {
        const Tensor x = random({m, 400}, 1), dy = random({m, 333}, 2), dz = random({m, 70}, 3),
                     w = random({333, 400}, 4), u = random({70, 400}, 5);
        GemmCall layers[] = {
            {x, w, on.empty({m, 333}), {.transpose_b = true, .precision = precision}},
            {x, u, on.empty({m, 70}), {.transpose_b = true, .precision = precision}}};
        GemmCall weights[] = {
            {dy,
             x,
             random({333, 400}, 6),
             {.transpose_a = true, .accumulate = true, .precision = precision}},
            {dz, x, on.empty({70, 400}), {.transpose_a = true, .precision = precision}}};
        const Tensor dx = on.empty({m, 400});
        GemmCall input[] = {{dy, w, dx, {.precision = precision}},
                            {dz, u, dx, {.accumulate = true, .precision = precision}}};
        for (const auto& calls : {std::span<GemmCall>(layers), std::span<GemmCall>(weights),
                                  std::span<GemmCall>(input)}) {
          on.grouped_gemm(calls);
          for (const GemmCall& call : calls)
            keep("grouped" + call.c.shape().text() + " of " + call.a.shape().text() + in, call.c);
        }
      }
    }
  }

  void rounding() {
    Tensor x = random({301, 207}, 9);
    on.round_to_bf16(x, {.key = 3, .stream = 1, .first = 0, .ld = 207});
    keep("stochastically rounded", x);
  }

  void weights_in_8_bits() {
    Tensor weight;
    on.pack(random({333, 700}, 2), DType::int8_packed, weight);
    for (const std::int64_t m : {1, 7, 100}) {
      Tensor c = on.empty({m, 333});
      on.gemm(random({m, 700}, 1), weight, c, {.transpose_b = true, .precision = Precision::bf16});
      keep("int8 " + std::to_string(m), c);
    }
  }

  void rows() {
    const std::int64_t count = 300, width = 500;
    const Tensor x = random({count, width}, 1), gain = random({width}, 2),
                 dy = random({count, width}, 3);
    Tensor y = on.empty({count, width}), inverse = on.empty({count}), dx = on.empty({count, width}),
           dgain = random({width}, 4);
    on.rms_norm(x, gain, 1e-6F, y, inverse, 0);
    on.rms_norm_backward(x, gain, inverse, dy, dx, dgain, 0);
    keep("rms_norm", y);
    keep("rms_norm dx", dx);
    keep("rms_norm dgain", dgain);
    on.rms_norm(x, gain, 1e-6F, y, inverse, 1);
    on.rms_norm_backward(x, gain, inverse, dy, dx, dgain, 1);
    keep("rms_norm with an offset", y);
    keep("rms_norm with an offset dx", dx);
    Tensor mean = on.empty({count});
    on.layer_norm(x, gain, dgain, 1e-6F, y, mean, inverse);
    on.layer_norm_backward(x, gain, mean, inverse, dy, dx, dgain);
    keep("layer_norm", y);
    keep("layer_norm dx", dx);
    keep("layer_norm dgain", dgain);
    on.bias_backward(dy, dgain);
    keep("bias", dgain);
    gates(x, dy, y, dx);
    Rows positions;
    for (int t = 0; t < count; ++t) positions.push_back(t % 90);
    on.rope(y, on.indices(positions), random({90, 50}, 5), random({90, 50}, 6), 5, false);
    keep("rope", y);
    on.add_bias(y, gain);
    on.add(y, x, y);
    on.scale(y, 1.1F);
    keep("sums", y);
  }

  void gates(const Tensor& x, const Tensor& dy, Tensor& y, Tensor& dx) {
    Tensor dup = on.empty(x.shape());
    for (const auto& [name, how] : {std::pair{"silu", Activation::silu},
                                    {"gelu", Activation::gelu},
                                    {"gelu_tanh", Activation::gelu_tanh},
                                    {"relu2", Activation::relu2}}) {
      on.activate(how, x, y);
      keep(name, y);
      on.activate_backward(how, x, dy, dx);
      keep(name + std::string(" dx"), dx);
      on.gated(how, x, dy, y);
      keep(name + std::string(" gated"), y);
      Tensor again = on.empty(x.shape());
      on.gated_backward(how, x, dy, y, dx, dup, &again);
      keep(name + std::string(" gated again"), again);
      keep(name + std::string(" dgate"), dx);
      keep(name + std::string(" dup"), dup);
    }
  }

  void attention(const std::string& name, const AttentionShape& shape, Precision precision) {
    Layout layout{{0, 70, 71, 300}, {}};
    for (int n = 0; n < 3; ++n) {
      for (int i = 0; i < layout.offsets[static_cast<std::size_t>(n) + 1] -
                              layout.offsets[static_cast<std::size_t>(n)];
           ++i)
        layout.positions.push_back(i);
    }
    const Tensor q = random({300, 240}, 1), dout = random({300, 240}, 2);
    const KeyValues kv{random({300, 80}, 3), random({300, 80}, 4)};
    Tensor out = on.empty({300, 240}), lse = on.empty({300, 6}), dq = on.empty({300, 240}),
           dk = on.empty({300, 80}), dv = on.empty({300, 80});
    const PreparedLayout prepared = on.prepare(layout);
    on.attention({q, kv, prepared, shape, precision}, out, &lse);
    on.attention_backward({q, kv, prepared, shape, precision}, {out, lse, dout, dq, dk, dv});
    keep(name, out);
    keep(name + " lse", lse);
    keep(name + " dq", dq);
    keep(name + " dk", dk);
    keep(name + " dv", dv);
  }

  void head(const std::string& name, const HeadScale& scale) {
    const std::int64_t count = 120, width = 64, vocabulary = 9000;
    const Tensor hidden = random({count, width}, 1), weight = random({vocabulary, width}, 2),
                 up = random({count}, 3);
    Rows targets;
    for (int t = 0; t < count; ++t) targets.push_back(t % 7 == 0 ? -1 : t * 71 % 9000);
    Tensor logp = on.empty({count}), lse = on.empty({count}), entropy = on.empty({count}),
           dhidden = on.empty({count, width});
    Tensor dweight = random({vocabulary, width}, 5);
    on.head({hidden, weight, on.indices(targets), scale, Precision::f32}, {logp, lse, &entropy});
    on.head_backward({hidden, weight, on.indices(targets), scale, Precision::f32}, {lse, &entropy},
                     {up, &up}, {dhidden, dweight});
    keep(name + " logp", logp);
    keep(name + " lse", lse);
    keep(name + " entropy", entropy);
    keep(name + " dhidden", dhidden);
    keep(name + " dweight", dweight);
  }

  void optimizer() {
    const std::int64_t count = 200000;
    Tensor p = random({count}, 1), m = random({count}, 2), v = on.empty({count});
    on.fill(v, 0.5F);
    Tensor g = random({count}, 3);
    on.adamw(p, g, m, v,
             {.learning_rate = 0.01, .weight_decay = 0.1, .step = 3, .grad_scale = 0.7F});
    keep("adamw", p);
    const double sum = on.sum_of_squares(g);
    on.adamw(p, g, m, v, {.learning_rate = 0.01, .step = 4, .clear_gradients = true});
    keep("adamw that clears", p);
    keep("adamw cleared", g);
    results["sum_of_squares"] = {
        static_cast<float>(sum),
        static_cast<float>((sum - static_cast<double>(static_cast<float>(sum))) * 1e9)};
  }
};

}  // namespace

std::map<std::string, Floats> every_result(Device& device) {
  Round round{device, {}};
  round.products();
  round.grouped_products();
  round.weights_in_8_bits();
  round.rounding();
  round.rows();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const std::string name = precision == Precision::bf16 ? "attention in bf16" : "attention";
    round.attention(name, {6, 2, 40, 0.16F}, precision);
    round.attention(name + " in a window", {6, 2, 40, 0.16F, 0, 50}, precision);
    round.attention(name + " capped", {6, 2, 40, 0.16F, 2}, precision);
    round.attention(name + " tilted",
                    {6, 2, 40, 0.16F, 0, 90, {1, 0.5F, 0.25F, 0.125F, 0.0625F, 0.03125F}},
                    precision);
  }
  round.head("head", {0.9F});
  round.head("head of scaled logits", {0.9F, 0.5F});
  round.head("head of capped logits", {0.9F, 1.5F, 5});
  round.optimizer();
  return round.results;
}

}  // namespace troupe::engine::ops
