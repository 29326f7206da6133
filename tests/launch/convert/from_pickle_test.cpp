#include "launch/tools/convert/from_pickle.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "engine/checkpoint/pickle/torch_writer.h"
#include "engine/checkpoint/safetensors_folder.h"
#include "tests/launch/convert/small_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

namespace checkpoint = engine::checkpoint;
using checkpoint::PickleValue;
using testing::HasSubstr;

/// A .bin file with the tensors of a safetensors file that `wanted` accepts.
template <class Wanted>
void put_bin(const std::string& path, const checkpoint::SafetensorsFile& from, Wanted wanted) {
  PickleValue::Dict state{.ordered = true};
  for (const auto& tensor : from.tensors())
    if (wanted(tensor.name))
      state.items.emplace_back(tensor.name, checkpoint::TensorSlot{tensor.type, tensor.shape});
  auto writer = value_or_throw(checkpoint::TorchWriter::create(path, std::move(state)));
  for (const auto& tensor : from.tensors())
    if (wanted(tensor.name)) value_or_throw(writer.write(from.bytes(tensor)));
  value_or_throw(writer.finish());
}

TEST(FromPickle, TheSafetensorsFileHasTheSameBytes) {
  const std::string folder = scratch_folder();
  put_small_model(folder, small_config("LlamaForCausalLM"));
  const std::string expected = content(folder + "/model.safetensors");
  put_bin(folder + "/pytorch_model.bin",
          value_or_throw(checkpoint::SafetensorsFile::open(folder + "/model.safetensors")),
          [](const std::string&) { return true; });
  EXPECT_THAT(tools::convert::convert_pickles({folder, ""}).error().what, HasSubstr("exists"));
  std::filesystem::remove(folder + "/model.safetensors");
  const ProgramOutput said = run_program("convert --from-pickle " + folder);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, folder + "\n");
  EXPECT_EQ(content(folder + "/model.safetensors"), expected);
}

TEST(FromPickle, ShardsAndTheirIndex) {
  const std::string folder = scratch_folder(), output = folder + "/new";
  put_small_model(folder, small_config("LlamaForCausalLM"));
  const auto file =
      value_or_throw(checkpoint::SafetensorsFile::open(folder + "/model.safetensors"));
  const auto in_first = [](const std::string& name) { return name < "model.layers.2"; };
  put_bin(folder + "/pytorch_model-00001-of-00002.bin", file, in_first);
  put_bin(folder + "/pytorch_model-00002-of-00002.bin", file,
          [&](const std::string& name) { return !in_first(name); });
  Json::Object map;
  for (const auto& tensor : file.tensors())
    map.emplace_back(tensor.name,
                     cat("pytorch_model-0000", in_first(tensor.name) ? 1 : 2, "-of-00002.bin"));
  const Json index(Json::Object{{"weight_map", std::move(map)}});
  value_or_throw(write_file_durably(folder + "/pytorch_model.bin.index.json", index.dump()));
  value_or_throw(tools::convert::convert_pickles({folder, output}));
  const auto weights = value_or_throw(checkpoint::SafetensorsFolder::open(output));
  EXPECT_EQ(weights.files().size(), 2u);
  EXPECT_EQ(weights.all().size(), file.tensors().size());
  EXPECT_TRUE(std::filesystem::exists(output + "/config.json"));
}

TEST(FromPickle, OnlyTensorsAreWeights) {
  const std::string folder = scratch_folder();
  PickleValue::Dict state;
  state.items.emplace_back("step", 3);
  auto writer = value_or_throw(
      checkpoint::TorchWriter::create(folder + "/pytorch_model.bin", std::move(state)));
  value_or_throw(writer.finish());
  const ProgramOutput said = run_program("convert --from-pickle " + folder);
  EXPECT_EQ(said.code, 5);
  EXPECT_THAT(said.err, HasSubstr("entry \"step\": expected a tensor, found int"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/model.safetensors"));
  EXPECT_THAT(tools::convert::convert_pickles({scratch_folder(), ""}).error().what,
              HasSubstr("expected pytorch_model.bin or pytorch_model.bin.index.json"));
}

}  // namespace
}  // namespace troupe::launch
