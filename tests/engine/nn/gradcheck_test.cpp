#include "tests/support/gradcheck.h"

#include "engine/nn/attention.h"
#include "engine/nn/embedding.h"
#include "engine/nn/head.h"
#include "engine/nn/layers.h"
#include "engine/nn/mixture.h"
#include "engine/nn/norm.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/nn/linear_module.h"

namespace troupe::engine::nn {
namespace {

using test::random_tensor;

struct Machine {
  const char* name;
  std::unique_ptr<ops::Device> (*make)();
};
void PrintTo(const Machine& machine, std::ostream* out) {
  *out << machine.name;
}
const Machine machines[] = {{"reference", [] { return ops::make_reference_device(); }},
                            {"cpu", [] { return ops::make_cpu_device({.threads = 1}); }}};

struct Modules : ::testing::TestWithParam<Machine> {
  std::unique_ptr<ops::Device> device = GetParam().make();
  ops::PreparedLayout layout = device->prepare({{0, 3, 3, 8}, {0, 1, 2, 0, 1, 2, 3, 4}});
  /// Ids of the rows of x.
  const std::vector<std::uint64_t> ids{0,          1ULL << 32, 2ULL << 32, 3ULL << 32,
                                       4ULL << 32, 5ULL << 32, 6ULL << 32, 7ULL << 32};
  ForwardContext pass{*device, layout};
  Tensor x = random_tensor(*device, {8, 12}, 1);
};

INSTANTIATE_TEST_SUITE_P(Devices, Modules, ::testing::ValuesIn(machines),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(Modules, LinearWithBias) {
  Parameters parameters(*device, {{"w", {5, 12}}, {"b", {5}}}, true);
  test::randomize(parameters, 2, 0.5);
  test::gradcheck(LinearModule{{&parameters.at("w"), &parameters.at("b")}}, parameters, x, pass);
}

TEST_P(Modules, Norm) {
  Parameters parameters(*device, {{"g", {12}}}, true);
  test::randomize(parameters, 2, 1);
  test::gradcheck(Norm{&parameters.at("g"), 1e-6f}, parameters, x, pass);
}

TEST_P(Modules, Mlp) {
  Parameters parameters(*device, {{"g", {10, 12}}, {"u", {10, 12}}, {"d", {12, 10}}}, true);
  test::randomize(parameters, 2, 0.5);
  test::gradcheck(Mlp{{&parameters.at("g")}, {&parameters.at("u")}, {&parameters.at("d")}},
                  parameters, x, pass);
}

// Experts of every kind of router. With these weights no step of the differences changes which
// experts are chosen, where the loss is not continuous.
TEST_P(Modules, Mixture) {
  using ops::Renormalize, ops::RouterScore;
  const ops::Router routers[] = {
      {.experts = 4, .chosen = 2},
      {.experts = 4, .chosen = 2, .renormalize = Renormalize::sum, .scale = 1.5},
      {.experts = 4,
       .chosen = 2,
       .score = RouterScore::sigmoid,
       .groups = 2,
       .renormalize = Renormalize::sum},
      {.experts = 4, .chosen = 2, .renormalize = Renormalize::bounded_sum, .epsilon = 0.9},
      {.experts = 4, .chosen = 2, .score = RouterScore::sparse_mixer, .jitter = 0.3}};
  for (const ops::Router& router : routers) {
    SCOPED_TRACE(&router - routers);
    std::vector<ParameterSpec> list{
        {"r", {4, 12}}, {"sg", {10, 12}}, {"su", {10, 12}}, {"sd", {12, 10}}, {"gate", {1, 12}}};
    for (const char* name : {"g", "u", "d"})
      for (int e = 0; e < 4; ++e)
        list.push_back({name + std::to_string(e), *name == 'd' ? Shape{12, 6} : Shape{6, 12}});
    Parameters parameters(*device, list, true);
    test::randomize(parameters, 33, 0.5);
    const auto projection = [&](const std::string& name) {
      std::vector<const Parameter*> experts;
      for (int e = 0; e < 4; ++e) experts.push_back(&parameters.at(name + std::to_string(e)));
      return ExpertProjection(experts);
    };
    Mixture mixture{
        .how = router,
        .router = {&parameters.at("r")},
        .gate = projection("g"),
        .up = projection("u"),
        .down = projection("d"),
        .shared = Mlp{{&parameters.at("sg")}, {&parameters.at("su")}, {&parameters.at("sd")}},
        .shared_gate = Linear{&parameters.at("gate")}};
    test::gradcheck(mixture, parameters, x, pass);
    mixture.shared_gate.reset();
    mixture.shared.reset();
    Saved saved;
    mixture.forward(x, pass, saved);
    mixture.backward(x, pass, saved);
    EXPECT_TRUE(saved.empty());
  }
}

TEST_P(Modules, NormsOfEveryKind) {
  Parameters parameters(*device, {{"g", {12}}, {"b", {12}}}, true);
  test::randomize(parameters, 2, 1);
  Parameter *gain = &parameters.at("g"), *bias = &parameters.at("b");
  test::gradcheck(Norm{gain, 1e-6f, Norm::Kind::rms, nullptr, 1}, parameters, x, pass);
  test::gradcheck(Norm{gain, 1e-5f, Norm::Kind::layer, bias}, parameters, x, pass);
  test::gradcheck(Norm{gain, 1e-5f, Norm::Kind::layer}, parameters, x, pass);
}

TEST_P(Modules, ANormWithoutAGainIsNone) {
  Saved saved;
  EXPECT_EQ(ops::to_host(*device, Norm{}.forward(x, pass, saved)), ops::to_host(*device, x));
  EXPECT_TRUE(saved.empty());
  EXPECT_EQ(ops::to_host(*device, Norm{}.backward(x, pass, saved)), ops::to_host(*device, x));
}

TEST_P(Modules, FrozenNormsHaveNoGradients) {
  Parameters parameters(*device, {{"g", {12}}, {"b", {12}}}, false);
  test::randomize(parameters, 2, 1);
  const Norm norm{&parameters.at("g"), 1e-5f, Norm::Kind::layer, &parameters.at("b")};
  Parameters trained(*device, {{"g", {12}}, {"b", {12}}}, true);
  device->copy(parameters.values(), trained.values());
  const Norm same{&trained.at("g"), 1e-5f, Norm::Kind::layer, &trained.at("b")};
  Saved saved;
  norm.forward(x, pass, saved);
  const auto frozen = ops::to_host(*device, norm.backward(x, pass, saved));
  same.forward(x, pass, saved);
  EXPECT_EQ(frozen, ops::to_host(*device, same.backward(x, pass, saved)));
}

TEST_P(Modules, MlpsOfEveryActivationGatedAndPlain) {
  Parameters parameters(
      *device, {{"g", {10, 12}}, {"u", {10, 12}}, {"d", {12, 10}}, {"ub", {10}}, {"db", {12}}},
      true);
  test::randomize(parameters, 2, 0.5);
  const Linear up{&parameters.at("u"), &parameters.at("ub")},
      down{&parameters.at("d"), &parameters.at("db")};
  for (const auto activation : {ops::Activation::silu, ops::Activation::gelu,
                                ops::Activation::gelu_tanh, ops::Activation::relu2}) {
    test::gradcheck(Mlp{{&parameters.at("g")}, up, down, activation}, parameters, x, pass);
    test::gradcheck(Mlp{{}, up, down, activation}, parameters, x, pass);
  }
}

// y of an embedding as a module of the table's own values.
struct EmbeddingModule {
  Embedding embedding;
  std::vector<std::int32_t> tokens{4, 0, 6, 6, 1, 2, 0, 3};
  Tensor forward(const Tensor&, const ForwardContext& pass, Saved& saved) const {
    return embedding.forward(tokens, pass, saved);
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    embedding.backward(tokens, dy, pass, saved);
    Tensor none = pass.device.empty({8, 12});  // of x, which is not read
    pass.device.fill(none, 0);
    return none;
  }
};

TEST_P(Modules, EmbeddingsWithAMultiplierPositionsAndANorm) {
  Parameters parameters(*device, {{"t", {7, 12}}, {"p", {5, 12}}, {"g", {12}}, {"b", {12}}}, true);
  test::randomize(parameters, 2, 1);
  const Norm norm{&parameters.at("g"), 1e-5f, Norm::Kind::layer, &parameters.at("b")};
  Parameter *table = &parameters.at("t"), *positions = &parameters.at("p");
  for (const Embedding& each :
       {Embedding{table}, Embedding{table, nullptr, 3.5f}, Embedding{table, nullptr, 1, positions},
        Embedding{table, nullptr, 1, nullptr, norm}, Embedding{table, nullptr, 2, positions, norm}})
    test::gradcheck(EmbeddingModule{each}, parameters, x, pass);
}

TEST_P(Modules, HiddenStatesThatAreDropped) {
  Parameters parameters(*device, {{"t", {7, 12}}, {"u", {10, 12}}, {"d", {12, 10}}}, true);
  test::randomize(parameters, 2, 0.5);
  const Dropout dropout{.hidden = 0.4, .hidden_key = 3, .hidden_rows = device->row_ids(ids)};
  pass.dropout = &dropout;
  const Mlp mlp{{}, {&parameters.at("u")}, {&parameters.at("d")}};
  test::gradcheck(EmbeddingModule{{&parameters.at("t")}}, parameters, x, pass);
  test::gradcheck(Residual<Mlp>{mlp}, parameters, x, pass);
  test::gradcheck(Residual<Mlp>{mlp, 0.3f, residual_stream(4, 1)}, parameters, x, pass);
  Saved none = Saved::nothing();
  const auto output = [&](std::uint32_t stream) {
    return ops::to_host(*device, Residual<Mlp>{mlp, 1, stream}.forward(x, pass, none));
  };
  EXPECT_NE(output(residual_stream(0, 0)), output(residual_stream(0, 1)));
}

TEST_P(Modules, AnEmbeddingRefusesAPositionBeyondItsTable) {
  Parameters parameters(*device, {{"t", {7, 12}}, {"p", {4, 12}}}, false);
  Saved saved;
  const EmbeddingModule module{{&parameters.at("t"), nullptr, 1, &parameters.at("p")}};
  EXPECT_THROW(module.forward(x, pass, saved), std::logic_error);
}

TEST_P(Modules, ResidualsSumsAndChoices) {
  Parameters parameters(*device, {{"g", {12}}, {"u", {10, 12}}, {"d", {12, 10}}, {"e", {12, 10}}},
                        true);
  test::randomize(parameters, 2, 0.5);
  const Norm norm{&parameters.at("g")};
  const Mlp one{{}, {&parameters.at("u")}, {&parameters.at("d")}},
      other{{}, {&parameters.at("u")}, {&parameters.at("e")}};
  test::gradcheck(Residual<Mlp>{one, 0.3f}, parameters, x, pass);
  test::gradcheck(Residual<Normed<Sum<Mlp, Mlp>>>{{norm, {one, other}}}, parameters, x, pass);
  test::gradcheck(Either<Norm, Mlp>{norm}, parameters, x, pass);
  test::gradcheck(Either<Norm, Mlp>{one}, parameters, x, pass);
}

// The head as a module of hidden states: the sum of its log-probabilities and entropies, weighted.
struct HeadModule {
  Head head;
  std::vector<std::int32_t> targets{4, 0, -1, 6, 1, 2, 0, 3};
  Tensor forward(const Tensor& x, const ForwardContext& pass, Saved& saved) const {
    const TokenScores scores = head.forward(x, {targets, 0.8f, pass.precision}, true);
    saved.push(x);
    saved.push(scores.lse);
    saved.push(scores.entropy);
    Tensor y = pass.device.empty({16});
    Tensor first = y.flat(0, 8), second = y.flat(8, 16);
    pass.device.copy(scores.logp, first);
    pass.device.copy(scores.entropy, second);
    return y;
  }
  Tensor backward(const Tensor& dy, const ForwardContext& pass, Saved& saved) const {
    TokenScores scores;
    scores.entropy = saved.pop();
    scores.lse = saved.pop();
    return head.backward(saved.pop(), {targets, 0.8f, pass.precision}, scores, dy.flat(0, 8),
                         dy.flat(8, 16));
  }
};

TEST_P(Modules, HeadsOfScaledAndCappedLogits) {
  Parameters parameters(*device, {{"w", {7, 12}}}, true);
  test::randomize(parameters, 2, 1);
  for (const auto& [scale, cap] :
       {std::pair{1.0f, 0.0f}, {0.25f, 0.0f}, {1.0f, 1.5f}, {2.0f, 3.0f}})
    test::gradcheck(HeadModule{{device.get(), &parameters.at("w"), nullptr, {}, scale, cap}},
                    parameters, x, pass);
}

TEST_P(Modules, HeadsWithABias) {
  Parameters parameters(*device, {{"w", {7, 12}}, {"b", {7}}}, true);
  test::randomize(parameters, 2, 1);
  for (const auto& [scale, cap] : {std::pair{1.0f, 0.0f}, {2.0f, 3.0f}}) {
    Head head{device.get(), &parameters.at("w"), nullptr, {}, scale, cap};
    head.bias = &parameters.at("b");
    test::gradcheck(HeadModule{head}, parameters, x, pass);
  }
}

TEST_P(Modules, KeptLogitsOfAHeadHaveItsBits) {
  Parameters parameters(*device, {{"w", {7, 12}}, {"b", {7}}}, false);
  test::randomize(parameters, 2, 1);
  for (const auto& [scale, cap] : {std::pair{1.0f, 0.0f}, {0.25f, 0.0f}, {2.0f, 3.0f}}) {
    Head head{device.get(), &parameters.at("w"), nullptr, {}, scale, cap};
    if (scale != 1) head.bias = &parameters.at("b");
    const std::vector<std::int32_t> targets{4, 0, 5, 6, 1, 2, 0, 3};
    const TokenScores direct = head.forward(x, {targets, 0.7f, pass.precision}, false);
    const TokenScores kept =
        head.scores(head.logits(x, pass.precision), {targets, 0.7f, pass.precision});
    EXPECT_EQ(ops::to_host(*device, direct.logp), ops::to_host(*device, kept.logp));
    EXPECT_EQ(ops::to_host(*device, direct.lse), ops::to_host(*device, kept.lse));
  }
}

using PlainAttention = Attention<PlainProjections>;

// Two query heads share a key head; three sequences, one of them empty.
struct AttentionModule : Modules {
  Parameters parameters{
      *device, {{"q", {16, 12}}, {"k", {8, 12}}, {"v", {8, 12}}, {"o", {12, 16}}}, true};
  RotaryTable rotary{*device, {1.0, 0.1}};
  PlainAttention attention{{{&parameters.at("q")}, {&parameters.at("k")}, {&parameters.at("v")}},
                           {&parameters.at("o")},
                           {4, 2, 4, 0.5f},
                           &rotary};
  AttentionModule() {
    test::randomize(parameters, 2, 0.5);
    rotary.reserve(5);
  }
  /// Weights of an attention, and others.
  Parameters with_attention(const std::vector<ParameterSpec>& others) const {
    std::vector<ParameterSpec> all{
        {"q", {16, 12}}, {"k", {8, 12}}, {"v", {8, 12}}, {"o", {12, 16}}};
    all.insert(all.end(), others.begin(), others.end());
    Parameters out(*device, all, true);
    test::randomize(out, 3, 0.5);
    return out;
  }
  PlainAttention attention_of(Parameters& all) const {
    return {
        {{&all.at("q")}, {&all.at("k")}, {&all.at("v")}}, {&all.at("o")}, attention.shape, &rotary};
  }
  /// With gains of these sizes on queries and keys.
  void gradcheck_normed(std::int64_t query_gain, std::int64_t key_gain) {
    auto own = with_attention({{"qn", {query_gain}}, {"kn", {key_gain}}});
    PlainAttention normed = attention_of(own);
    normed.projections.q_norm = {&own.at("qn")};
    normed.projections.k_norm = {&own.at("kn")};
    test::gradcheck(normed, own, x, pass);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, AttentionModule, ::testing::ValuesIn(machines),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(AttentionModule, GroupedHeadsAndRotary) {
  test::gradcheck(attention, parameters, x, pass);
}

TEST_P(AttentionModule, WithNormsOfHeads) {
  gradcheck_normed(4, 4);
}

TEST_P(AttentionModule, WithNormsOfWholeRows) {
  gradcheck_normed(16, 8);
}

// Three heads of 4 + 2 channels, with values of 4; the vectors have 5 and 6 elements.
TEST_P(AttentionModule, WithLatentProjections) {
  Parameters own(*device,
                 {{"qa", {5, 12}},
                  {"qn", {5}},
                  {"qb", {18, 5}},
                  {"ka", {8, 12}},
                  {"kab", {8}},
                  {"kn", {6}},
                  {"kb", {24, 6}},
                  {"o", {12, 12}}},
                 true);
  test::randomize(own, 3, 0.5);
  const auto linear = [&](const char* name) { return Linear{&own.at(name)}; };
  RotaryTable three(*device, {1.0, 0.0, 0.0});
  three.reserve(5);
  const Attention<LatentProjections> latent{
      .projections = {{.q_a = linear("qa"),
                       .q_b = linear("qb"),
                       .kv_a = {&own.at("ka"), &own.at("kab")},
                       .kv_b = linear("kb"),
                       .q_norm = {&own.at("qn")},
                       .kv_norm = {&own.at("kn")}},
                      {.heads = 3, .plain = 4, .rotary = 2, .value = 4, .rank = 6}},
      .o = linear("o"),
      .shape = {3, 3, 6, 0.5f},
      .rotary = &three};
  for (const bool attention_again : {false, true}) {
    if (attention_again) pass.recomputed.kinds = {Recompute::attention};
    test::gradcheck(latent, own, x, pass);
  }
}

TEST_P(AttentionModule, WithAWindowACapOrAlibiInPlaceOfRotary) {
  PlainAttention own = attention;
  own.shape.window = 2;
  test::gradcheck(own, parameters, x, pass);
  own.shape.softcap = 0.5f;
  test::gradcheck(own, parameters, x, pass);
  own.rotary = nullptr;
  own.shape.alibi_slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  test::gradcheck(own, parameters, x, pass);
}

TEST_P(AttentionModule, WithDropoutOfItsWeights) {
  const Dropout dropout{
      .attention = 0.3, .attention_key = 5, .attention_rows = device->row_ids(ids)};
  pass.dropout = &dropout;
  test::gradcheck(attention, parameters, x, pass);
  pass.recomputed.kinds = {Recompute::attention};
  test::gradcheck(attention, parameters, x, pass);
}

TEST_P(AttentionModule, BesideAnMlpUnderOneNorm) {
  auto both = with_attention({{"g", {12}}, {"u", {10, 12}}, {"d", {12, 10}}});
  const PlainAttention own = attention_of(both);
  const Mlp mlp{{}, {&both.at("u")}, {&both.at("d")}, ops::Activation::gelu_tanh};
  test::gradcheck(
      Residual<Normed<Sum<PlainAttention, Mlp>>>{
          {{&both.at("g"), 1e-5f, Norm::Kind::layer}, {own, mlp}}, 0.7f},
      both, x, pass);
}

TEST_P(AttentionModule, InAResidualChain) {
  auto both = with_attention({{"g", {12}}});
  const PlainAttention own = attention_of(both);
  test::gradcheck(Residual<Normed<PlainAttention>>{{{&both.at("g"), 1e-6f}, own}}, both, x, pass);
}

TEST_P(AttentionModule, WhatIsRecomputedHasTheGradientsOfWhatIsKept) {
  auto all = with_attention({{"g", {12}}, {"u", {10, 12}}, {"w", {10, 12}}, {"d", {12, 10}}});
  const PlainAttention own = attention_of(all);
  const Residual<Normed<Sum<PlainAttention, Mlp>>> block{
      {{&all.at("g")}, {own, {{&all.at("w")}, {&all.at("u")}, {&all.at("d")}}}}};
  for (const Recomputed& choice :
       {Recomputed{.kinds = {Recompute::attention}}, Recomputed{.kinds = {Recompute::activation}},
        Recomputed{.kinds = {Recompute::norm}},
        Recomputed{.kinds = {Recompute::attention, Recompute::activation, Recompute::norm}}}) {
    pass.recomputed = choice;
    test::gradcheck(block, all, x, pass);
  }
}

TEST_P(AttentionModule, RecomputeGivesTheSameBitsAndKeepsOnlyTheInput) {
  const auto run = [&](const auto& module, bool layers, std::size_t& kept) {
    pass.recomputed = {};
    if (layers) pass.recomputed.kinds = {Recompute::full};
    device->fill(parameters.grads(), 0);
    Saved saved;
    const Tensor y = module.forward(x, pass, saved);
    kept = saved.bytes();
    const Tensor dx = module.backward(y, pass, saved);
    std::vector<float> all = ops::to_host(*device, dx);
    const auto grads = ops::to_host(*device, parameters.grads());
    all.insert(all.end(), grads.begin(), grads.end());
    return all;
  };
  std::size_t plain = 0, recomputed = 0;
  EXPECT_EQ(run(attention, false, plain),
            run(Layers<PlainAttention>(std::span(&attention, 1)), true, recomputed));
  EXPECT_EQ(recomputed, x.bytes());
  EXPECT_GT(plain, recomputed);
}

}  // namespace
}  // namespace troupe::engine::nn
