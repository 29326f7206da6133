// Dropout of attention on every device and in both both_precisions: against its formula with the
// same mask, its derivative, and bit for bit for some of the heads, rows and keys.
#include <cmath>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

constexpr double drop_share = 0.3;
constexpr Precision both_precisions[] = {Precision::f32, Precision::bf16};
const AttentionShape dropped_shapes[] = {{4, 2, 8, 0.35F},
                                         {2, 1, 20, 0.2F, 2},
                                         {3, 3, 16, 0.25F, 0, 9},
                                         {4, 2, 64, 0.1F, 3, 30, {0.5F, 0.25F, 0.0625F, 1}}};

class AttentionDropoutOf : public OnEveryDevice {
 protected:
  Layout layout_{{0, 5, 6, 46, 117}, {}};
  RowIds rows_;
  AttentionDropout how_{drop_share, 12345, 6, rows_, 3};

  AttentionDropoutOf() {
    const std::uint64_t numbers[] = {7, 0, 1, 900};
    for (std::size_t n = 0; n < 4; ++n)
      for (int i = 0; i < layout_.offsets[n + 1] - layout_.offsets[n]; ++i) {
        layout_.positions.push_back(i);
        rows_.host.push_back(numbers[n] << 32 | static_cast<std::uint64_t>(i));
      }
  }
  Floats operand(int heads, const AttentionShape& shape, std::uint64_t seed, Precision precision) {
    Floats x = random_floats(std::int64_t{layout_.rows()} * heads * shape.head_size, seed);
    if (precision == Precision::bf16)
      for (float& value : x)  // exact in bf16
        value = std::round(value * 128) / 128;
    return x;
  }
  struct Results {
    Floats out, lse, dq, dk, dv;
  };
  struct Operands {
    Floats q, k, v, above;
  };
  Operands operands(const AttentionShape& shape, Precision precision) {
    return {operand(shape.heads, shape, 1, precision), operand(shape.kv_heads, shape, 2, precision),
            operand(shape.kv_heads, shape, 3, precision),
            operand(shape.heads, shape, 4, precision)};
  }
  Results run(Device& on, const Operands& x, const AttentionShape& shape, Precision precision,
              const AttentionDropout* how) {
    const std::int64_t rows = layout_.rows(), width = std::int64_t{shape.heads} * shape.head_size,
                       kv_width = std::int64_t{shape.kv_heads} * shape.head_size;
    const Tensor q = from_host(on, {rows, width}, x.q),
                 dout = from_host(on, {rows, width}, x.above);
    const KeyValues kv{from_host(on, {rows, kv_width}, x.k), from_host(on, {rows, kv_width}, x.v)};
    Tensor out = on.empty({rows, width}), lse = on.empty({rows, shape.heads}),
           dq = on.empty({rows, width}), dk = on.empty({rows, kv_width}),
           dv = on.empty({rows, kv_width});
    const PreparedLayout layout = on.prepare(layout_);
    const AttentionInputs in{q, kv, layout, shape, precision, how};
    on.attention(in, out, &lse);
    on.attention_backward(in, {out, lse, dout, dq, dk, dv});
    return {to_host(on, out), to_host(on, lse), to_host(on, dq), to_host(on, dk), to_host(on, dv)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionDropoutOf, testing::ValuesIn(device_cases()), case_name);

TEST_P(AttentionDropoutOf, EqualsItsFormulaWithTheSameMask) {
  for (const Precision precision : both_precisions)
    for (const AttentionShape& shape : dropped_shapes) {
      const Operands x = operands(shape, precision);
      const Results found = run(device(), x, shape, precision, &how_);
      const Doubles expected = oracle::attention(as_doubles(x.q), as_doubles(x.k), as_doubles(x.v),
                                                 layout_, shape, &how_);
      EXPECT_LT(relative_error(found.out, expected), precision == Precision::bf16 ? 2e-3 : 2e-6);
      EXPECT_TRUE(same_bits(found.lse, run(device(), x, shape, precision, nullptr).lse));
    }
}

TEST_P(AttentionDropoutOf, BackwardIsTheGradientOfForward) {
  layout_ = {{0, 5, 6, 15}, {0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}};
  rows_.host.resize(15);
  for (const Precision precision : both_precisions)
    for (const AttentionShape& shape : dropped_shapes) {
      if (shape.head_size > 20) continue;
      const Operands x = operands(shape, precision);
      const Results found = run(device(), x, shape, precision, &how_);
      const Doubles q = as_doubles(x.q), k = as_doubles(x.k), v = as_doubles(x.v),
                    up = as_doubles(x.above);
      const auto gradient_of = [&](const Doubles& at, auto attention) {
        return oracle::gradient(
            [&](const Doubles& moved) { return oracle::dot(attention(moved), up); }, at);
      };
      const auto of = [&](const Doubles& a, const Doubles& b, const Doubles& c) {
        return oracle::attention(a, b, c, layout_, shape, &how_);
      };
      const double bound = precision == Precision::bf16 ? 8e-3 : 5e-6;
      EXPECT_LT(
          relative_error(found.dq, gradient_of(q, [&](const Doubles& at) { return of(at, k, v); })),
          bound);
      EXPECT_LT(
          relative_error(found.dk, gradient_of(k, [&](const Doubles& at) { return of(q, at, v); })),
          bound);
      EXPECT_LT(
          relative_error(found.dv, gradient_of(v, [&](const Doubles& at) { return of(q, k, at); })),
          bound);
    }
}

TEST_P(AttentionDropoutOf, EqualsTheReference) {
  const auto reference = make_reference_device();
  for (const Precision precision : both_precisions)
    for (const AttentionShape& shape : dropped_shapes) {
      const Operands x = operands(shape, precision);
      const Results found = run(device(), x, shape, precision, &how_),
                    expected = run(*reference, x, shape, precision, &how_);
      const double bound = precision == Precision::bf16 ? 2e-3 : 5e-6;
      EXPECT_LT(relative_error(found.out, as_doubles(expected.out)), bound);
      EXPECT_LT(relative_error(found.dq, as_doubles(expected.dq)), bound);
      EXPECT_LT(relative_error(found.dk, as_doubles(expected.dk)), bound);
      EXPECT_LT(relative_error(found.dv, as_doubles(expected.dv)), bound);
    }
}

TEST_P(AttentionDropoutOf, OfProbabilityZeroChangesNoBit) {
  how_.probability = 0;
  for (const Precision precision : both_precisions) {
    const Operands x = operands(dropped_shapes[0], precision);
    const Results with = run(device(), x, dropped_shapes[0], precision, &how_),
                  without = run(device(), x, dropped_shapes[0], precision, nullptr);
    EXPECT_TRUE(same_bits(with.out, without.out));
    EXPECT_TRUE(same_bits(with.dq, without.dq));
    EXPECT_TRUE(same_bits(with.dk, without.dk));
    EXPECT_TRUE(same_bits(with.dv, without.dv));
  }
}

TEST_P(AttentionDropoutOf, SomeHeadsAreDroppedAsInTheWhole) {
  const AttentionShape whole = dropped_shapes[0];
  AttentionShape half = whole;
  half.heads = 2;
  half.kv_heads = 1;
  const Operands x = operands(whole, Precision::f32);
  const Results all = run(device(), x, whole, Precision::f32, &how_);
  // The second half of the columns of a row.
  const auto second = [&](const Floats& values) {
    const std::size_t width = values.size() / static_cast<std::size_t>(layout_.rows());
    Floats out;
    for (std::size_t row = 0; row < values.size(); row += width)
      out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(row + width / 2),
                 values.begin() + static_cast<std::ptrdiff_t>(row + width));
    return out;
  };
  how_.first_head += 2;
  const Results some = run(device(), {second(x.q), second(x.k), second(x.v), second(x.above)}, half,
                           Precision::f32, &how_);
  EXPECT_TRUE(same_bits(some.out, second(all.out)));
  EXPECT_TRUE(same_bits(some.dq, second(all.dq)));
  EXPECT_TRUE(same_bits(some.dk, second(all.dk)));
  EXPECT_TRUE(same_bits(some.dv, second(all.dv)));
}

TEST_P(AttentionDropoutOf, DropsAsManyWeightsAsItSays) {
  // Scores are 0, values 1: an output is the share of the kept keys over 1 - probability.
  const AttentionShape shape{2, 2, 4, 1};
  Operands x = operands(shape, Precision::f32);
  for (float& value : x.q) value = 0;
  for (float& value : x.v) value = 1;
  const Results found = run(device(), x, shape, Precision::f32, &how_);
  double kept = 0, keys = 0;
  for (std::size_t t = 0; t < layout_.positions.size(); ++t)
    for (int head = 0; head < 2; ++head) {
      const double seen = layout_.positions[t] + 1;
      kept += static_cast<double>(found.out[t * 8 + static_cast<std::size_t>(head) * 4]) * seen *
              (1 - drop_share);
      keys += seen;
    }
  // Six standard deviations.
  EXPECT_NEAR(kept / keys, 1 - drop_share, 6 * std::sqrt(drop_share * (1 - drop_share) / keys));
  how_.key += 1;
  EXPECT_FALSE(same_bits(run(device(), x, shape, Precision::f32, &how_).out, found.out));
}

}  // namespace
}  // namespace troupe::engine::ops
