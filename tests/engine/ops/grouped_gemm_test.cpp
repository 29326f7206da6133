// Products that share an operand or a sum, on every device: the bits of one after the other.
#include "engine/base/errors/check.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

class GroupedProducts : public OnEveryDevice {
 protected:
  using Calls = std::vector<GemmCall>;

  Tensor random(Shape shape, std::uint64_t seed) {
    return put(shape, random_floats(shape.count(), seed));
  }
  /// The same calls with results of their own, the same one where they had the same one.
  Calls copies(const Calls& calls) {
    Calls others = calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      others[i].c = i > 0 && calls[i].c.buffer() == calls[0].c.buffer()
                        ? others[0].c
                        : put(calls[i].c.shape(), get(calls[i].c));
    }
    return others;
  }
  void expect_the_bits_of_each(const Calls& calls, const std::string& name) {
    Calls together = copies(calls), each = copies(calls);
    device().grouped_gemm(together);
    for (GemmCall& call : each) device().gemm(call.a, call.b, call.c, call.how);
    for (std::size_t i = 0; i < calls.size(); ++i)
      EXPECT_TRUE(same_bits(get(together[i].c), get(each[i].c))) << name << ", product " << i;
  }

  Calls layers(int m, int k, Gemm how) {
    const Tensor x = random({m, k}, 1);
    Calls calls;
    for (const int n : {96, 33, 1, 130})
      calls.push_back({x, random({n, k}, 10 + n), random({m, n}, 2), how});
    return calls;
  }
  Calls gradients_of_weights(int m, int k, Gemm how) {
    const Tensor x = random({k, 77}, 1);
    Calls calls;
    for (const int f : {m, 33, 90})
      calls.push_back({random({k, f}, 10 + f), x, random({f, 77}, 2), how});
    return calls;
  }
  Calls gradients_of_an_input(int m, int k, Gemm how) {
    Tensor dx = random({m, 77}, 2);
    Calls calls;
    for (const int f : {k, 33, 90}) {
      calls.push_back({random({m, f}, 10 + f), random({f, 77}, 30 + f), dx, how});
      how.accumulate = true;
    }
    return calls;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GroupedProducts, testing::ValuesIn(device_cases()), case_name);

TEST_P(GroupedProducts, HaveTheBitsOfOneAfterTheOther) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const bool adds : {false, true}) {
      for (const auto& [m, k] :
           {std::pair{1, 7}, {5, 700}, {16, 64}, {40, 300}, {150, 200}, {33, 2500}, {90, 4200}}) {
        const std::string name = std::to_string(m) + " x " + std::to_string(k) +
                                 (precision == Precision::bf16 ? " in bf16" : "");
        expect_the_bits_of_each(
            layers(m, k, {.transpose_b = true, .accumulate = adds, .precision = precision}),
            "layers " + name);
        expect_the_bits_of_each(
            gradients_of_weights(m, k,
                                 {.transpose_a = true, .accumulate = adds, .precision = precision}),
            "gradients of weights " + name);
        expect_the_bits_of_each(
            gradients_of_an_input(m, k, {.accumulate = adds, .precision = precision}),
            "gradients of an input " + name);
      }
    }
  }
}

TEST_P(GroupedProducts, OfPackedWeightsToo) {
  for (const DType type : {DType::bf16_packed, DType::int8_packed}) {
    for (const int m : {0, 1, 14, 16, 100}) {
      Calls calls = layers(m, 200, {.transpose_b = true, .precision = Precision::bf16});
      for (GemmCall& call : calls) {
        Tensor packed;
        device().pack(call.b, type, packed);
        call.b = packed;
      }
      expect_the_bits_of_each(calls, std::to_string(m) + " rows");
    }
  }
}

TEST_P(GroupedProducts, ThatShareNothingOrNotInOneWayAreMadeAsWell) {
  const Gemm layer{.transpose_b = true}, narrow{.transpose_b = true, .precision = Precision::bf16};
  Calls calls = layers(60, 100, layer);
  calls[1].a = random({60, 100}, 5);
  expect_the_bits_of_each(calls, "another input");
  calls = layers(60, 100, layer);
  calls[2].how = narrow;
  expect_the_bits_of_each(calls, "another precision");
  calls = layers(60, 100, narrow);
  Tensor packed;
  device().pack(calls[1].b, DType::bf16_packed, packed);
  calls[1].b = packed;
  expect_the_bits_of_each(calls, "one weight is packed");
  calls = gradients_of_an_input(60, 100, {});
  calls[2].how.accumulate = false;
  expect_the_bits_of_each(calls, "the last assigns");
  expect_the_bits_of_each({calls[0]}, "one");
  expect_the_bits_of_each({}, "none");
}

TEST_P(GroupedProducts, WithShapesThatDoNotFitAreABug) {
  Calls calls = layers(60, 100, {.transpose_b = true});
  calls[1].b = random({33, 90}, 1);
  EXPECT_THROW(device().grouped_gemm(calls), Bug);
}

}  // namespace
}  // namespace troupe::engine::ops
