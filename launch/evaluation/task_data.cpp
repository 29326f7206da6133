#include "launch/evaluation/task_data.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/row_reader.h"
#include "launch/evaluation/doc_functions.h"

namespace troupe::launch::evaluation {
namespace {

namespace fs = std::filesystem;

/// Names that a data set has besides the last part of its dataset_path.
std::vector<std::string> names_of_set(const TaskConfig& task) {
  std::string leaf = fs::path(task.dataset_path).filename().string();
  std::vector<std::string> out;
  const auto add = [&](std::initializer_list<const char*> names) {
    out.insert(out.end(), names.begin(), names.end());
  };
  out.push_back(leaf);
  if (leaf == "openai_humaneval") add({"HumanEval", "humaneval", "human_eval"});
  if (leaf == "ai2_arc") add({"arc", "ARC"});
  if (leaf == "ceval-exam") add({"ceval"});
  if (leaf == "wikitext_document_level") add({"wikitext"});
  if (leaf == "super_glue" && task.dataset_name == "boolq") add({"boolq"});
  if (leaf.starts_with("agieval-")) {
    out.push_back("agieval/" + leaf.substr(8));
  }
  return out;
}

std::vector<std::string> names_of_split(const std::string& split) {
  if (split == "validation") return {"validation", "val", "valid", "dev"};
  if (split == "train") return {"train", "training"};
  return {split};
}

/// Paths without extension, relative to the folder, in the order in which they are tried. "-*"
/// stands for the parts that Hugging Face numbers.
std::vector<std::string> stems_of(const TaskConfig& task, const std::string& split) {
  const std::string& part = task.dataset_name;
  std::vector<std::string> inside;  // of a folder of the data set
  for (const std::string& s : names_of_split(split)) {
    if (!part.empty())
      for (const std::string& stem :
           {cat(part, '/', s), cat(part, '/', s, "-*"), cat(s, '/', part, '_', s),
            cat(s, '/', part), cat(part, '_', s), cat(part, '-', s), cat(part, '/', part, '-', s)})
        inside.push_back(stem);
    else
      for (const std::string& stem : {s, cat(s, "-*"), cat("data/", s, "-*")})
        inside.push_back(stem);
  }
  if (!part.empty() && split == task.evaluated_split()) inside.push_back(part);
  std::vector<std::string> out;
  for (const std::string& name : names_of_set(task)) {
    for (const std::string& stem : inside) out.push_back(cat(name, '/', stem));
    for (const std::string& s : names_of_split(split))
      for (const char* joint : {"_", "-"}) out.push_back(cat(name, joint, s));
    if (split == task.evaluated_split()) out.push_back(name);
  }
  out.insert(out.end(), inside.begin(), inside.end());
  // A folder of one task: --task-data names it.
  for (const std::string& s : names_of_split(split)) {
    out.push_back(s);
    out.push_back(cat(s, "-*"));
  }
  return out;
}

/// The files of a stem, with the first extension that has any.
std::vector<std::string> files_of(const fs::path& folder, const std::string& stem) {
  constexpr std::array<const char*, 8> extensions = {".parquet",  ".jsonl",   ".json",   ".csv",
                                                     ".jsonl.gz", ".json.gz", ".csv.gz", ".arrow"};
  for (const char* extension : extensions) {
    const std::string path = (folder / (stem + extension)).string();
    if (path.find('*') != std::string::npos) {
      if (auto found = engine::data::list_data_files({path}); found && !found->empty())
        return *found;
    } else if (std::error_code ignored; fs::is_regular_file(path, ignored)) {
      return {path};
    }
  }
  return {};
}

Result<std::vector<std::string>> named_files(const TaskConfig& task, const std::string& split,
                                             const std::string& folder) {
  const Json* given = task.data_files.is_object() ? task.data_files.find(split) : &task.data_files;
  if (given == nullptr)
    return fail(Errc::usage, cat(task.where, ": data_files has no split ", quote(split)));
  std::vector<std::string> out;
  for (const Json& each : given->is_array() ? given->array() : Json::Array{*given}) {
    if (!each.is_string())
      return fail(Errc::usage, cat(task.where, ": data_files: expected names of files"));
    fs::path path = each.string();
    const fs::path beside = fs::path(task.where).parent_path() / path;
    if (path.is_relative()) path = fs::exists(beside) ? beside : fs::path(folder) / path;
    out.push_back(path.string());
  }
  return engine::data::list_data_files(out);
}

Result<> read_rows(const TaskConfig& task, const std::string& path, std::vector<Json>& out) {
  engine::data::ReadOptions options;
  // hendrycks/test has no header.
  if (task.process_docs == "mmlu")
    options.column_names = {"question", "A", "B", "C", "D", "answer"};
  auto reader = engine::data::open_rows(path, options);
  RETURN_IF_ERROR(reader);
  for (;;) {
    auto row = (*reader)->next();
    RETURN_IF_ERROR(row);
    if (!*row) return {};
    const std::string where = (*row)->where();
    if (!(*row)->value.is_object())
      return fail(Errc::bad_input,
                  cat(where, ": expected an object, found ", (*row)->value.type_name()));
    auto made = process_document(task.process_docs, std::move((*row)->value));
    if (!made) return fail(made.error().code, cat(where, ": ", made.error().what));
    out.push_back(std::move(*made));
  }
}

/// {"examples": [...]} of BIG-Bench Hard is read as a list of rows by the reader already.
Result<std::vector<Json>> rows_of_split(const TaskConfig& task, const std::string& split,
                                        const std::string& folder) {
  const auto files = split_files(task, split, folder);
  RETURN_IF_ERROR(files);
  std::vector<Json> out;
  for (const std::string& file : *files) RETURN_IF_ERROR(read_rows(task, file, out));
  if (out.empty())
    return fail(Errc::bad_input, cat(task.name, ": ", files->front(), " has no rows"));
  return out;
}

}  // namespace

Result<std::vector<std::string>> split_files(const TaskConfig& task, const std::string& split,
                                             const std::string& folder) {
  if (!task.data_files.is_null()) return named_files(task, split, folder);
  fs::path base = folder;
  const fs::path beside = fs::path(task.where).parent_path() / task.dataset_path;
  if (std::error_code ignored; !task.where.empty() && fs::exists(beside, ignored)) base = beside;
  if (std::error_code ignored; fs::is_regular_file(base, ignored)) return {{base.string()}};
  if (base.empty())
    return fail(Errc::usage, cat(task.name,
                                 ": where is the data? Give --task-data DIR "
                                 "(docs/evaluation.md says where to get ",
                                 task.dataset_path, ')'));
  std::vector<std::string> tried;
  for (const std::string& stem : stems_of(task, split)) {
    if (auto found = files_of(base, stem); !found.empty()) return found;
    tried.push_back(stem);
  }
  if (tried.size() > 8) tried.resize(8);
  return fail(
      Errc::not_found,
      cat(task.name, ": no file of the split ", split, " in ", base.string(), "; tried ",
          join(tried, ", "), ", ... with .parquet, .jsonl, .json, .csv (docs/evaluation.md)"));
}

Result<TaskRows> load_rows(const TaskConfig& task, const DataFolders& folders, bool examples) {
  TaskRows out;
  auto items = rows_of_split(task, task.evaluated_split(), folders.data);
  RETURN_IF_ERROR(items);
  out.items = std::move(*items);
  if (!examples) return out;
  const std::string& folder = folders.fewshot.empty() ? folders.data : folders.fewshot;
  std::string split = task.fewshot.split;
  if (split.empty() && task.fewshot.samples) {
    out.examples = task.fewshot.samples->array();
    return out;
  }
  if (split.empty())
    split = !task.training_split.empty()     ? task.training_split
            : !task.validation_split.empty() ? task.validation_split
                                             : task.test_split;
  if (split == task.evaluated_split()) {
    out.examples = out.items;
    return out;
  }
  auto rows = rows_of_split(task, split, folder);
  RETURN_IF_ERROR(rows);
  out.examples = std::move(*rows);
  return out;
}

}  // namespace troupe::launch::evaluation
