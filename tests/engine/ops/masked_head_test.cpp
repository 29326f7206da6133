// The LM head over some columns of each row (ColumnMask), on every device: compared with its
// formula and its derivative, and bit for bit between its ways.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

using Kept = std::vector<Rows>;  // ids of each row, ascending; none: all columns

ColumnMask mask_of(const Kept& rows, std::int64_t vocabulary) {
  ColumnMask mask{{}, {}, (vocabulary + 63) / 64};
  std::int32_t sets = 0;
  for (const Rows& ids : rows) {
    mask.sets.push_back(ids.empty() ? -1 : sets++);
    if (ids.empty()) continue;
    mask.bits.resize(static_cast<std::size_t>(sets * mask.words));
    for (const std::int64_t id : ids)
      mask.bits[static_cast<std::size_t>((sets - 1) * mask.words + id / 64)] |= std::uint64_t{1}
                                                                                << id % 64;
  }
  return mask;
}

struct Expected {
  Doubles logp, lse, entropy;
};

/// The scores of the targets under softmax(cap(scale * hidden.weight) / temperature) over the kept
/// columns, as loops.
Expected masked_head(const Doubles& hidden, const Doubles& weight, const Rows& targets,
                     const Kept& kept, const HeadScale& scale, int width) {
  Expected out;
  const auto vocabulary = static_cast<std::int32_t>(weight.size()) / width;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Rows ids = kept[t];
    for (std::int32_t v = 0; kept[t].empty() && v < vocabulary; ++v) ids.push_back(v);
    const auto logit = [&](std::int32_t v) {
      double z = 0;
      for (int i = 0; i < width; ++i)
        z += hidden[t * static_cast<std::size_t>(width) + static_cast<std::size_t>(i)] *
             weight[static_cast<std::size_t>(v * width + i)];
      z *= double{scale.logit_scale};
      if (scale.softcap != 0) z = double{scale.softcap} * std::tanh(z / double{scale.softcap});
      return z * double{scale.inv_temperature};
    };
    double sum = 0;
    for (const auto v : ids) sum += std::exp(logit(v));
    const double lse = std::log(sum);
    double entropy = 0;
    for (const auto v : ids) entropy -= std::exp(logit(v) - lse) * (logit(v) - lse);
    out.logp.push_back(targets[t] < 0 ? 0 : logit(targets[t]) - lse);
    out.lse.push_back(lse);
    out.entropy.push_back(entropy);
  }
  return out;
}

/// Rows of all kinds: the whole vocabulary, one column, the columns of one block only, every third.
Kept kept_of(const Rows& targets, std::int32_t vocabulary) {
  Kept kept;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Rows& ids = kept.emplace_back();
    const std::int32_t target = std::max(targets[t], 0);
    if (t % 5 == 0) continue;
    for (std::int32_t v = 0; v < vocabulary; ++v)
      if (v == target || (t % 5 == 2 && v < 40) || (t % 5 == 3 && v > vocabulary - 30) ||
          (t % 5 == 4 && v % 3 == 1))
        ids.push_back(v);
  }
  return kept;
}

class MaskedHead : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, MaskedHead, testing::ValuesIn(device_cases()), case_name);

constexpr HeadScale masked_scales[] = {{0.7F}, {0.8F, 0.3F}, {1.3F, 0.5F, 3}};

TEST_P(MaskedHead, EqualsItsFormula) {
  const int width = 24, vocabulary = 1900;
  const Rows targets = {0, 5, 38, 1899, 1000, 42, 77};
  const Kept kept = kept_of(targets, vocabulary);
  const ColumnMask mask = mask_of(kept, vocabulary);
  const Floats hidden = random_floats(7 * width, 1), weight = random_floats(vocabulary * width, 2);
  for (const HeadScale& scale : masked_scales) {
    Tensor logp = filled({7}, 9), lse = filled({7}, 9), entropy = filled({7}, 9),
           whole_lse = filled({7}, 9), whole_entropy = filled({7}, 9);
    device().head({put({7, width}, hidden), put({vocabulary, width}, weight),
                   device().indices(targets), scale, Precision::f32, nullptr, &mask},
                  {logp, lse, &entropy, nullptr, &whole_lse, &whole_entropy});
    const Expected expected =
        masked_head(as_doubles(hidden), as_doubles(weight), targets, kept, scale, width);
    const Expected whole =
        masked_head(as_doubles(hidden), as_doubles(weight), targets, Kept(7), scale, width);
    EXPECT_LT(relative_error(get(whole_lse), whole.lse), 2e-6);
    EXPECT_LT(relative_error(get(whole_entropy), whole.entropy), 2e-6);
    EXPECT_LT(relative_error(get(logp), expected.logp), 2e-6);
    EXPECT_LT(relative_error(get(lse), expected.lse), 2e-6);
    EXPECT_LT(relative_error(get(entropy), expected.entropy), 2e-6);
    EXPECT_EQ(get(logp)[1], 0);  // its only column
    EXPECT_EQ(get(entropy)[1], 0);
  }
}

TEST_P(MaskedHead, BackwardIsTheGradientOfForward) {
  const int width = 6, vocabulary = 70, rows = 5;
  const Rows targets = {0, 5, 38, 69, 64};
  const Kept kept = kept_of(targets, vocabulary);
  const ColumnMask mask = mask_of(kept, vocabulary);
  const Floats hidden = random_floats(rows * width, 1),
               weight = random_floats(vocabulary * width, 2);
  const Floats dlogp = random_floats(rows, 3), dentropy = random_floats(rows, 4);
  const Tensor h = put({rows, width}, hidden), w = put({vocabulary, width}, weight),
               up = put({rows}, dlogp), up_entropy = put({rows}, dentropy);
  for (const HeadScale& scale : masked_scales) {
    Tensor logp = filled({rows}, 9), lse = filled({rows}, 9), entropy = filled({rows}, 9),
           dh = filled({rows, width}, 9), dw = filled({vocabulary, width}, 0.5F);
    const Indices at = device().indices(targets);
    const HeadInputs in{h, w, at, scale, Precision::f32, nullptr, &mask};
    device().head(in, {logp, lse, &entropy});
    device().head_backward(in, {lse, &entropy}, {up, &up_entropy}, {dh, dw});
    const auto loss = [&](const Doubles& a, const Doubles& b) {
      const Expected now = masked_head(a, b, targets, kept, scale, width);
      return oracle::dot(now.logp, as_doubles(dlogp)) +
             oracle::dot(now.entropy, as_doubles(dentropy));
    };
    Doubles by_weight = oracle::gradient(
        [&](const Doubles& x) { return loss(as_doubles(hidden), x); }, as_doubles(weight));
    for (double& derivative : by_weight) derivative += 0.5;
    EXPECT_LT(relative_error(get(dw), by_weight), 3e-6);
    EXPECT_LT(
        relative_error(
            get(dh), oracle::gradient([&](const Doubles& x) { return loss(x, as_doubles(weight)); },
                                      as_doubles(hidden))),
        5e-6);
    for (int i = 0; i < width; ++i)  // row 1 has one column only: nothing changes its probability
      EXPECT_EQ(get(dh)[static_cast<std::size_t>(width + i)], 0);
  }
}

TEST_P(MaskedHead, HasOneResultInAllItsWays) {
  const int width = 20, rows = 37, vocabulary = 1901;
  Rows targets;
  for (int i = 0; i < rows; ++i) targets.push_back(i % 6 == 4 ? no_target : i * 51 % vocabulary);
  const ColumnMask mask = mask_of(kept_of(targets, vocabulary), vocabulary);
  const Tensor h = put({rows, width}, random_floats(rows * width, 1)),
               w = put({vocabulary, width}, random_floats(vocabulary * width, 2)),
               up = put({rows}, random_floats(rows, 3)),
               up_entropy = put({rows}, random_floats(rows, 4));
  const Indices at = device().indices(targets);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const HeadInputs in{h, w, at, {1.3F, 0.5F, 3}, precision, nullptr, &mask};
    const auto column = [&] { return filled({rows}, 9); };
    Tensor logp = column(), lse = column(), entropy = column(), kept, dh = filled({rows, width}, 9),
           dw = filled({vocabulary, width}, 0);
    device().head(in, {logp, lse, &entropy, &kept});
    device().head_backward(in, {lse, &entropy, &kept}, {up, &up_entropy}, {dh, dw});
    Tensor logp2 = column(), lse2 = column(), entropy2 = column(), dh2 = filled({rows, width}, 9),
           dw2 = filled({vocabulary, width}, 0);
    device().head_forward_backward(in, {up, &up_entropy}, {logp2, lse2, &entropy2}, {dh2, dw2});
    Tensor dh3 = filled({rows, width}, 9), dw3 = filled({vocabulary, width}, 0);
    device().head_backward(in, {lse, &entropy}, {up, &up_entropy}, {dh3, dw3});
    Tensor logits = filled({rows, vocabulary}, 9), logp4 = column(), lse4 = column();
    device().gemm(h, w, logits, {.transpose_b = true, .precision = precision});
    device().scale_logits(logits, in.scale);
    device().token_logprob(logits, at, in.scale.inv_temperature, logp4, lse4, &mask);
    EXPECT_TRUE(same_bits(get(logp), get(logp2)) && same_bits(get(logp), get(logp4)));
    EXPECT_TRUE(same_bits(get(entropy), get(entropy2)));
    EXPECT_TRUE(same_bits(get(dh), get(dh2)) && same_bits(get(dh), get(dh3)));
    EXPECT_TRUE(same_bits(get(dw), get(dw2)) && same_bits(get(dw), get(dw3)));
    for (int i = 0; i < rows; ++i)
      if (targets[static_cast<std::size_t>(i)] != no_target) {
        EXPECT_EQ(get(lse)[static_cast<std::size_t>(i)], get(lse4)[static_cast<std::size_t>(i)]);
      }
  }
}

TEST_P(MaskedHead, OfAPartWithoutColumnsIsEmpty) {
  const int width = 8, vocabulary = 30;
  const Rows targets = {target_elsewhere, 3};
  ColumnMask mask = mask_of({{1}, {3, 4}}, vocabulary);
  mask.bits[0] = 0;
  const Tensor h = put({2, width}, random_floats(2 * width, 1)),
               w = put({vocabulary, width}, random_floats(vocabulary * width, 2)),
               up = put({2}, {1, 1});
  const Indices at = device().indices(targets);
  const HeadInputs in{h, w, at, {1}, Precision::f32, nullptr, &mask};
  Tensor logp = filled({2}, 9), lse = filled({2}, 9), entropy = filled({2}, 9),
         dh = filled({2, width}, 9), dw = filled({vocabulary, width}, 0);
  device().head(in, {logp, lse, &entropy});
  EXPECT_EQ(get(lse)[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(get(entropy)[0], 0);
  const Tensor whole = put({2}, {0.5F, get(lse)[1]});  // other ranks have the columns of row 0
  device().head_backward(in, {whole, &entropy}, {up, &up}, {dh, dw});
  for (int i = 0; i < width; ++i) EXPECT_EQ(get(dh)[static_cast<std::size_t>(i)], 0);
}

TEST_P(MaskedHead, ATargetBeyondItsMaskIsABug) {
  const Rows targets = {5};
  const ColumnMask mask = mask_of({{3, 4}}, 30);
  const Tensor h = put({1, 8}, random_floats(8, 1)), w = put({30, 8}, random_floats(240, 2));
  Tensor logp = filled({1}, 9), lse = filled({1}, 9);
  EXPECT_THROW(device().head({h, w, device().indices(targets), {1}, Precision::f32, nullptr, &mask},
                             {logp, lse}),
               Bug);
}

}  // namespace
}  // namespace troupe::engine::ops
