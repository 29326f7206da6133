#include "engine/adapter/model_folders.h"

#include <filesystem>

#include "engine/adapter/peft_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/not_a_model.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::adapter {

namespace {

namespace fs = std::filesystem;

bool has_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

}  // namespace

bool is_only_adapter(const std::string& folder) {
  return is_adapter(folder) && !has_model(folder);
}

Result<std::string> find_base(const std::string& folder) {
  const std::string named = checkpoint::named_base(folder);
  if (named.empty())
    return fail(Errc::usage, cat(folder, ": ", checkpoint::why_not_a_model(folder)));
  if (has_model(named)) return named;
  std::error_code failed;
  const fs::path beside = fs::canonical(folder, failed) / named;
  if (!failed && has_model(beside)) return beside.lexically_normal().string();
  return fail(
      Errc::not_found,
      cat(folder, ": ", checkpoint::why_not_a_model(folder), ". The base was looked for in ",
          quote(named, 400), ", relative to the current directory and to the adapter's",
          checkpoint::is_hub_name(named) ? "; `hf download` gets it (docs/models.md)" : ""));
}

Result<ModelFolders> model_folders(const std::string& model, const std::string& adapter) {
  if (!is_only_adapter(model)) return ModelFolders{model, adapter, model};
  if (!adapter.empty())
    return fail(Errc::usage, cat(model, ": ", checkpoint::why_not_a_model(model),
                                 ". Only one adapter can be used at a time"));
  auto base = find_base(model);
  RETURN_IF_ERROR(base);
  const bool has_text = tokenizer::Tokenizer::is_in(model);
  return ModelFolders{*base, model, has_text ? model : *base};
}

}  // namespace troupe::engine::adapter
