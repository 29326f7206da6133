#include "launch/commands/model.h"

#include "engine/adapter/peft_file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "engine/ops/cpu/cpu_options.h"
#include "launch/commands/json_lines.h"
#include "launch/run/settings.h"

namespace troupe::launch {

Result<Model> Model::load(const ModelOptions& options) {
  Model model;
  const auto precision = precision_of(options.dtype);
  RETURN_IF_ERROR(precision);
  model.precision_ = *precision;
  model.folder_ = options.model;
  model.device_ = engine::ops::make_cpu_device({.threads = options.threads});
  auto spec = engine::checkpoint::read_folder_spec(options.model);
  RETURN_IF_ERROR(spec);
  if (!options.adapter.empty()) {
    auto adapter = engine::adapter::read_adapter(options.adapter, *spec);
    RETURN_IF_ERROR(adapter);
    spec->lora = std::move(adapter->lora);
  }
  auto decoder =
      engine::checkpoint::load_decoder(*model.device_, options.model, std::move(*spec), false);
  RETURN_IF_ERROR(decoder);
  model.decoder_ = std::move(*decoder);
  if (!options.adapter.empty())
    RETURN_IF_ERROR(engine::adapter::load_adapter(options.adapter, *model.decoder_));
  return model;
}

Result<const engine::tokenizer::Tokenizer*> Model::tokenizer() {
  if (!tokenizer_) {
    auto loaded = engine::tokenizer::Tokenizer::load(folder_);
    RETURN_IF_ERROR(loaded);
    tokenizer_ = std::move(*loaded);
  }
  return &*tokenizer_;
}

Result<std::vector<std::int32_t>> Model::tokens_of(const Json& line, std::string_view text_key) {
  std::vector<std::int32_t> tokens;
  if (line.find("ids")) {
    auto ids = ids_of(line, spec().vocabulary);
    RETURN_IF_ERROR(ids);
    tokens = std::move(*ids);
  } else {
    const auto text = get_string(line, text_key, "the line (which has no ids)");
    RETURN_IF_ERROR(text);
    const auto encoder = tokenizer();
    RETURN_IF_ERROR(encoder);
    tokens = (*encoder)->encode(*text, true);
  }
  if (tokens.empty()) return fail(Errc::bad_input, "no tokens: expected at least one");
  for (const auto id : tokens) {
    if (id >= spec().vocabulary) {
      return fail(Errc::bad_input, cat("the tokenizer returned id ", id, ", but the model has ",
                                       spec().vocabulary, " tokens; they do not match"));
    }
  }
  return tokens;
}

}  // namespace troupe::launch
