#include "launch/commands/merge.h"

#include <filesystem>
#include <iostream>

#include "engine/adapter/adapter.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/tokenizer/chat_template.h"

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
  const std::string own_template = options.adapter + "/chat_template.jinja";
  std::error_code failed;
  const bool has_template = std::filesystem::exists(own_template, failed);
  const std::string chat_template =
      has_template ? value_or_throw(engine::tokenizer::ChatTemplate::load(own_template)).source()
                   : "";
  if (!std::filesystem::create_directory(options.output, failed))
    throw Failure(
        {failed ? Errc::io : Errc::usage,
         cat(options.output, ": ",
             failed ? failed.message() : "already exists; set --output to a new directory")});
  value_or_throw(checkpoint::save_parameters(options.output, model->parameters(),
                                             {.source = options.model,
                                              .overrides = options.overrides.values,
                                              .tied = model->spec().tied,
                                              .type = type,
                                              .chat_template = chat_template}));
  std::cout << options.output << "\n";
  return 0;
}

}  // namespace troupe::launch
