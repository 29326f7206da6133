#include "launch/commands/merge.h"

#include <filesystem>
#include <iostream>

#include "engine/adapter/adapter.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/result_folder.h"
#include "engine/checkpoint/save_parameters.h"
#include "engine/ops/devices/make_device.h"
#include "engine/tokenizer/chat_template.h"

namespace troupe::launch::commands {
namespace checkpoint = engine::checkpoint;

namespace {

checkpoint::StoredType type_of(const std::string& dtype) {
  if (dtype == "f32") return checkpoint::StoredType::f32;
  if (dtype == "bf16") return checkpoint::StoredType::bf16;
  if (dtype == "f16") return checkpoint::StoredType::f16;
  throw Failure({Errc::usage, cat("--dtype ", quote(dtype), ": expected f32, bf16 or f16")});
}

/// The template and the tokenizer (tokenizer_ids) that the adapter was trained with.
checkpoint::CompanionTexts texts_of(const std::string& adapter) {
  checkpoint::CompanionTexts out;
  std::error_code failed;
  if (std::filesystem::exists(adapter + "/chat_template.jinja", failed))
    out.chat_template = value_or_throw(engine::tokenizer::ChatTemplate::load(adapter)).source();
  if (const std::string path = adapter + "/tokenizer.json"; std::filesystem::exists(path, failed))
    out.tokenizer = value_or_throw(read_file(path));
  return out;
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
                           {"chat_template", save.texts.chat_template}});
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
  const auto device = engine::ops::make_device({});
  value_or_throw(checkpoint::verify_model_files(options.model));
  value_or_throw(checkpoint::verify_model_files(options.adapter));
  const auto model = value_or_throw(checkpoint::load_decoder(*device, options.model, false));
  value_or_throw(engine::adapter::merge_adapter(*model, options.adapter));
  const checkpoint::SaveOptions save{.source = options.model,
                                     .overrides = options.overrides.values,
                                     .tied = model->spec().tied,
                                     .type = type,
                                     .texts = texts_of(options.adapter)};
  value_or_throw(write_result(options, model->parameters(), save));
  std::cout << options.output << "\n";
  return 0;
}

}  // namespace troupe::launch::commands
