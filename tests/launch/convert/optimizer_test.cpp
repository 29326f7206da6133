// The optimizer's state from one division of Megatron core to another.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

// What the state of every parameter is as a function of its weight, so that it can be compared
// whatever the division. Groups as Megatron's _get_param_groups makes them.
constexpr const char* functions = R"(
import glob, sys, torch

def groups(model):
  out = []
  for name, weight in model.items():
    key = name.endswith('.bias') or weight.dim() == 1
    for kind, members in out:
      if kind == key:
        members.append(weight)
        break
    else:
      out.append((key, [weight]))
  return out

def parts(root):
  model = {}
  for key in ['model', 'model0', 'model1', 'model2', 'model3', 'model4']:
    for name, weight in root.get(key, {}).items():
      model[key + name] = weight
  return groups(model)

def state_of(weight):
  wide = weight.float()
  return {'exp_avg': 2 * wide, 'exp_avg_sq': wide * wide}

def master_of(weight):  # another f32 number that rounds to the weight
  return weight.float() * (1 + 2.0 ** -12)

# As get_parameter_state_dp_zero of Megatron core: the last parameter first, each at a multiple of
# `alignment` elements.
def distributed(root, alignment, order):
  out = {'buckets_coalesced': True}
  chunks = [key for key in ['model', 'model0', 'model1', 'model2', 'model3'] if key in root]
  for number, key in enumerate(chunks):
    places, end = [], 0
    for weight in list(root[key].values())[::order]:
      begin = -(-end // alignment) * alignment
      end = begin + weight.numel()
      places.append((begin, end, weight))
    vectors = {kind: torch.zeros(end) for kind in ('param', 'exp_avg', 'exp_avg_sq')}
    for begin, stop, weight in places:
      values = dict(state_of(weight), param=master_of(weight))
      for kind, vector in vectors.items():
        vector[begin:stop] = values[kind].flatten()
    out[number] = {(torch.bfloat16, torch.float32): dict(vectors, numel_unpadded=end)}
  return out

def files(folder):
  return sorted(glob.glob(folder + '/iter_*/*/model_optim_rng.pt'))

if sys.argv[1] == 'add':
  for path in files(sys.argv[2]):
    root = torch.load(path, weights_only=True)
    state, param_groups, masters, number = {}, [], [], 0
    for is_vector, weights in parts(root):
      numbers = list(range(number, number + len(weights)))
      number += len(weights)
      for i, weight in zip(numbers, weights):
        state[i] = dict(state_of(weight), step=torch.tensor(7.0))
      param_groups.append({'lr': 1.25e-6, 'betas': (0.9, 0.95), 'wd_mult': 0.0 if is_vector else 1.0,
                           'is_expert_parallel': False, 'step': 7, 'params': numbers})
      masters.append([master_of(weight) for weight in weights])
    root['iteration'] = 2000
    root['optimizer'] = {'optimizer': {'state': state, 'param_groups': param_groups},
                         'fp32_from_fp16_params': masters}
    root['opt_param_scheduler'] = {'max_lr': 1.25e-6, 'num_steps': 64000, 'lr_decay_style': 'cosine'}
    torch.save(root, path)
elif sys.argv[1] == 'distribute':
  for path in files(sys.argv[2]):
    root = torch.load(path)
    groups_only = root['optimizer']['optimizer']['param_groups']
    for group in groups_only:
      del group['params']
    root['optimizer'] = {'optimizer': {'param_groups': groups_only}}
    torch.save(root, path)
    state = distributed(root, int(sys.argv[3]), int(sys.argv[4]))
    torch.save(state, path.replace('model_optim_rng.pt', 'distrib_optim.pt'))
else:
  for path in files(sys.argv[2]):
    root = torch.load(path, weights_only=True)
    assert root['iteration'] == 2000 and '/iter_0002000/' in path
    assert root['opt_param_scheduler']['num_steps'] == 64000
    assert root['opt_param_scheduler']['lr_decay_style'] == 'cosine'
    assert float(root['opt_param_scheduler']['max_lr']) == 1.25e-6
    optimizer = root['optimizer']['optimizer']
    number = 0
    for g, (is_vector, weights) in enumerate(parts(root)):
      group = optimizer['param_groups'][g]
      assert group['params'] == list(range(number, number + len(weights)))
      assert float(group['wd_mult']) == (0.0 if is_vector else 1.0) and group['step'] == 7
      assert float(group['lr']) == 1.25e-6 and [float(b) for b in group['betas']] == [0.9, 0.95]
      assert group['is_expert_parallel'] is False
      for j, weight in enumerate(weights):
        for key, value in state_of(weight).items():
          assert torch.equal(optimizer['state'][number][key], value), (path, number, key)
        assert optimizer['state'][number]['step'] == 7
        assert torch.equal(root['optimizer']['fp32_from_fp16_params'][g][j], master_of(weight))
        number += 1
    assert number == len(optimizer['state'])
)";

class OptimizerState : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists("/usr/lib/python3/dist-packages/torch"))
      GTEST_SKIP() << "python3-torch is not installed";
    fs::create_directory(hf_);
    put_small_model(hf_, small_config("Qwen2ForCausalLM"));
    value_or_throw(write_file_durably(root_ + "/program.py", functions));
  }
  tools::convert::ConvertOptions division(const std::string& from, const std::string& to,
                                          int tensor, int pipeline) const {
    tools::convert::ConvertOptions options;
    options.load_type = from == "hf" ? "hf" : "mg";
    options.load_dir = cat(root_, '/', from);
    options.save_dir = cat(root_, '/', to);
    options.tensor = tensor;
    options.layers.pipeline = pipeline;
    options.use_mcore = true;
    return options;
  }
  int run(const std::string& what, const std::string& folder) const {
    return std::system(
        cat("cd ", root_, " && /usr/bin/python3 program.py ", what, ' ', folder).c_str());
  }

  const std::string root_ = scratch_folder(), hf_ = root_ + "/hf";
};

TEST_F(OptimizerState, IsDividedAsTheWeightsAre) {
  value_or_throw(tools::convert::convert(division("hf", "a", 2, 2)));
  ASSERT_EQ(run("add", "a"), 0);
  value_or_throw(tools::convert::convert(division("a", "b", 1, 2)));
  EXPECT_EQ(run("check", "b"), 0);
  value_or_throw(tools::convert::convert(division("b", "c", 4, 1)));
  EXPECT_EQ(run("check", "c"), 0);
  tools::convert::ConvertOptions virtual_ranks = division("c", "d", 1, 2);
  virtual_ranks.empty_places = "5";
  virtual_ranks.layers.layers_per_virtual = 1;
  value_or_throw(tools::convert::convert(virtual_ranks));
  EXPECT_EQ(run("check", "d"), 0);
  value_or_throw(tools::convert::convert(division("d", "e", 2, 2)));
  EXPECT_EQ(run("check", "e"), 0);
}

TEST_F(OptimizerState, OfTheDistributedOptimizerIsDividedAsTheWeightsAre) {
  value_or_throw(tools::convert::convert(division("hf", "a", 2, 2)));
  ASSERT_EQ(run("add", "a"), 0);
  ASSERT_EQ(run("distribute", "a 64 -1"), 0);
  tools::convert::ConvertOptions virtual_ranks = division("a", "b", 1, 2);
  virtual_ranks.empty_places = "5";
  virtual_ranks.layers.layers_per_virtual = 1;
  value_or_throw(tools::convert::convert(virtual_ranks));
  EXPECT_EQ(run("check", "b"), 0);
  ASSERT_EQ(run("distribute", "b 1 -1"), 0);
  value_or_throw(tools::convert::convert(division("b", "c", 2, 1)));
  EXPECT_EQ(run("check", "c"), 0);
}

TEST_F(OptimizerState, OfTheDistributedOptimizerInAnotherLayoutIsRefusedByName) {
  value_or_throw(tools::convert::convert(division("hf", "a", 1, 1)));
  ASSERT_EQ(run("add", "a"), 0);
  ASSERT_EQ(run("distribute", "a 1 1"), 0);
  const auto said = [&] {
    return run_program(cat("convert --use-mcore-models --load-model-type mg --load-dir ", root_,
                           "/a --save-dir ", root_, "/b"))
        .err;
  };
  EXPECT_THAT(said(), testing::HasSubstr("distrib_optim.pt: the state of the distributed optimizer "
                                         "has other f32 weights than \"embedding"));
  fs::remove(root_ + "/a/iter_0000001/mp_rank_00/distrib_optim.pt");
  EXPECT_THAT(said(), testing::HasSubstr("distrib_optim.pt: no such file"));
}

TEST_F(OptimizerState, OfAnotherFormIsReportedAndTheWeightsAreConverted) {
  value_or_throw(tools::convert::convert(division("hf", "a", 1, 1)));
  ASSERT_EQ(std::system(cat("cd ", root_,
                            " && /usr/bin/python3 -c \"import torch; p = "
                            "'a/iter_0000001/mp_rank_00/model_optim_rng.pt'; x = torch.load(p); "
                            "x['optimizer'] = {'optimizer': {'param_groups': []}}; "
                            "torch.save(x, p)\"")
                            .c_str()),
            0);
  const ProgramOutput said =
      run_program(cat("convert --use-mcore-models --load-model-type mg --load-dir ", root_,
                      "/a --save-dir ", root_, "/b --target-tensor-parallel-size 2"));
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.err, testing::HasSubstr("the optimizer's state has another form"));
}

}  // namespace
}  // namespace troupe::launch
