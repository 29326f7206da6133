// Both norms on every device: compared with their formulas and gradients, and row by row.
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

enum class Kind { rms, rms_with_offset, layer, layer_without_bias };
constexpr Kind kinds[] = {Kind::rms, Kind::rms_with_offset, Kind::layer, Kind::layer_without_bias};

class Norms : public OnEveryDevice {
 protected:
  struct Case {
    Kind kind;
    int rows, width;
    Floats x, gain, bias;
    Case(Kind of, int rows_, int width_, float away = 0)
        : kind(of),
          rows(rows_),
          width(width_),
          x(random_floats(rows_ * width_, 1)),
          gain(random_floats(width_, 2)) {
      for (float& value : x) value += away;
      if (kind == Kind::layer) bias = random_floats(width, 3);
    }
    bool is_layer() const { return kind == Kind::layer || kind == Kind::layer_without_bias; }
    float offset() const { return kind == Kind::rms_with_offset ? 1.0F : 0.0F; }
    Doubles formula(const Doubles& at, const Doubles& with) const {
      if (is_layer()) return oracle::layer_norm(at, with, as_doubles(bias), double{1e-5F});
      return oracle::rms_norm(at, with, double{1e-5F}, double{offset()});
    }
  };
  /// Result of a forward pass, and the statistics for the backward pass.
  struct Forward {
    Tensor y, mean, inverse;
  };
  Forward forward(const Case& of, const Tensor& x) {
    const std::int64_t rows = x.shape()[0];
    Forward got{filled(x.shape(), 9), filled({rows}, 9), filled({rows}, 9)};
    const Tensor gain = put({of.width}, of.gain),
                 bias = of.bias.empty() ? Tensor() : put({of.width}, of.bias);
    if (of.is_layer())
      device().layer_norm(x, gain, bias, 1e-5F, got.y, got.mean, got.inverse);
    else
      device().rms_norm(x, gain, 1e-5F, got.y, got.inverse, of.offset());
    return got;
  }
  void backward(const Case& of, const Tensor& x, const Forward& got, const Tensor& dy, Tensor& dx,
                Tensor& dgain) {
    const Tensor gain = put({of.width}, of.gain);
    if (of.is_layer())
      device().layer_norm_backward(x, gain, got.mean, got.inverse, dy, dx, dgain);
    else
      device().rms_norm_backward(x, gain, got.inverse, dy, dx, dgain, of.offset());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Norms, testing::ValuesIn(device_cases()), case_name);

TEST_P(Norms, EqualTheirFormulas) {
  for (const Kind kind : kinds) {
    for (const int width : {1, 8, 64, 100, 1500}) {
      const Case of(kind, 5, width);
      EXPECT_LT(relative_error(get(forward(of, put({5, width}, of.x)).y),
                               of.formula(as_doubles(of.x), as_doubles(of.gain))),
                1e-6)
          << width;
    }
  }
}

TEST_P(Norms, OfLayersHoldFarFromZero) {  // the mean square of x less the square of its mean would
                                          // have lost every digit
  const Case of(Kind::layer, 3, 256, 4096);
  EXPECT_LT(relative_error(get(forward(of, put({3, 256}, of.x)).y),
                           of.formula(as_doubles(of.x), as_doubles(of.gain))),
            1e-3);
}

TEST_P(Norms, BackwardIsTheGradientOfForward) {
  for (const Kind kind : kinds) {
    const Case of(kind, 3, 21);
    const Doubles above = as_doubles(random_floats(3 * 21, 4));
    const Tensor x = put({3, 21}, of.x), dy = put({3, 21}, random_floats(3 * 21, 4));
    Tensor dx = filled({3, 21}, 7), dgain = filled({21}, 0.25F);
    backward(of, x, forward(of, x), dy, dx, dgain);
    const Doubles xs = as_doubles(of.x), gains = as_doubles(of.gain);
    Doubles by_gain = oracle::gradient(
        [&](const Doubles& at) { return oracle::dot(of.formula(xs, at), above); }, gains);
    for (double& derivative : by_gain) derivative += 0.25;  // added to what was there
    EXPECT_LT(
        relative_error(
            get(dx),
            oracle::gradient(
                [&](const Doubles& at) { return oracle::dot(of.formula(at, gains), above); }, xs)),
        3e-6);
    EXPECT_LT(relative_error(get(dgain), by_gain), 3e-6);
  }
}

TEST_P(Norms, BackwardMayWorkInPlace) {
  for (const Kind kind : kinds) {
    const Case of(kind, 3, 21);
    const Tensor x = put({3, 21}, of.x);
    const Forward got = forward(of, x);
    Tensor dx = filled({3, 21}, 7), dgain = filled({21}, 0),
           own = put({3, 21}, random_floats(3 * 21, 4)), own_dgain = filled({21}, 0);
    backward(of, x, got, own, dx, dgain);
    backward(of, x, got, own, own, own_dgain);
    EXPECT_TRUE(same_bits(get(dx), get(own)));
    EXPECT_TRUE(same_bits(get(dgain), get(own_dgain)));
  }
}

TEST_P(Norms, OfARowDoNotDependOnTheBatch) {
  for (const Kind kind : kinds) {
    const Case of(kind, 9, 77);
    const Floats last = slice(of.x, 8 * 77, 9 * 77);
    const Floats all = get(forward(of, put({9, 77}, of.x)).y);
    EXPECT_TRUE(same_bits(slice(all, 8 * 77, 9 * 77), get(forward(of, put({1, 77}, last)).y)));
  }
}

TEST_P(Norms, OfShapesThatDoNotFitAreABug) {
  const Tensor x = put({2, 3}, Floats(6, 1)), gain = put({3}, Floats(3, 1)),
               wrong = put({4}, Floats(4, 1));
  Tensor y = filled({2, 3}, 0), mean = filled({2}, 0), inverse = filled({2}, 0);
  EXPECT_THROW(device().layer_norm(x, wrong, {}, 1e-5F, y, mean, inverse), std::logic_error);
  EXPECT_THROW(device().layer_norm(x, gain, wrong, 1e-5F, y, mean, inverse), std::logic_error);
  EXPECT_THROW(device().rms_norm(x, wrong, 1e-5F, y, inverse, 0), std::logic_error);
}

}  // namespace
}  // namespace troupe::engine::ops
