#include "launch/evaluation/mindspeed/checkout.h"

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_bytes = 4U << 20;
constexpr const char* evaluation_folder = "mindspeed_llm/tasks/evaluation/";
constexpr const char* helpers = "mindspeed_llm/tasks/evaluation/eval_utils/";

}  // namespace

/// `inside`: the file's folder in a checkout, with a slash at its end.
Result<std::string> Checkout::find(const std::string& file, const std::string& inside) const {
  if (folder_.empty())
    return fail(Errc::usage,
                cat("the suite mindspeed reads ", inside, file,
                    " of MindSpeed-LLM: give --fewshot-data DIR, a checkout of it or its folder "
                    "fewshot_template (docs/evaluation.md)"));
  // fewshot_template is five folders below the root.
  const fs::path folder(folder_), root = folder / "../../../../..";
  for (const fs::path& path : {folder / file, folder / "fewshot_template" / file,
                               folder / inside / file, root / inside / file})
    if (std::error_code ignored; fs::is_regular_file(path, ignored)) return path.string();
  return fail(Errc::not_found, cat(folder_, ": no ", file, ", and no ", inside, file,
                                   "; --fewshot-data names a checkout of MindSpeed-LLM "
                                   "(docs/evaluation.md)"));
}

Result<Json> Checkout::examples(const std::string& file) const {
  const auto path = find(file, cat(evaluation_folder, "eval_impl/fewshot_template/"));
  RETURN_IF_ERROR(path);
  auto out = read_json(*path);
  RETURN_IF_ERROR(out);
  if (!out->is_object())
    return fail(Errc::bad_input,
                cat(*path, ": expected an object of examples, found ", out->type_name()));
  return std::move(*out);
}

Result<std::vector<SourceString>> Checkout::strings(const std::string& file, std::string_view head,
                                                    const std::string& inside) const {
  const auto path = find(file, inside);
  RETURN_IF_ERROR(path);
  const auto source = read_file(*path, max_bytes);
  RETURN_IF_ERROR(source);
  return source_strings(*source, head, *path);
}

Result<std::vector<SourceString>> Checkout::letter_patterns(const std::string& file) const {
  return strings(file, "patterns = [", helpers);
}

Result<std::vector<SourceString>> Checkout::cmmlu_patterns() const {
  const auto path = find("cmmlu_answer_finding_patterns.json", "configs/evaluate/");
  RETURN_IF_ERROR(path);
  const auto content = read_json(*path);
  RETURN_IF_ERROR(content);
  const Json* list = content->find("patterns");
  std::vector<SourceString> out;
  if (list != nullptr && list->is_array())
    for (const Json& each : list->array())
      if (each.is_string()) out.push_back({each.string(), false});
  if (out.empty() || out.size() != list->array().size())
    return fail(Errc::bad_input, cat(*path, ": expected {\"patterns\": [texts]}"));
  return out;
}

Result<std::map<std::string, std::string>> Checkout::agieval_sentences() const {
  const auto all = strings("agi_utils.py", "template_mapping = {", helpers);
  RETURN_IF_ERROR(all);
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i + 1 < all->size(); i += 2) out[(*all)[i].text] = (*all)[i + 1].text;
  return out;
}

Result<std::string> Checkout::gsm8k_reasoning() const {
  const auto all = strings("gsm8k_utils.py", "four_shots_prompt: str = (", helpers);
  RETURN_IF_ERROR(all);
  return all->empty() ? "" : all->front().text;
}

Result<std::string> Checkout::hellaswag_prompt() const {
  const auto all = strings("hellaswag_eval.py", "self.instruction_template = (",
                           cat(evaluation_folder, "eval_impl/"));
  RETURN_IF_ERROR(all);
  return all->empty() ? "" : all->front().text;
}

}  // namespace troupe::launch::evaluation::mindspeed
