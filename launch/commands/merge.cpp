#include "launch/commands/merge.h"

#include <filesystem>
#include <iostream>

#include "engine/adapter/adapter.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::launch {
namespace checkpoint = engine::checkpoint;

namespace {

checkpoint::StoredType type_of(const std::string& dtype) {
  if (dtype == "f32") return checkpoint::StoredType::f32;
  if (dtype == "bf16") return checkpoint::StoredType::bf16;
  if (dtype == "f16") return checkpoint::StoredType::f16;
  throw Failure({Errc::usage, cat("--dtype ", quote(dtype), ": expected f32, bf16 or f16")});
}

}  // namespace

int merge(const MergeOptions& options) {
  const auto type = type_of(options.dtype);
  const auto device = engine::ops::make_cpu_device({});
  value_or_throw(checkpoint::verify_model_files(options.model));
  value_or_throw(checkpoint::verify_model_files(options.adapter));
  const auto model = value_or_throw(checkpoint::load_decoder(*device, options.model, false));
  value_or_throw(engine::adapter::merge_adapter(*model, options.adapter));
  std::error_code failed;
  if (!std::filesystem::create_directory(options.output, failed))
    throw Failure(
        {failed ? Errc::io : Errc::usage,
         cat(options.output, ": ",
             failed ? failed.message() : "already exists; set --output to a new directory")});
  value_or_throw(checkpoint::save_parameters(
      options.output, model->parameters(),
      {.source = options.model, .tied = model->spec().tied, .type = type}));
  std::cout << options.output << "\n";
  return 0;
}

}  // namespace troupe::launch
