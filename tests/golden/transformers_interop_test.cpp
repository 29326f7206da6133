// Models saved by troupe load in transformers with equal logits: every family, with a language head
// and with both score heads.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <iostream>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/golden/dense_models.h"
#include "tests/support/golden.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr int cannot = 77;  // the script's word for "nothing to compare with"

std::string folder_of(const char* name) {
  return cat(test::golden_folder(), "/models/", name);
}

struct Saver {
  explicit Saver(std::string to) : root(std::move(to)) {}

  /// Saves a changed model together with its outputs.
  void save(const std::string& source, const std::string& name, int labels, bool bias) {
    auto spec = value_or_throw(read_folder_spec(source));
    spec.labels = labels;
    spec.score_bias = bias;
    const auto model = value_or_throw(load_decoder(*device, source, std::move(spec), false));
    device->scale(model->parameters().values(), 1.01f);
    if (labels > 0) init_score_head(*model, 0.5, 11);
    const std::string folder = cat(root, "/", name);
    std::filesystem::create_directories(folder);
    value_or_throw(save_parameters(folder, model->parameters(),
                                   {.source = source, .tied = model->spec().tied}));
    ops::Layout layout{{0, static_cast<std::int32_t>(tokens.size())}, {}};
    for (std::int32_t t = 0; t < layout.rows(); ++t) layout.positions.push_back(t);
    const ops::PreparedLayout prepared = device->prepare(std::move(layout));
    nn::Saved nothing = nn::Saved::nothing();
    const Tensor hidden = model->forward(tokens, {*device, prepared}, nothing);
    const Tensor logits = labels > 0 ? model->score().forward(hidden)
                                     : model->head().logits(hidden, ops::Precision::f32);
    write(cat(folder, "/troupe.safetensors"), logits);
  }

  void write(const std::string& path, const Tensor& logits) {
    auto writer = value_or_throw(SafetensorsWriter::create(
        path, {{"logits", StoredType::f32, {logits.shape()[0], logits.shape()[1]}},
               {"tokens", StoredType::i32, {std::ssize(tokens)}}}));
    for (const auto& tensor : writer.tensors())
      value_or_throw(tensor.name == "logits"
                         ? writer.write(tensor.name, ops::to_host(*device, logits))
                         : writer.write_bytes(tensor.name, std::as_bytes(std::span(tokens))));
    value_or_throw(writer.finish());
  }

  std::string root;
  std::unique_ptr<ops::Device> device = ops::make_cpu_device();
  std::vector<std::int32_t> tokens{17,  3,  99, 250, 41, 41, 8,   120, 77, 5,
                                   200, 13, 64, 31,  90, 2,  155, 7,   66, 180};
};

TEST(TransformersInterop, LoadsWhatTroupeSavesWithTheSameLogits) {
  SKIP_WITHOUT_GOLDEN("models/llama/config.json");
  const Scratch scratch;
  Saver saver(scratch.path());
  for (const char* name : test::dense_models) {
    if (!test::golden_has(cat("models/", name, "/config.json"))) continue;
    saver.save(folder_of(name), name, 0, false);
    saver.save(folder_of(name), cat(name, "-sequences"), 3, false);
    saver.save(folder_of(name), cat(name, "-tokens"), 2, true);
  }
  const char* python = std::getenv("TROUPE_PYTHON");
  const int status =
      std::system(cat(python ? python : "python3", " " TROUPE_SCRIPT " ", scratch.path()).c_str());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == cannot || WEXITSTATUS(status) == 127))
    GTEST_SKIP() << "not compared: " << (python ? python : "python3")
                 << " has no transformers; TROUPE_PYTHON may name one that has";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the lines above";
}

}  // namespace
}  // namespace troupe::engine::checkpoint
