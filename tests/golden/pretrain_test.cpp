// 50 steps of pretraining from given weights on real text, as plain PyTorch made them: on one rank,
// on other grids, and with the grid changed in the middle.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/losses/sft_loss.h"
#include "engine/base/errors/check.h"
#include "engine/base/files/file.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/train/trainer.h"
#include "tests/support/golden.h"
#include "tests/support/grid_decoder.h"

namespace troupe::algorithms {
namespace {

using engine::data::Experience;
using engine::ops::Precision;
using test::Grid;
using test::Mesh;

std::vector<double> doubles(const Json& array) {
  std::vector<double> out;
  for (const auto& x : array.array()) out.push_back(x.number());
  return out;
}

/// The ids of the recorded runs. transformers 5 builds a LlamaTokenizer of its own, which keeps
/// repeated spaces: an id of one space each. tokenizer.json and SentencePiece collapse them. The
/// space before a word is the prefix that encode() adds.
std::vector<std::int32_t> encode_keeping_spaces(const engine::tokenizer::Tokenizer& tokenizer,
                                                std::string_view text) {
  constexpr std::int32_t one_space = 410;  // in stories260k
  std::vector<std::int32_t> ids;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find("  ");  // the texts do not end in spaces
    const auto part = tokenizer.encode(std::string(text.substr(0, end)), false);
    ids.insert(ids.end(), part.begin(), part.end());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end);
    const std::size_t spaces = text.find_first_not_of(' ');
    ids.insert(ids.end(), spaces - 1, one_space);
    text.remove_prefix(spaces);
  }
  return ids;
}

/// The recorded run, and the tokens of its steps.
struct Recorded {
  std::string folder;
  Json run;
  std::vector<std::int32_t> tokens;
  std::size_t batch, sequence;

  explicit Recorded(const std::string& name)
      : folder(cat(test::golden_folder(), "/pretrain/", name)),
        run(value_or_throw(read_json(folder + "/run.json"))),
        batch(static_cast<std::size_t>(hyper("batch"))),
        sequence(static_cast<std::size_t>(hyper("sequence"))) {
    const std::string text = value_or_throw(read_file(
        cat(test::golden_folder(), "/../data/datasets/pretrain/", run.find("text")->string())));
    const auto tokenizer = value_or_throw(
        engine::tokenizer::Tokenizer::load(TROUPE_TEST_DATA "/models/stories260k/hf"));
    // More than the tokens of all steps: a token of this vocabulary has few bytes.
    const std::size_t needed = 50 * batch * (sequence + 1);
    tokens = encode_keeping_spaces(tokenizer, text.substr(0, 8 * needed));
    check(tokens.size() >= needed, "the text is too short");
  }
  double hyper(const char* key) const { return run.find("hyper")->find(key)->number(); }
  Experience step(std::size_t index) const {
    Experience out;
    for (std::size_t row = 0; row < batch; ++row) {
      const auto begin =
          tokens.begin() + static_cast<std::ptrdiff_t>((index * batch + row) * (sequence + 1));
      out.append({begin, begin + static_cast<std::ptrdiff_t>(sequence + 1)},
                 std::vector<float>(sequence + 1, 1.0f));
    }
    out.count = static_cast<double>(batch * sequence);
    return out;
  }
};

/// What continues on another grid.
struct State {
  std::vector<float> weights, exp_avg, exp_avg_sq;
  std::int64_t steps = 0;
  std::vector<double> losses, norms;
};

engine::train::TrainerOptions options_of(const Recorded& recorded, Precision precision, bool zero) {
  engine::train::TrainerOptions options;
  options.dtype = precision;
  options.micro_batch_tokens = 200;  // several micro-batches a step
  const auto betas = doubles(*recorded.run.find("hyper")->find("betas"));
  options.optimizer = {.betas = {betas[0], betas[1]},
                       .eps = recorded.hyper("eps"),
                       .weight_decay = recorded.hyper("weight_decay"),
                       .max_grad_norm = recorded.hyper("clip")};
  options.shard_optimizer = zero;
  return options;
}

/// Where a tensor begins in the logical values of all stages.
std::size_t begin_of(const std::string& name, const engine::models::Decoder& model) {
  std::size_t begin = 0;
  for (const auto& whole : model.whole().all()) {
    if (whole.name == name) break;
    begin += static_cast<std::size_t>(whole.logical_shape().count());
  }
  return begin;
}

/// This rank's part of an arena from the logical values of all stages.
void copy_part(const std::vector<float>& logical, const engine::models::Decoder& model,
               const engine::nn::ArenaShards* shards, Tensor& arena) {
  const auto& parameters = model.parameters();
  std::vector<float> own(static_cast<std::size_t>(parameters.count()));
  std::size_t to = 0;
  for (const auto& parameter : parameters.all()) {
    const auto count = static_cast<std::size_t>(parameter.logical_shape().count()),
               part = static_cast<std::size_t>(parameter.value.count());
    engine::nn::copy_shard(std::span(logical).subspan(begin_of(parameter.name, model), count),
                           parameter, std::span(own).subspan(to, part));
    to += part;
  }
  if (!shards) return model.device().upload(arena, own);
  std::vector<float> mine(static_cast<std::size_t>(shards->count()));
  for (const auto& piece : shards->mine(0, parameters.count()))
    std::copy(own.begin() + piece.begin, own.begin() + piece.end, mine.begin() + piece.at);
  model.device().upload(arena, mine);
}

// Steps [from.steps, end) on this rank of a grid. Every rank returns the losses, rank 0 the state.
State train(const Recorded& recorded, const Mesh& mesh, Precision precision, bool zero,
            const State& from, std::int64_t end) {
  const auto device = engine::ops::make_cpu_device({.threads = 1});
  engine::train::Trainer trainer(
      value_or_throw(engine::checkpoint::load_decoder(*device, recorded.folder + "/init", true,
                                                      test::part_on(mesh))),
      options_of(recorded, precision, zero), &mesh);
  auto& optimizer = trainer.optimizer();
  engine::models::Decoder& model = trainer.model();
  if (from.steps > 0) {
    test::scatter_model(from.weights, model);
    copy_part(from.exp_avg, model, optimizer.shards(), optimizer.exp_avg());
    copy_part(from.exp_avg_sq, model, optimizer.shards(), optimizer.exp_avg_sq());
    optimizer.set_steps(from.steps);
  }
  State out = from;
  const auto rates = doubles(*recorded.run.find("hyper")->find("lr"));
  for (; out.steps < end; ++out.steps) {
    const auto step = static_cast<std::size_t>(out.steps);
    out.losses.push_back(trainer.forward_backward(recorded.step(step), SftLoss{}).loss);
    out.norms.push_back(value_or_throw(trainer.update(rates[step])).grad_norm);
  }
  out.weights = test::gather_model(trainer.model(), mesh);
  out.exp_avg = test::gather_model(model, optimizer.exp_avg(), mesh, optimizer.shards());
  out.exp_avg_sq = test::gather_model(model, optimizer.exp_avg_sq(), mesh, optimizer.shards());
  return out;
}

struct Part {
  Grid grid;
  bool zero;
  std::int64_t end;
};

State train(const Recorded& recorded, Precision precision, const std::vector<Part>& parts) {
  State state;
  for (const Part& part : parts)
    state = test::on_grid(part.grid, [&](const Mesh& mesh) {
      return train(recorded, mesh, precision, part.zero, state, part.end);
    })[0];
  return state;
}

void expect_recorded(const Recorded& recorded, const State& found, Precision precision) {
  const double loss = precision == Precision::f32 ? 1e-5 : 3e-3,
               norm = precision == Precision::f32 ? 1e-4 : 2e-2;
  const auto losses = doubles(*recorded.run.find("losses_float64")),
             norms = doubles(*recorded.run.find("grad_norms_float64"));
  ASSERT_EQ(found.losses.size(), 50u);
  for (std::size_t step = 0; step < found.losses.size(); ++step) {
    EXPECT_NEAR(found.losses[step], losses[step], loss) << "step " << step;
    EXPECT_NEAR(found.norms[step], norms[step], norm * norms[step]) << "step " << step;
  }
}

class GoldenPretrain : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_GOLDEN(cat("pretrain/", GetParam(), "/run.json"));
    SKIP_WITHOUT_GOLDEN(
        "../data/datasets/pretrain");  // the whole texts lie beside the golden files
  }
  void compare(Precision precision, const std::vector<Part>& parts) {
    const Recorded recorded(GetParam());
    expect_recorded(recorded, train(recorded, precision, parts), precision);
  }
};

TEST_P(GoldenPretrain, EveryStepIsReproducedOnOneRank) {
  compare(Precision::f32, {{{}, false, 50}});
}
TEST_P(GoldenPretrain, EveryStepIsReproducedInBf16) {
  compare(Precision::bf16, {{{}, false, 50}});
}
TEST_P(GoldenPretrain, EveryStepIsReproducedOnFourReplicasWithZero1) {
  compare(Precision::f32, {{{.dp = 4}, true, 50}});
  compare(Precision::bf16, {{{.dp = 4}, true, 50}});
}
TEST_P(GoldenPretrain, EveryStepIsReproducedOnTwoTensorParallelRanks) {
  compare(Precision::f32, {{{.tp = 2}, false, 50}});
  compare(Precision::bf16, {{{.tp = 2}, false, 50}});
}
TEST_P(GoldenPretrain, EveryStepIsReproducedOnTwoStagesOfTwoTensorParallelRanks) {
  compare(Precision::f32, {{{.tp = 2, .pp = 2}, false, 50}});
  compare(Precision::bf16, {{{.tp = 2, .pp = 2}, false, 50}});
}
TEST_P(GoldenPretrain, EveryStepIsReproducedWhenTheGridChanges) {
  compare(Precision::f32,
          {{{.tp = 2}, false, 20}, {{.dp = 4}, true, 35}, {{.dp = 2, .tp = 2}, false, 50}});
  compare(Precision::f32,
          {{{.tp = 2, .pp = 2}, false, 25}, {{.dp = 2, .pp = 2}, true, 40}, {{}, false, 50}});
}

INSTANTIATE_TEST_SUITE_P(Texts, GoldenPretrain, ::testing::Values("tinystories", "shakespeare"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace troupe::algorithms
