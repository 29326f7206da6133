#include "launch/evaluation/mindspeed/subject_data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/data/readers/row_reader.h"
#include "launch/evaluation/doc_functions.h"
#include "launch/evaluation/mindspeed/pandas_cells.h"

namespace troupe::launch::evaluation::mindspeed {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 6> question_columns = {"question", "A", "B", "C", "D", "answer"};

/// Where a task's files may lie below --task-data, and what they need beside question_columns.
struct Layout {
  std::vector<std::string> folders;
  std::vector<std::string> extensions;
  std::vector<std::string> columns;  ///< of JSON
  bool table = false;                ///< csv with question_columns
  std::string part;                  ///< in the file's name
};

const Layout* layout_of(const std::string& task) {
  static const std::map<std::string, Layout> all = [] {
    const std::vector<std::string> csv = {".csv"}, lines = {".jsonl", ".json", ".jsonl.gz"};
    std::map<std::string, Layout> out;
    out["mmlu"] = {{"mmlu/test", "mmlu/data/test", "test", ""}, csv, {}, true, ""};
    out["mmlu_ppl"] = out["mmlu"];
    out["ceval"] = {{"ceval/val", "val", ""}, csv, {}, true, ""};
    out["cmmlu"] = {{"cmmlu/test", "test", ""}, csv, {}, true, ""};
    out["boolq"] = {{"boolq", ""}, lines, {"passage", "question", "answer"}, false, "dev"};
    out["bbh"] = {{"bbh", ""}, {".json"}, {"input", "target"}, false, ""};
    out["agieval"] = {
        {"agieval", ""}, {".jsonl"}, {"passage", "question", "options", "label"}, false, ""};
    out["gsm8k"] = {{"gsm8k/test", "gsm8k", ""}, lines, {"question", "answer"}, false, ""};
    out["human_eval"] = {{"human_eval", "humaneval", ""},
                         lines,
                         {"task_id", "prompt", "test", "entry_point"},
                         false,
                         ""};
    out["hellaswag"] = {{"hellaswag", ""}, lines, {}, false, ""};
    return out;
  }();
  const auto found = all.find(task);
  return found == all.end() ? nullptr : &found->second;
}

std::string without_ends(const std::string& file, const Layout& layout) {
  std::string out = fs::path(file).filename().string();
  for (const std::string& extension : layout.extensions)
    if (out.ends_with(extension)) {
      out.resize(out.size() - extension.size());
      break;
    }
  for (const char* end : {"_test", "_val", "_dev"})
    if (out.ends_with(end)) {
      out.resize(out.size() - std::string_view(end).size());
      break;
    }
  return out;
}

/// The files of a folder that are the task's.
std::vector<std::string> files_in(const fs::path& folder, const Layout& layout) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    const auto ends = [&](const std::string& extension) { return name.ends_with(extension); };
    if (entry.is_regular_file(failed) && name.find(layout.part) != std::string::npos &&
        std::ranges::any_of(layout.extensions, ends))
      out.push_back(entry.path().string());
  }
  std::ranges::sort(out);
  return out;
}

Result<std::vector<std::string>> files_of(const std::string& task, const Layout& layout,
                                          const std::string& data) {
  if (data.empty())
    return fail(Errc::usage,
                cat(task, ": where is the data? Give --task-data DIR (docs/evaluation.md)"));
  if (std::error_code ignored; fs::is_regular_file(data, ignored)) return {{data}};
  std::vector<std::string> tried;
  for (const std::string& folder : layout.folders) {
    const fs::path path = folder.empty() ? fs::path(data) : fs::path(data) / folder;
    if (auto found = files_in(path, layout); !found.empty()) return found;
    tried.push_back(path.string());
  }
  return fail(Errc::not_found,
              cat(task, ": no file ", layout.part.empty() ? "" : cat("with ", layout.part, " and "),
                  "with the extension ", join(layout.extensions, ", "), " in ", join(tried, " or "),
                  " (docs/evaluation.md)"));
}

Result<std::vector<Json>> read_all(const std::string& path,
                                   const engine::data::ReadOptions& options,
                                   const std::vector<std::string>& columns) {
  auto reader = engine::data::open_rows(path, options);
  RETURN_IF_ERROR(reader);
  std::vector<Json> out;
  for (;;) {
    auto row = (*reader)->next();
    RETURN_IF_ERROR(row);
    if (!*row) break;
    for (const std::string& column : columns)
      if (!(*row)->value.is_object() || (*row)->value.find(column) == nullptr)
        return fail(Errc::bad_input, cat((*row)->where(), ": expected a column ", quote(column)));
    out.push_back(std::move((*row)->value));
  }
  if (out.empty()) return fail(Errc::bad_input, cat(path, ": no rows"));
  return out;
}

/// The cell of a column without inference: null is an empty one.
std::string plain(const Json& cell) {
  return cell.is_null() ? "" : cell.string();
}

/// Rows of question_columns. CMMLU has a header of other names and, as published, a first column of
/// numbers, which pandas takes as the index.
Result<std::vector<Json>> read_table(const std::string& task, const std::string& path,
                                     bool pandas_cells, std::int64_t& changed) {
  engine::data::ReadOptions options;
  std::vector<std::string> needed;
  if (task == "ceval")
    needed.assign(question_columns.begin(), question_columns.end());
  else if (task != "cmmlu")
    options.column_names.assign(question_columns.begin(), question_columns.end());
  const auto rows = read_all(path, options, needed);
  RETURN_IF_ERROR(rows);
  std::vector<Json> out(rows->size(), Json::Object{});
  for (std::size_t c = 0; c < question_columns.size(); ++c) {
    std::vector<Json> cells;
    for (const Json& row : *rows) {
      const auto& members = row.object();
      if (members.size() < question_columns.size())
        return fail(Errc::bad_input, cat(path, ": expected ", question_columns.size(),
                                         " columns, found ", members.size()));
      const Json* named = task == "ceval" ? row.find(question_columns[c]) : nullptr;
      cells.push_back(
          named != nullptr ? *named : members[members.size() - question_columns.size() + c].second);
    }
    const auto texts = pandas_column(cells);
    for (std::size_t r = 0; r < cells.size(); ++r) {
      const std::string own = plain(cells[r]);
      changed += pandas_cells && texts[r] != own ? 1 : 0;
      out[r].set(question_columns[c], pandas_cells ? texts[r] : own);
    }
  }
  return out;
}

Result<std::vector<Json>> read_hellaswag(std::vector<Json> rows, const std::string& path) {
  for (Json& row : rows) {
    if (row.find("query") != nullptr && row.find("choices") != nullptr && row.find("gold"))
      continue;
    auto made = process_document("hellaswag", std::move(row));
    if (!made) return fail(made.error().code, cat(path, ": ", made.error().what));
    row = std::move(*made);
    const Json* label = row.find("label");
    const std::string digit = label != nullptr && label->is_string() ? label->string()
                              : label != nullptr && label->is_integer()
                                  ? std::to_string(label->integer())
                                  : "";
    if (digit.size() != 1 || digit[0] < '0' || digit[0] > '3')
      return fail(Errc::bad_input, cat(path, ": label: expected 0 to 3"));
    row.set("gold", std::int64_t{digit[0] - '0'});
  }
  return rows;
}

Result<SubjectData> read_subject(const std::string& task, const Layout& layout,
                                 const std::string& file, bool dev, const SuiteSettings& settings) {
  SubjectData out{.name = without_ends(file, layout), .file = file, .rows = {}, .dev = {}};
  if (!layout.table) {
    auto rows = read_all(file, {}, layout.columns);
    RETURN_IF_ERROR(rows);
    if (task == "hellaswag") rows = read_hellaswag(std::move(*rows), file);
    RETURN_IF_ERROR(rows);
    out.rows = std::move(*rows);
    return out;
  }
  auto rows = read_table(task, file, settings.pandas_cells, out.pandas_cells);
  RETURN_IF_ERROR(rows);
  out.rows = std::move(*rows);
  if (!dev) return out;
  const fs::path beside = fs::path(file).parent_path().parent_path() / "dev" /
                          cat(out.name, task == "cmmlu" ? ".csv" : "_dev.csv");
  auto examples = read_table(task, beside.string(), settings.pandas_cells, out.pandas_cells);
  RETURN_IF_ERROR(examples);
  out.dev = std::move(*examples);
  return out;
}

}  // namespace

Result<std::vector<SubjectData>> subjects_of(const std::string& task, bool dev,
                                             const SuiteSettings& settings) {
  const Layout* layout = layout_of(task);
  if (layout == nullptr) return fail(Errc::usage, cat(task, ": no task of the suite mindspeed"));
  const auto files = files_of(task, *layout, settings.data);
  RETURN_IF_ERROR(files);
  std::vector<SubjectData> out;
  for (const std::string& file : *files) {
    auto subject = read_subject(task, *layout, file, dev, settings);
    RETURN_IF_ERROR(subject);
    out.push_back(std::move(*subject));
  }
  return out;
}

}  // namespace troupe::launch::evaluation::mindspeed
