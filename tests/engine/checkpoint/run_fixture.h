// A small model with moments, and what the tests of training checkpoints do with it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/directory_lock.h"
#include "engine/checkpoint/read_checkpoint.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/checkpoint/write_checkpoint.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/checkpoint/scratch.h"

namespace troupe::engine::checkpoint {

struct RunTest : ::testing::Test {
  RunTest() {
    put(source / "config.json", R"({"torch_dtype":"bfloat16"})");
    put(source / "tokenizer.json", "{}");
    put(source / "README.md", "not copied");
  }

  /// Everything that a checkpoint of `step` holds follows from the step.
  static std::vector<float> numbers(std::int64_t step, float factor) {
    std::vector<float> out(11);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = factor * (static_cast<float>(step) + static_cast<float>(i) / 7);
    return out;
  }
  static Json state_of(std::int64_t step) {
    return Json::Object{{"rows", step * 100}, {"seed", 7}};
  }

  Snapshot snapshot(std::int64_t step, SaveOptions model = {}) {
    device->upload(parameters.values(), numbers(step, 1));
    device->upload(m, numbers(step, 2));
    device->upload(v, numbers(step, 3));
    model.source = source.path();
    return {step, parameters, model, m, v, state_of(step)};
  }
  Result<std::string> write(std::int64_t step, const WriteOptions& options = {}) {
    const auto lock = DirectoryLock::acquire(out.path());
    RETURN_IF_ERROR(lock);
    return write_checkpoint(*lock, snapshot(step), options);
  }
  /// Writes the checkpoint of `step` while every value is replaced as soon as it may be.
  Result<std::string> write_overlapped(std::int64_t step, const WriteOptions& options = {}) {
    const auto lock = DirectoryLock::acquire(out.path());
    RETURN_IF_ERROR(lock);
    auto write = start_checkpoint(nullptr, &*lock, snapshot(step), options);
    RETURN_IF_ERROR(write);
    for (std::int64_t at = 0; at < parameters.count();) {
      const std::int64_t end = std::min((*write)->wait_for(at), parameters.count());
      for (const Tensor* arena : {&parameters.values(), &m, &v}) {
        Tensor written = arena->flat(at, end);
        device->fill(written, -1);
      }
      at = end;
    }
    (*write)->wait_for_all();
    if (auto done = (*write)->finish(false)) return *done;
    return *(*write)->finish(true);
  }
  /// True when the checkpoint at `path` holds every bit of `step`.
  bool holds(const std::string& path, std::int64_t step) {
    nn::Parameters into(*device, wanted, false);
    Tensor m2 = device->empty(Shape{11}), v2 = device->empty(Shape{11});
    const auto state = load_checkpoint(path, into, false, &m2, &v2);
    return state && state->step == step && state->state == state_of(step) &&
           ops::to_host(*device, into.values()) == numbers(step, 1) &&
           ops::to_host(*device, m2) == numbers(step, 2) &&
           ops::to_host(*device, v2) == numbers(step, 3);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(out.path()))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  Scratch source, out;
  std::unique_ptr<ops::Device> device = ops::make_reference_device();
  const std::vector<nn::ParameterSpec> wanted = {{"model.embed_tokens.weight", {4, 2}},
                                                 {"model.norm.weight", {3}}};
  nn::Parameters parameters{*device, wanted, false};
  Tensor m = device->empty(Shape{11}), v = device->empty(Shape{11});
};

/// The files of a checkpoint, relative and sorted.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      found.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace troupe::engine::checkpoint
