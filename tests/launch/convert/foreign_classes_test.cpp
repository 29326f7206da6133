// Checkpoints as Megatron itself writes them: with its arguments and random states, whose classes
// are read as records.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "launch/tools/convert/convert.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// What megatron/training/checkpointing.py adds to the weights: args, the random states of random,
// numpy, torch and the devices, and a learning-rate scheduler.
constexpr const char* add_training_state = R"(
import argparse, enum, glob, random, sys
import numpy, torch

class ModelType(enum.Enum):
  encoder_or_decoder = 1

class AttnBackend(enum.Enum):
  flash = 1

for path in glob.glob(sys.argv[1] + '/iter_*/*/model_optim_rng.pt'):
  root = torch.load(path, weights_only=True)
  root['checkpoint_version'] = 3.0
  root['args'] = argparse.Namespace(
      num_layers=5, lr=1.25e-6, betas=(0.9, 0.95), params_dtype=torch.bfloat16, load=None,
      model_type=ModelType.encoder_or_decoder, attention_backend=AttnBackend.flash,
      data_path=['1.0', 'data'], tokens=2 ** 70, ratio=numpy.float64(0.5), device=torch.device('cpu'),
      rope=numpy.arange(4, dtype=numpy.int64), names={'a', 'b'}, raw=b'\x00\xff')
  root['rng_state'] = [{
      'random_rng_state': random.getstate(), 'np_rng_state': numpy.random.get_state(),
      'torch_rng_state': torch.get_rng_state(), 'cuda_rng_state': torch.ByteTensor(16),
      'rng_tracker_states': {'model-parallel-rng': torch.get_rng_state()}}]
  root['opt_param_scheduler'] = {'max_lr': 1.25e-6, 'num_steps': 64000}
  root['num_floating_point_operations_so_far'] = 10 ** 21
  torch.save(root, path, pickle_protocol=int(sys.argv[2]))
)";

class ForeignClasses : public testing::TestWithParam<int> {};

TEST_P(ForeignClasses, AreListedAndTheWeightsAreThoseOfTheFile) {
  if (!fs::exists("/usr/lib/python3/dist-packages/torch"))
    GTEST_SKIP() << "python3-torch is not installed";
  const std::string root = scratch_folder(), hf = root + "/hf";
  fs::create_directory(hf);
  put_small_model(hf, small_config("Qwen3ForCausalLM"));
  tools::convert::ConvertOptions there;
  there.load_dir = hf;
  there.save_dir = root + "/mg";
  there.tensor = 2;
  there.use_mcore = true;
  value_or_throw(tools::convert::convert(there));
  value_or_throw(write_file_durably(root + "/program.py", add_training_state));
  ASSERT_EQ(
      std::system(cat("/usr/bin/python3 ", root, "/program.py ", root, "/mg ", GetParam()).c_str()),
      0);
  const ProgramOutput said =
      run_program(cat("convert --load-model-type mg --save-model-type hf --load-dir ", root,
                      "/mg --save-dir ", hf));
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* name : {"argparse.Namespace", "__main__.ModelType", "__main__.AttnBackend",
                           "numpy.core.multiarray._reconstruct", "numpy.core.multiarray.scalar"})
    EXPECT_THAT(said.err, HasSubstr(name));
  EXPECT_TRUE(content(hf + "/mg2hf/model.safetensors") == content(hf + "/model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Protocols, ForeignClasses, testing::Values(2, 4),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace troupe::launch
