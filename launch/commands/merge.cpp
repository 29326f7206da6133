#include "launch/commands/merge.h"

#include <filesystem>
#include <iostream>

#include "engine/adapter/adapter.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/result_folder.h"
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

/// Everything that determines the bytes of the result.
Result<Json> job_of(const MergeOptions& options, const checkpoint::SaveOptions& save) {
  const auto base = checkpoint::stamps_of_folder(options.model),
             adapter = checkpoint::stamps_of_folder(options.adapter);
  RETURN_IF_ERROR(base);
  RETURN_IF_ERROR(adapter);
  return Json(Json::Object{{"command", "merge"},
                           {"base", *base},
                           {"adapter", *adapter},
                           {"dtype", options.dtype},
                           {"overrides", save.overrides},
                           {"chat_template", save.chat_template}});
}

Result<> write_result(const MergeOptions& options, const engine::nn::Parameters& parameters,
                      const checkpoint::SaveOptions& save) {
  const auto job = job_of(options, save);
  RETURN_IF_ERROR(job);
  auto folder = checkpoint::ResultFolder::create(options.output, *job);
  RETURN_IF_ERROR(folder);
  if (folder->published()) return {};
  if (folder->complete_files() == 0) {  // all of them are listed at once
    RETURN_IF_ERROR(checkpoint::save_parameters(folder->path(), parameters, save));
    RETURN_IF_ERROR(folder->add_written());
  }
  return folder->publish();
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
      has_template ? value_or_throw(engine::tokenizer::ChatTemplate::load(options.adapter)).source()
                   : "";
  const checkpoint::SaveOptions save{.source = options.model,
                                     .overrides = options.overrides.values,
                                     .tied = model->spec().tied,
                                     .type = type,
                                     .chat_template = chat_template};
  value_or_throw(write_result(options, model->parameters(), save));
  std::cout << options.output << "\n";
  return 0;
}

}  // namespace troupe::launch
