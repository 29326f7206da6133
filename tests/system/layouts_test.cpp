// Every layout of the ranks trains what one rank trains: the losses and the gradient of each tensor
// agree, and threads, mpirun and a repetition write the same bytes. Continuous integration runs a
// part of the table; tests/long.sh layouts runs all of it, for every method.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <ostream>
#include <sstream>

#include "engine/base/text/text.h"
#include "engine/checkpoint/safetensors.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

using engine::checkpoint::SafetensorsFile;

struct Layout {
  const char* name;
  int ranks;
  const char* keys;  ///< of parallel: "pp=2 vpp=2"
};

/// The models have 4 or 5 layers; "most" is one less.
constexpr Layout layouts[] = {
    {"dp2", 2, "dp=2"},
    {"dp4_zero", 4, "dp=4 zero=1"},
    {"dp2_overlap", 2, "dp=2 overlap=gradients"},
    {"dp4_zero_overlap", 4, "dp=4 zero=1 overlap=all"},
    {"tp2", 2, "tp=2"},
    {"tp4", 4, "tp=4"},
    {"sp_tp2", 2, "tp=2 sp=true"},
    {"sp_tp4", 4, "tp=4 sp=true"},
    {"pp2", 2, "pp=2"},
    {"pp4", 4, "pp=4"},
    {"pp2_vpp2", 2, "pp=2 vpp=2"},
    {"pp2_uneven", 2, "pp=2 layers=[most,1]"},
    {"pp2_noop", 2, "pp=2 noop_layers=[0]"},
    {"pp2_vpp2_noop", 2, "pp=2 vpp=2 noop_layers=[1,3]"},
    {"cp2_ring", 2, "cp=2"},
    {"cp4_ring", 4, "cp=4"},
    {"cp4_ulysses", 4, "cp=4 cp_algorithm=ulysses"},
    {"cp4_hybrid", 4, "cp=4 cp_algorithm=hybrid ulysses_degree=2"},
    {"pp2_tp2_dp2", 8, "pp=2 tp=2 dp=2"},
    {"pp2_vpp2_dp2_zero_overlap", 4, "pp=2 vpp=2 dp=2 zero=1 overlap=all"},
    {"pp2_vpp2_tp2_dp2", 8, "pp=2 vpp=2 tp=2 dp=2 order=tp-cp-pp-dp"},
    {"pp4_dp2_zero", 8, "pp=4 dp=2 zero=1"},
    {"tp2_sp_cp2_dp2", 8, "tp=2 sp=true cp=2 dp=2 zero=1 overlap=all"},
    {"pp2_vpp2_cp2_tp2", 8, "pp=2 vpp=2 cp=2 tp=2"},
    {"pp2_cp4_ulysses", 8, "pp=2 cp=4 cp_algorithm=ulysses"},
    {"dp4_others_divided", 4,
     "dp=4 reference.tp=2 reference.pp=2 rollout.tp=2 rollout.pp=2 critic.pp=2"},
};

struct LayoutOf {
  const char* algorithm;
  Layout layout;
};
void PrintTo(const LayoutOf& tested, std::ostream* out) {
  *out << tested.algorithm << " " << tested.layout.name;
}

std::vector<float> values_of(const SafetensorsFile& file, const std::string& name) {
  const auto& shape = file.find(name)->shape;
  std::vector<float> values(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  value_or_throw(file.read_f32(name, values));
  return values;
}

double norm_of(const std::vector<float>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

class Layouts : public SystemRuns, public testing::WithParamInterface<LayoutOf> {
 protected:
  std::string run_of(const std::string& output, const std::string& keys) const {
    const std::string algorithm = GetParam().algorithm;
    std::string more =
        "--set train.steps=7 --set train.save_every=1 --set train.keep_last=0 "
        "--set train.micro_batch_tokens=128";
    const bool reinforced = algorithm == "ppo" || algorithm == "grpo";
    std::istringstream words(keys);
    for (std::string key; words >> key;) {
      if (const auto at = key.find("most"); at != key.npos)
        key.replace(at, 4, reinforced ? "3" : "4");
      more += cat(" --set 'parallel.", key, "'");
    }
    // A step is one update, so that the first checkpoint has its gradient.
    if (algorithm == "ppo") more += " --set ppo.epochs=1 --set ppo.minibatches=1";
    if (algorithm == "grpo") more += " --set grpo.minibatches=1";
    if (algorithm == "prm") more += step_rows();
    // One gradient of the first step is 4e-9, as large as its rounding error. With the default
    // train.eps of 1e-8 its update differs by 0.4 of the learning rate between layouts, and the
    // next loss by 4e-6.
    if (algorithm == "simpo") more += " --set train.eps=1e-6";
    return arguments(algorithm, output, more);
  }

  void run_ranks(const std::string& output) const {
    const auto& [name, ranks, keys] = GetParam().layout;
    run_under_mpirun(ranks, run_of(output, keys));
  }

  void expect_losses_of_one_rank() const {
    const auto found = losses("threads"), one = losses("one");
    ASSERT_EQ(found.size(), 7u);
    ASSERT_EQ(one.size(), 7u);
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(found[i], one[i], (i == 0 ? 2e-6 : 4e-6) * std::max(1.0, std::abs(one[i])))
          << "step " << i + 1;
  }

  // The first moments after one step are the gradients times 1 - beta.
  void expect_gradients_of_one_rank() const {
    const auto open = [&](const std::string& output) {
      return value_or_throw(
          SafetensorsFile::open(path(output + "/checkpoint-1/training/optimizer.safetensors")));
    };
    const SafetensorsFile found = open("threads"), one = open("one");
    std::size_t compared = 0;
    for (const auto& tensor : one.tensors()) {
      if (!tensor.name.starts_with("exp_avg.")) continue;
      const auto a = values_of(found, tensor.name), b = values_of(one, tensor.name);
      ASSERT_EQ(a.size(), b.size()) << tensor.name;
      std::vector<float> difference(a.size());
      std::ranges::transform(a, b, difference.begin(), std::minus<>());
      EXPECT_LE(norm_of(difference), 1e-5 * norm_of(b)) << tensor.name;
      compared += norm_of(b) > 0 ? 1 : 0;
    }
    EXPECT_GE(compared, 10u) << "these gradients show nothing";
  }
};

TEST_P(Layouts, TrainWhatOneRankTrains) {
  run(run_of("one", ""));
  run(run_of("threads", GetParam().layout.keys));
  expect_losses_of_one_rank();
  expect_gradients_of_one_rank();
}

class EveryLayout : public Layouts {};

TEST_P(EveryLayout, TrainsWhatOneRankTrainsWithTheSameBytesUnderMpirun) {
  run(run_of("one", ""));
  run(run_of("threads", GetParam().layout.keys));
  expect_losses_of_one_rank();
  expect_gradients_of_one_rank();
  run(run_of("again", GetParam().layout.keys));
  expect_same_bytes("threads", "again");
  run_ranks("mpi");
  expect_same_bytes("threads", "mpi");
}

Layout layout(std::string_view name) {
  return *std::ranges::find(layouts, name, &Layout::name);
}

std::vector<LayoutOf> every_layout_of_every_method() {
  std::vector<LayoutOf> all;
  for (const char* algorithm : {"pretrain", "sft", "dpo", "simpo", "orm", "prm", "ppo", "grpo"})
    for (const Layout& each : layouts) all.push_back({algorithm, each});
  return all;
}

std::string title_of_layout(const testing::TestParamInfo<LayoutOf>& info) {
  return cat(info.param.algorithm, "_", info.param.layout.name);
}

INSTANTIATE_TEST_SUITE_P(
    Some, Layouts,
    testing::Values(LayoutOf{"sft", layout("dp4_zero_overlap")}, LayoutOf{"dpo", layout("tp4")},
                    LayoutOf{"orm", layout("sp_tp2")}, LayoutOf{"grpo", layout("pp4")},
                    LayoutOf{"pretrain", layout("pp2_vpp2")}, LayoutOf{"ppo", layout("pp2_uneven")},
                    LayoutOf{"simpo", layout("pp2_vpp2_noop")}, LayoutOf{"sft", layout("cp4_ring")},
                    LayoutOf{"prm", layout("cp4_ulysses")}, LayoutOf{"dpo", layout("cp4_hybrid")},
                    LayoutOf{"grpo", layout("pp2_vpp2_dp2_zero_overlap")},
                    LayoutOf{"sft", layout("pp2_tp2_dp2")}),
    title_of_layout);
INSTANTIATE_TEST_SUITE_P(DISABLED_All, EveryLayout,
                         testing::ValuesIn(every_layout_of_every_method()), title_of_layout);

}  // namespace
}  // namespace troupe::test
