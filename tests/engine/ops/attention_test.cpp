// Attention on every device and in both precisions: against its formula, its derivative, and bit
// for bit across pages, batches and partial passes.
#include <map>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/memory/host_buffer.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

Layout layout_of(const std::vector<int>& lengths) {
  Layout layout{{0}, {}};
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) layout.positions.push_back(i);
    layout.offsets.push_back(layout.offsets.back() + length);
  }
  return layout;
}

struct Case {
  std::vector<int> lengths;
  AttentionShape shape;
};
const Case cases[] = {{{5, 1, 17}, {4, 2, 8, 0.35F}},
                      {{70}, {2, 1, 20, 0.2F}},
                      {{3, 0, 130, 50}, {6, 3, 64, 0.125F}},
                      {{33, 64}, {2, 2, 7, 0.5F}},
                      {{5, 1, 17}, {4, 2, 8, 0.35F, 3}},
                      {{3, 0, 130, 50}, {6, 3, 16, 0.125F, 0, 9}},
                      {{150}, {2, 1, 20, 0.2F, 0, 2}},
                      {{33, 64}, {4, 2, 7, 0.5F, 0, 0, {0.5F, 0.25F, 0.0625F, 1}}},
                      {{3, 0, 130, 50}, {4, 2, 8, 0.35F, 2.5F, 70, {0.5F, 0.25F, 0.0625F, 0.01F}}},
                      {{600}, {2, 1, 48, 0.14F}},
                      {{600, 7}, {1, 1, 64, 0.125F}},
                      {{600}, {2, 2, 128, 0.09F, 0, 300}},
                      {{41, 2}, {1, 1, 256, 0.06F}},
                      {{45}, {20, 1, 16, 0.25F, 0, 7}},
                      {{40, 1, 19}, {5, 5, 40, 0.2F}},
                      {{2, 53}, {3, 3, 24, 0.25F, 0, 20}},
                      {{9}, {2, 2, 560, 0.05F, 3}}};

constexpr Precision precisions[] = {Precision::f32, Precision::bf16};
/// Error bound of a result in f32, or of one with rounded operands.
double bound(Precision precision, double f32, double bf16) {
  return precision == Precision::bf16 ? bf16 : f32;
}

Floats as_operands(Floats x, Precision precision) {
  if (precision == Precision::bf16)
    for (float& value : x) value = from_bf16(to_bf16(value));
  return x;
}

class Attention : public OnEveryDevice {
 protected:
  void expect_slopes(const Case& of, Precision precision);
  void expect_bits_through_pages(const Case& of, Precision precision);
  void expect_bits_of_last_rows(const Case& of, Precision precision);
  struct Inputs {
    Layout layout;
    Floats q, k, v, above;
    int rows, q_width, kv_width;
  };
  Inputs inputs(const Case& of) {
    Inputs made{layout_of(of.lengths),
                {},
                {},
                {},
                {},
                0,
                of.shape.heads * of.shape.head_size,
                of.shape.kv_heads * of.shape.head_size};
    made.rows = made.layout.rows();
    made.q = random_floats(made.rows * made.q_width, 1);
    made.k = random_floats(made.rows * made.kv_width, 2);
    made.v = random_floats(made.rows * made.kv_width, 3);
    made.above = random_floats(made.rows * made.q_width, 4);
    for (float& x : made.q) x *= 4;
    return made;
  }
  KeyValues contiguous(const Inputs& x) {
    return {put({x.rows, x.kv_width}, x.k), put({x.rows, x.kv_width}, x.v)};
  }
  Floats forward(const Inputs& x, const AttentionShape& shape, Precision precision) {
    Tensor out = filled({x.rows, x.q_width}, 9), lse = filled({x.rows, shape.heads}, 9);
    device().attention({put({x.rows, x.q_width}, x.q), contiguous(x), device().prepare(x.layout),
                        shape, precision},
                       out, &lse);
    return get(out);
  }
  /// dq, dk, dv, out, lse.
  std::vector<Floats> backward(Device& on, const Inputs& x, const AttentionShape& shape,
                               Precision precision) {
    const auto put_on = [&](int width, const Floats& values) {
      return from_host(on, {x.rows, width}, values);
    };
    const KeyValues kv{put_on(x.kv_width, x.k), put_on(x.kv_width, x.v)};
    const Tensor q = put_on(x.q_width, x.q), dout = put_on(x.q_width, x.above);
    Tensor out = on.empty({x.rows, x.q_width}), lse = on.empty({x.rows, shape.heads});
    Tensor dq = on.empty({x.rows, x.q_width}), dk = on.empty({x.rows, x.kv_width}),
           dv = on.empty({x.rows, x.kv_width});
    const PreparedLayout layout = on.prepare(x.layout);
    on.attention({q, kv, layout, shape, precision}, out, &lse);
    on.attention_backward({q, kv, layout, shape, precision}, {out, lse, dout, dq, dk, dv});
    return {to_host(on, dq), to_host(on, dk), to_host(on, dv), to_host(on, out), to_host(on, lse)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Attention, testing::ValuesIn(device_cases()), case_name);

TEST_P(Attention, EqualsItsFormula) {
  for (const Precision precision : precisions) {
    for (const Case& of : cases) {
      const Inputs x = inputs(of);
      const auto operands = [&](const Floats& values) {
        return as_doubles(as_operands(values, precision));
      };
      const Doubles expected =
          oracle::attention(operands(x.q), operands(x.k), operands(x.v), x.layout, of.shape);
      EXPECT_LT(relative_error(forward(x, of.shape, precision), expected),
                bound(precision, 2e-6, 2e-3));  // weights are within 2^-9
    }
  }
}

void Attention::expect_slopes(const Case& of, Precision precision) {
  Inputs x = inputs(of);
  for (Floats* operand : {&x.q, &x.k, &x.v, &x.above}) *operand = as_operands(*operand, precision);
  const std::vector<Floats> found = backward(device(), x, of.shape, precision);
  const Doubles qs = as_doubles(x.q), ks = as_doubles(x.k), vs = as_doubles(x.v),
                up = as_doubles(x.above);
  const auto loss = [&](const Doubles& a, const Doubles& b, const Doubles& c) {
    return oracle::dot(oracle::attention(a, b, c, x.layout, of.shape), up);
  };
  const double maximum = bound(precision, 5e-6, 4e-3);
  EXPECT_LT(relative_error(found[0], oracle::gradient(
                                         [&](const Doubles& at) { return loss(at, ks, vs); }, qs)),
            maximum);
  EXPECT_LT(relative_error(found[1], oracle::gradient(
                                         [&](const Doubles& at) { return loss(qs, at, vs); }, ks)),
            maximum);
  EXPECT_LT(relative_error(found[2], oracle::gradient(
                                         [&](const Doubles& at) { return loss(qs, ks, at); }, vs)),
            maximum);
}

TEST_P(Attention, BackwardIsTheGradientOfForward) {
  const Case bent[] = {{{5, 1, 9}, {4, 2, 6, 0.4F}},
                       {{5, 1, 9}, {4, 2, 6, 0.4F, 0, 4}},
                       {{5, 1, 9}, {4, 2, 6, 0.4F, 2}},
                       {{5, 1, 9}, {4, 2, 6, 0.4F, 0, 0, {1, 0.5F, 0.25F, 0.125F}}},
                       {{5, 1, 9}, {4, 2, 6, 0.4F, 3, 5, {1, 0.5F, 0.25F, 0.125F}}}};
  for (const Precision precision : precisions) {
    for (const Case& of : bent) expect_slopes(of, precision);
  }
}

TEST_P(Attention, EqualsTheReference) {
  const std::unique_ptr<Device> reference = make_reference_device();
  for (const Precision precision : precisions) {
    for (const Case& of : cases) {
      const Inputs x = inputs(of);
      const std::vector<Floats> expected = backward(*reference, x, of.shape, precision),
                                found = backward(device(), x, of.shape, precision);
      // A weight or gradient on the edge between two bf16 values may fall to the other one, 2^-8 of
      // itself away.
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_LT(relative_error(found[i], as_doubles(expected[i])),
                  bound(precision, 5e-6, i == 4 ? 5e-6 : 1.5e-3))
            << i;
    }
  }
}

// The CPU device goes through more than 2048 keys in parts.
TEST_P(Attention, OfLongSequencesEqualsTheReference) {
  const Case long_cases[] = {{{2200, 7}, {2, 1, 16, 0.25F}},
                             {{2600}, {1, 1, 16, 0.25F, 0, 501}},
                             {{2305}, {1, 1, 8, 0.35F, 0, 2101}},
                             {{3, 2300}, {2, 2, 8, 0.35F, 3, 0, {0.01F, 0.001F}}}};
  static std::map<std::pair<int, Precision>, std::vector<Floats>> references;
  for (const Precision precision : precisions)
    for (const Case& of : long_cases) {
      const Inputs x = inputs(of);
      std::vector<Floats>& expected = references[{x.rows, precision}];
      if (expected.empty()) expected = backward(*make_reference_device(), x, of.shape, precision);
      const std::vector<Floats> found = backward(device(), x, of.shape, precision);
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_LT(relative_error(found[i], as_doubles(expected[i])),
                  bound(precision, 5e-6, i == 4 ? 5e-6 : 1.5e-3))
            << i << " of " << of.lengths[0];
    }
}

void Attention::expect_bits_through_pages(const Case& of, Precision precision) {
  const Inputs x = inputs(of);
  const Floats expected = forward(x, of.shape, precision);
  for (const int page_size : {1, 3, 16, 64}) {
    // Pages are dealt out in a scrambled order, a few of them side by side.
    int count = 1;
    for (const int length : of.lengths) count += (length + page_size - 1) / page_size;
    std::vector<Rows> pages(of.lengths.size());
    Floats k(static_cast<std::size_t>(count * page_size * x.kv_width), 1e30F), v = k;
    int next = 0;
    for (std::size_t n = 0; n < of.lengths.size(); ++n) {
      for (int key = 0; key < of.lengths[n]; ++key) {
        if (key % page_size == 0) {
          const int place = next++;
          pages[n].push_back(place % 5 == 4 && place + 1 < count ? place + 1
                             : place % 5 == 0 && place > 0       ? place - 1
                                                                 : place);
        }
        const auto to =
            static_cast<std::size_t>((pages[n].back() * page_size + key % page_size) * x.kv_width);
        const auto from = (x.layout.offsets[n] + key) * x.kv_width;
        std::copy_n(x.k.begin() + from, x.kv_width, k.begin() + static_cast<std::ptrdiff_t>(to));
        std::copy_n(x.v.begin() + from, x.kv_width, v.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
    const KeyValues kv{put({count * page_size, x.kv_width}, k),
                       put({count * page_size, x.kv_width}, v)};
    Tensor out = filled({x.rows, x.q_width}, 9);
    device().attention({put({x.rows, x.q_width}, x.q), kv,
                        device().prepare(x.layout, {page_size, pages}), of.shape, precision},
                       out, nullptr);
    EXPECT_TRUE(same_bits(get(out), expected)) << "pages of " << page_size;
  }
}

TEST_P(Attention, ThroughPagesHasTheBitsOfContiguousKeys) {
  for (const Precision precision : precisions) {
    for (const Case& of : cases) expect_bits_through_pages(of, precision);
  }
}

void Attention::expect_bits_of_last_rows(const Case& of, Precision precision) {
  const Inputs x = inputs(of);
  const Floats expected = forward(x, of.shape, precision);
  for (const int last :
       {1, 2, 14,
        290}) {  // rows decoded at once: a token, or the tail of a chunk; in blocks of their own
    Layout tail{{0}, {}};
    Floats q, wanted;
    std::vector<Rows> pages;
    for (std::size_t n = 0; n < of.lengths.size(); ++n) {
      const int length = of.lengths[n], rows = std::min(last, length),
                begin = x.layout.offsets[n] + length - rows;
      for (int i = 0; i < rows; ++i) tail.positions.push_back(length - rows + i);
      tail.offsets.push_back(tail.offsets.back() + rows);
      q.insert(q.end(), x.q.begin() + begin * x.q_width, x.q.begin() + (begin + rows) * x.q_width);
      wanted.insert(wanted.end(), expected.begin() + begin * x.q_width,
                    expected.begin() + (begin + rows) * x.q_width);
      Rows mine;
      for (int key = 0; key < length; ++key) mine.push_back(x.layout.offsets[n] + key);
      pages.push_back(mine);
    }
    Tensor out = filled({tail.rows(), x.q_width}, 9);
    device().attention({put({tail.rows(), x.q_width}, q), contiguous(x),
                        device().prepare(tail, {1, pages}), of.shape, precision},
                       out, nullptr);
    EXPECT_TRUE(same_bits(get(out), wanted)) << last;
  }
}

TEST_P(Attention, OfTheLastRowAloneHasTheBitsOfTheFullPass) {
  for (const Precision precision : precisions) {
    for (const Case& of : cases) expect_bits_of_last_rows(of, precision);
  }
}

TEST_P(Attention, OfASequenceDoesNotDependOnTheOthers) {
  const Case many{{40, 23, 60}, {4, 2, 16, 0.25F}}, one{{60}, {4, 2, 16, 0.25F}};
  const Inputs x = inputs(many);
  Inputs alone = inputs(one);
  alone.q = slice(x.q, 63 * x.q_width, 123 * x.q_width);
  alone.k = slice(x.k, 63 * x.kv_width, 123 * x.kv_width);
  alone.v = slice(x.v, 63 * x.kv_width, 123 * x.kv_width);
  for (const Precision precision : precisions) {
    const Floats packed = forward(x, many.shape, precision);
    EXPECT_TRUE(same_bits(slice(packed, 63 * x.q_width, 123 * x.q_width),
                          forward(alone, one.shape, precision)));
  }
}

TEST_P(Attention, BackwardOfASequenceDoesNotDependOnTheOthers) {
  const Case many{{40, 23, 300}, {4, 2, 48, 0.25F}}, one{{300}, many.shape};
  const Inputs x = inputs(many);
  Inputs alone = inputs(one);
  const auto last = [](const Floats& of, int width) { return slice(of, 63 * width, 363 * width); };
  alone.q = last(x.q, x.q_width);
  alone.above = last(x.above, x.q_width);
  alone.k = last(x.k, x.kv_width);
  alone.v = last(x.v, x.kv_width);
  for (const Precision precision : precisions) {
    const std::vector<Floats> packed = backward(device(), x, many.shape, precision),
                              single = backward(device(), alone, one.shape, precision);
    EXPECT_TRUE(same_bits(last(packed[0], x.q_width), single[0]));
    for (const std::size_t i : {1, 2})
      EXPECT_TRUE(same_bits(last(packed[i], x.kv_width), single[i])) << i;
  }
}

TEST_P(Attention, WithAWindowOverEverythingHasTheBitsOfAllKeys) {
  const Case of{{40, 23, 60}, {4, 2, 16, 0.25F}};
  const Inputs x = inputs(of);
  AttentionShape wide = of.shape;
  wide.window = 60;
  for (const Precision precision : precisions)
    EXPECT_TRUE(same_bits(forward(x, of.shape, precision), forward(x, wide, precision)));
}

TEST_P(Attention, InAWindowOfOneIsTheRowsOwnValue) {
  const Case of{{60, 3}, {2, 2, 16, 0.25F, 0, 1}};
  const Inputs x = inputs(of);
  for (const Precision precision : precisions)
    EXPECT_EQ(forward(x, of.shape, precision), as_operands(x.v, precision));
}

TEST_P(Attention, NeverReadsKeysOutsideTheWindow) {  // their values would show
  for (const Precision precision : precisions) {
    for (const int window : {8, 9}) {
      const Case of{{300}, {2, 1, 16, 0.25F, 0, window}};
      Inputs x = inputs(of);
      const Floats expected = forward(x, of.shape, precision);
      for (float* all : {x.k.data(), x.v.data()})
        std::fill(all, all + (300 - window) * x.kv_width, __builtin_nanf(""));
      const Layout last{{0, 1}, {299}};
      std::vector<Rows> pages(1);
      for (int key = 0; key < 300; ++key) pages[0].push_back(key);
      Tensor out = filled({1, x.q_width}, 9);
      device().attention({put({1, x.q_width}, slice(x.q, 299 * x.q_width, 300 * x.q_width)),
                          contiguous(x), device().prepare(last, {1, pages}), of.shape, precision},
                         out, nullptr);
      EXPECT_TRUE(same_bits(get(out), slice(expected, 299 * x.q_width, 300 * x.q_width))) << window;
    }
  }
}

TEST_P(Attention, BeyondItsKeysIsABug) {
  const Case of{{4}, {1, 1, 4, 1}};
  const Inputs x = inputs(of);
  Layout wrong = x.layout;
  wrong.positions[0] = 4;
  Tensor out = filled({4, 4}, 0);
  for (const Precision precision : precisions)
    EXPECT_THROW(device().attention({put({4, 4}, x.q), contiguous(x), device().prepare(wrong),
                                     of.shape, precision},
                                    out, nullptr),
                 std::logic_error);
}

}  // namespace
}  // namespace troupe::engine::ops
