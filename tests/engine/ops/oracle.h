// Every operation as its formula reads, in double, for one purpose: to be obviously right.
// Gradients are central differences of these.
#pragma once

#include <functional>

#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops::oracle {

/// a [m, k] (or [k, m]) times b [k, n] (or [n, k]).
Doubles gemm(const Doubles& a, const Doubles& b, int m, int n, int k, bool transpose_a,
             bool transpose_b);
Doubles rms_norm(const Doubles& x, const Doubles& gain, double eps, double offset = 0);
/// An empty bias is none.
Doubles layer_norm(const Doubles& x, const Doubles& gain, const Doubles& bias, double eps);
double activated(Activation activation, double x);
Doubles gated(Activation activation, const Doubles& gate, const Doubles& up);
/// cap * tanh(x / cap), or x without a cap.
double capped(double x, double cap);
Doubles rope(const Doubles& x, const Rows& positions, const Doubles& cos, const Doubles& sin,
             int heads, int size);
/// Factor of the weight of a key: 0 where it is dropped.
double kept(const AttentionDropout& how, int row, int head, int key);
/// Without pages. q [T, H*K], k, v [T, G*K].
Doubles attention(const Doubles& q, const Doubles& k, const Doubles& v, const Layout& layout,
                  const AttentionShape& shape, const AttentionDropout* dropout = nullptr);

struct Head {
  Doubles logp, entropy;
};
Head head(const Doubles& hidden, const Doubles& weight, const Rows& targets, const HeadScale& scale,
          int width);

Doubles gradient(const std::function<double(const Doubles&)>& f, Doubles at);
double dot(const Doubles& a, const Doubles& b);

}  // namespace troupe::engine::ops::oracle
