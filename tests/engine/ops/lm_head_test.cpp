// The LM head on every device: compared with its formula and its derivative, and bit for bit with
// logits in memory.
#include <gmock/gmock.h>

#include <cmath>
#include <utility>

#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/oracle.h"

namespace troupe::engine::ops {
namespace {

class Head : public OnEveryDevice {
 protected:
  struct Results {
    Floats logp, lse, entropy;
  };
  Results head(const Floats& hidden, const Floats& weight, const Rows& targets,
               const HeadScale& scale, int width, Precision precision = Precision::f32) {
    const auto rows = static_cast<std::int64_t>(targets.size()),
               vocabulary = static_cast<std::int64_t>(weight.size()) / width;
    Tensor logp = filled({rows}, 9), lse = filled({rows}, 9), entropy = filled({rows}, 9);
    device().head({put({rows, width}, hidden), put({vocabulary, width}, weight),
                   device().indices(targets), scale, precision},
                  {logp, lse, &entropy});
    return {get(logp), get(lse), get(entropy)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Head, testing::ValuesIn(device_cases()), case_name);

Floats scaled(Floats x, float by) {
  for (float& value : x) value *= by;
  return x;
}

/// Source of the logits for the gradients.
enum class Way { again, kept, through };

constexpr HeadScale scales[] = {{0.7F}, {0.8F, 0.3F}, {0.7F, 1, 4}, {1.3F, 0.5F, 3}};

TEST_P(Head, EqualsItsFormula) {
  const Rows targets = {0, 5, -1, 99, 42};
  const Floats hidden = random_floats(5 * 24, 1), weight = scaled(random_floats(100 * 24, 2), 3);
  for (const HeadScale& scale : scales) {
    const Results got = head(hidden, weight, targets, scale, 24);
    const oracle::Head expected =
        oracle::head(as_doubles(hidden), as_doubles(weight), targets, scale, 24);
    EXPECT_LT(relative_error(got.logp, expected.logp), 1e-6);
    EXPECT_LT(relative_error(got.entropy, expected.entropy), 2e-6);
    EXPECT_EQ(got.logp[2], 0);
    EXPECT_EQ(got.entropy[2], 0);
  }
}

TEST_P(Head, BackwardIsTheGradientOfForward) {
  const int width = 10;
  const Rows targets = {0, 5, -1, 16};
  const Floats hidden = random_floats(4 * width, 1),
               weight = scaled(random_floats(17 * width, 2), 2);
  const Floats dlogp = random_floats(4, 3), dentropy = random_floats(4, 4);
  const Tensor h = put({4, width}, hidden), w = put({17, width}, weight), up = put({4}, dlogp),
               up_entropy = put({4}, dentropy);
  for (const HeadScale& scale : scales) {
    Tensor logp = filled({4}, 9), lse = filled({4}, 9), entropy = filled({4}, 9),
           dh = filled({4, width}, 9), dw = filled({17, width}, 0.5F);
    device().head({h, w, device().indices(targets), scale, Precision::f32}, {logp, lse, &entropy});
    device().head_backward({h, w, device().indices(targets), scale, Precision::f32},
                           {lse, &entropy}, {up, &up_entropy}, {dh, dw});
    const auto loss = [&](const Doubles& a, const Doubles& b) {
      const oracle::Head at = oracle::head(a, b, targets, scale, width);
      return oracle::dot(at.logp, as_doubles(dlogp)) +
             oracle::dot(at.entropy, as_doubles(dentropy));
    };
    Doubles by_weight = oracle::gradient(
        [&](const Doubles& at) { return loss(as_doubles(hidden), at); }, as_doubles(weight));
    for (double& derivative : by_weight) derivative += 0.5;
    EXPECT_LT(relative_error(get(dw), by_weight), 2e-6);
    EXPECT_LT(
        relative_error(get(dh), oracle::gradient(
                                    [&](const Doubles& at) { return loss(at, as_doubles(weight)); },
                                    as_doubles(hidden))),
        3e-6);
  }
}

TEST_P(Head, HasTheBitsOfTokenLogprobFromLogits) {
  const int width = 40, rows = 30, vocabulary = 1500;
  const Floats hidden = random_floats(rows * width, 1),
               weight = random_floats(vocabulary * width, 2);
  Rows targets;
  for (int i = 0; i < rows; ++i) targets.push_back(i * 49 % vocabulary);
  for (const auto& [precision, scale] : {std::pair{Precision::f32, HeadScale{1.3F}},
                                         {Precision::bf16, {1.3F}},
                                         {Precision::f32, {1.3F, 0.25F}},
                                         {Precision::f32, {1.3F, 2, 3}}}) {
    const Results whole = head(hidden, weight, targets, scale, width, precision);
    for (int i = 0; i < rows; i += 7) {  // one row, as a decoding step has it
      const Rows target = {targets[static_cast<std::size_t>(i)]};
      Tensor logits = filled({1, vocabulary}, 9), logp = filled({1}, 9), lse = filled({1}, 9);
      device().gemm(put({1, width}, slice(hidden, i * width, (i + 1) * width)),
                    put({vocabulary, width}, weight), logits,
                    {.transpose_b = true, .precision = precision});
      device().scale_logits(logits, scale);
      device().token_logprob(logits, device().indices(target), scale.inv_temperature, logp, lse);
      EXPECT_TRUE(same_bits(get(logp), slice(whole.logp, i, i + 1)));
      EXPECT_TRUE(same_bits(get(lse), slice(whole.lse, i, i + 1)));
    }
  }
}

TEST_P(Head, BackwardFromKeptLogitsAndBothWaysAtOnceHaveTheBitsOfMakingThemAgain) {
  const int width = 20, rows = 37, vocabulary = 1001, rank = 3;
  Rows targets;
  for (int i = 0; i < rows; ++i)
    targets.push_back(i % 6 == 4 ? no_target : i % 6 == 5 ? target_elsewhere : i * 27 % vocabulary);
  const Tensor h = put({rows, width}, random_floats(rows * width, 1)),
               w = put({vocabulary, width}, random_floats(vocabulary * width, 2));
  const Tensor up = put({rows}, random_floats(rows, 3)),
               up_entropy = put({rows}, random_floats(rows, 4));
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const HeadScale& scale : scales) {
      std::vector<Floats> results;
      for (const Way way : {Way::again, Way::kept, Way::through}) {
        Tensor logp = filled({rows}, 9), lse = filled({rows}, 9), entropy = filled({rows}, 9), kept,
               dh = filled({rows, width}, 9), dw = filled({vocabulary, width}, 0.5F);
        HeadAdapter adapter{put({rows, rank}, random_floats(rows * rank, 5)),
                            put({vocabulary, rank}, random_floats(vocabulary * rank, 6)),
                            filled({rows, rank}, 9), filled({vocabulary, rank}, 0.25F)};
        if (way == Way::through) {
          device().head_forward_backward(
              {h, w, device().indices(targets), scale, precision, &adapter}, {up, &up_entropy},
              {logp, lse, &entropy}, {dh, dw, &adapter});
        } else {
          device().head({h, w, device().indices(targets), scale, precision, &adapter},
                        {logp, lse, &entropy, way == Way::kept ? &kept : nullptr});
          EXPECT_EQ(static_cast<bool>(kept), way == Way::kept && !GetParam().reference);
          device().head_backward({h, w, device().indices(targets), scale, precision, &adapter},
                                 {lse, &entropy, &kept}, {up, &up_entropy}, {dh, dw, &adapter});
        }
        for (const Tensor& result : {logp, lse, entropy, dh, dw, adapter.ddown, adapter.dup})
          results.push_back(get(result));
      }
      for (std::size_t i = 0; i < 14; ++i)
        EXPECT_TRUE(same_bits(results[i % 7], results[7 + i])) << i;
    }
  }
}

TEST_P(Head, KeptLogitsAreFoundWhereverChunksOfTheBackwardPassBeginAndHoweverManyThereAre) {
  const int width = 20, rows = 131, vocabulary = 1001;
  if (GetParam().reference) GTEST_SKIP() << "it never keeps any";
  const auto [threads, isa] = std::pair(GetParam().threads, GetParam().isa);
  const std::unique_ptr<Device> in_chunks =
      make_cpu_device({.threads = threads, .isa = isa, .max_logits = 40 * lm_head_columns});
  const std::unique_ptr<Device> of_some = make_cpu_device({.threads = threads,
                                                           .isa = isa,
                                                           .max_logits = 40 * lm_head_columns,
                                                           .max_kept_logits = 60 * 1824});
  const std::unique_ptr<Device> of_none =
      make_cpu_device({.threads = threads, .isa = isa, .max_kept_logits = 1823});
  Rows targets;
  for (int i = 0; i < rows; ++i) targets.push_back(i % 6 == 4 ? no_target : i * 27 % vocabulary);
  for (Device* on : {&device(), in_chunks.get(), of_some.get(), of_none.get()}) {
    const Tensor h = from_host(*on, {rows, width}, random_floats(rows * width, 1)),
                 up = from_host(*on, {rows}, random_floats(rows, 3)),
                 w = from_host(*on, {vocabulary, width}, random_floats(vocabulary * width, 2));
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      Tensor logp = on->empty({rows}), lse = on->empty({rows}), kept, nothing;
      on->head({h, w, on->indices(targets), {0.7F}, precision}, {logp, lse, nullptr, &kept});
      ASSERT_EQ(static_cast<bool>(kept), on != of_none.get());
      if (on == of_some.get()) {
        EXPECT_LE(kept.count(), 60 * 1824);
        EXPECT_GT(kept.count(), 30 * 1824);
      }
      std::vector<Floats> results;
      for (const Tensor* from : {&nothing, &kept}) {
        Tensor dh = on->empty({rows, width}), dw = on->empty({vocabulary, width});
        const bool adds = from == &nothing;
        on->fill(dw, adds ? 0 : std::nanf(""));  // what is assigned is what is added to zeros
        on->head_backward({h, w, on->indices(targets), {0.7F}, precision}, {lse, nullptr, from},
                          {up}, {dh, dw, nullptr, adds});
        for (const Tensor& result : {dh, dw}) results.push_back(to_host(*on, result));
      }
      for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(results[i], results[2 + i])) << i;
    }
  }
}

TEST_P(Head, OfSkippedRowsAloneLeavesZerosAndAddsNothingOrAssignsIt) {
  const int width = 8, rows = 3, vocabulary = 50;
  const Rows targets(rows, no_target);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const Way way : {Way::again, Way::kept, Way::through}) {
      const Tensor h = filled({rows, width}, 1), w = filled({vocabulary, width}, 1),
                   up = filled({rows}, 1);
      Tensor logp = filled({rows}, 9), lse = filled({rows}, 9), dh = filled({rows, width}, 9),
             dw = filled({vocabulary, width}, 0.5F), kept;
      for (const bool adds : {true, false}) {
        if (way == Way::through) {
          device().head_forward_backward({h, w, device().indices(targets), {1}, precision}, {up},
                                         {logp, lse}, {dh, dw, nullptr, adds});
        } else {
          device().head({h, w, device().indices(targets), {1}, precision},
                        {logp, lse, nullptr, way == Way::kept ? &kept : nullptr});
          device().head_backward({h, w, device().indices(targets), {1}, precision},
                                 {lse, nullptr, &kept}, {up}, {dh, dw, nullptr, adds});
        }
        for (const Tensor& result : {logp, lse, dh}) EXPECT_THAT(get(result), testing::Each(0.0F));
        EXPECT_THAT(get(dw), testing::Each(adds ? 0.5F : 0.0F));
      }
    }
  }
}

TEST_P(Head, OfManyRowsEqualsTheReferenceWhateverItsChunks) {
  const int width = 16, rows = 130, vocabulary = 40000;
  if (GetParam().reference) GTEST_SKIP() << "it is the reference";
  const Floats hidden = random_floats(rows * width, 1),
               weight = random_floats(vocabulary * width, 2), up = random_floats(rows, 3);
  Rows targets;
  for (int i = 0; i < rows; ++i) targets.push_back(i % 5 == 3 ? -1 : i * 149 % vocabulary);
  std::vector<Floats> results;
  const std::unique_ptr<Device> reference = make_reference_device();
  // 35 rows of gradients at a time: three chunks.
  const std::unique_ptr<Device> in_chunks = make_cpu_device(
      {.threads = GetParam().threads, .isa = GetParam().isa, .max_logits = 35 * vocabulary});
  for (Device* on : {reference.get(), in_chunks.get()}) {
    const Tensor h = from_host(*on, {rows, width}, hidden),
                 w = from_host(*on, {vocabulary, width}, weight),
                 dlogp = from_host(*on, {rows}, up);
    Tensor logp = on->empty({rows}), lse = on->empty({rows}), entropy = on->empty({rows});
    Tensor dh = on->empty({rows, width}), dw = on->empty({vocabulary, width});
    on->fill(dw, 0);
    on->head({h, w, on->indices(targets), {1}, Precision::f32}, {logp, lse, &entropy});
    on->head_backward({h, w, on->indices(targets), {1}, Precision::f32}, {lse, &entropy},
                      {dlogp, &dlogp}, {dh, dw});
    for (const Tensor& result : {logp, lse, entropy, dh, dw})
      results.push_back(to_host(*on, result));
    on->fill(dw, std::nanf(""));
    on->head_forward_backward({h, w, on->indices(targets), {1}, Precision::f32}, {dlogp, &dlogp},
                              {logp, lse, &entropy}, {dh, dw, nullptr, false});
    std::size_t i = results.size() - 5;
    for (const Tensor& result : {logp, lse, entropy, dh, dw})
      EXPECT_TRUE(same_bits(to_host(*on, result), results[i++]));
  }
  // Gradients are f32 chains of 40000 terms of both signs.
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_LT(relative_error(results[i + 5], as_doubles(results[i])), i < 3 ? 2e-6 : 2e-5) << i;
}

// One row's softmax over its part of the vocabulary, as it reads.
struct PartOfRow {
  double lse = 0, entropy = 0;
  PartOfRow(const Doubles& z) {
    double sum = 0;
    for (const double value : z) sum += std::exp(value);
    lse = std::log(sum);
    for (const double value : z) entropy -= std::exp(value - lse) * (value - lse);
  }
};

TEST_P(Head, OfATargetElsewhereIsThatOfTheRowsThatAreHere) {
  const int width = 12, vocabulary = 23;
  const Rows targets = {target_elsewhere, 4, no_target, target_elsewhere};
  const Floats hidden = random_floats(4 * width, 1),
               weight = scaled(random_floats(vocabulary * width, 2), 2);
  const Results got = head(hidden, weight, targets, {0.7F}, width);
  const Doubles z =
      oracle::gemm(as_doubles(hidden), as_doubles(weight), 4, vocabulary, width, false, true);
  for (const std::size_t t : {0u, 1u, 3u}) {
    Doubles row(z.begin() + static_cast<std::ptrdiff_t>(t) * vocabulary,
                z.begin() + static_cast<std::ptrdiff_t>(t + 1) * vocabulary);
    for (double& value : row) value *= double{0.7F};
    const PartOfRow expected(row);
    EXPECT_NEAR(double{got.lse[t]}, expected.lse, 2e-6);
    EXPECT_NEAR(double{got.entropy[t]}, expected.entropy, 2e-6);
  }
  EXPECT_EQ(got.logp[0], 0);
  EXPECT_EQ(got.lse[2], 0);
  Tensor logits = filled({4, vocabulary}, 9), logp = filled({4}, 9), lse = filled({4}, 9);
  device().gemm(put({4, width}, hidden), put({vocabulary, width}, weight), logits,
                {.transpose_b = true});
  device().token_logprob(logits, device().indices(targets), 0.7F, logp, lse);
  EXPECT_EQ(get(logp)[0], 0);
  EXPECT_EQ(get(lse)[3], got.lse[3]);
}

// Two parts of a vocabulary, each with its own targets and the whole's lse and entropy: their
// gradients are the whole's.
TEST_P(Head, GradientsOfTwoPartsAreThoseOfTheWhole) {
  const int width = 10, vocabulary = 17, cut = 7;
  const Rows targets = {0, 6, -1, 16}, first = {0, 6, -1, target_elsewhere},
             second = {target_elsewhere, target_elsewhere, -1, 9};
  const Floats hidden = random_floats(4 * width, 1),
               weight = scaled(random_floats(vocabulary * width, 2), 2);
  const Tensor h = put({4, width}, hidden), up = put({4}, random_floats(4, 3)),
               up_entropy = put({4}, random_floats(4, 4));
  const Results whole = head(hidden, weight, targets, {0.8F}, width);
  const Tensor lse = put({4}, whole.lse), entropy = put({4}, whole.entropy);
  const auto backward = [&](const Floats& part, const Rows& own) {
    const auto rows = static_cast<std::int64_t>(part.size()) / width;
    Tensor dh = filled({4, width}, 9), dw = filled({rows, width}, 0);
    device().head_backward(
        {h, put({rows, width}, part), device().indices(own), {0.8F}, Precision::f32},
        {lse, &entropy}, {up, &up_entropy}, {dh, dw});
    return std::pair(as_doubles(get(dh)), as_doubles(get(dw)));
  };
  auto [dh, dw] = backward(slice(weight, 0, cut * width), first);
  const auto [dh2, dw2] = backward(slice(weight, cut * width, vocabulary * width), second);
  for (std::size_t i = 0; i < dh.size(); ++i) dh[i] += dh2[i];
  dw.insert(dw.end(), dw2.begin(), dw2.end());
  const auto loss = [&](const Doubles& a, const Doubles& b) {
    const oracle::Head at = oracle::head(a, b, targets, {0.8F}, width);
    return oracle::dot(at.logp, as_doubles(get(up))) +
           oracle::dot(at.entropy, as_doubles(get(up_entropy)));
  };
  const auto by_hidden = oracle::gradient(
      [&](const Doubles& at) { return loss(at, as_doubles(weight)); }, as_doubles(hidden));
  const auto by_weight = oracle::gradient(
      [&](const Doubles& at) { return loss(as_doubles(hidden), at); }, as_doubles(weight));
  EXPECT_LT(relative_error(Floats(dh.begin(), dh.end()), by_hidden), 3e-6);
  EXPECT_LT(relative_error(Floats(dw.begin(), dw.end()), by_weight), 2e-6);
}

TEST_P(Head, SurvivesLargeLogits) {
  const Results got = head({1}, {1000, -1000, 999}, {0}, {1}, 1);
  EXPECT_NEAR(got.logp[0], -0.31326, 1e-4);
  EXPECT_NEAR(got.entropy[0], 0.58220, 1e-4);
}

TEST_P(Head, ShowsNotANumber) {
  const float nan = __builtin_nanf("");
  const Results got = head({1}, {1, nan, 2}, {0}, {1}, 1);
  EXPECT_NE(got.logp[0], got.logp[0]);
}

TEST_P(Head, RefusesATargetBeyondTheVocabulary) {
  EXPECT_THROW(head({1}, {1, 2}, {2}, {1}, 1), std::logic_error);
}

}  // namespace
}  // namespace troupe::engine::ops
