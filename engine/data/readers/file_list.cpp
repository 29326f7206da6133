#include "engine/data/readers/file_list.h"

#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/files/environment_error.h"
#include "engine/base/json/json.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/data/readers/packed_reader.h"

namespace troupe::engine::data {

namespace {

namespace fs = std::filesystem;
using Files = std::optional<std::vector<std::string>>;

bool has(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(folder) / name, ignored);
}

tl::unexpected<Error> choose_split(const std::string& folder,
                                   const std::vector<std::string>& splits) {
  return fail(Errc::usage, cat(folder, ": a data set of the splits ", join(splits, ", "),
                               ", none of which is train; name one of them"));
}

// One split in the form of save_to_disk.
Result<Files> saved_files(const std::string& folder) {
  const auto path = (fs::path(folder) / "state.json").string();
  const auto state = read_json(path, {.depth = 16, .bytes = 16u << 20});
  RETURN_IF_ERROR(state);
  const auto* indices = state->find("_indices_data_files");
  if (indices && indices->is_array() && !indices->array().empty())
    return fail(Errc::unsupported, cat(path,
                                       ": the rows are picked by an index (_indices_data_files); "
                                       "call flatten_indices() and save again"));
  const auto* list = state->find("_data_files");
  if (!list || !list->is_array())
    return fail(Errc::corrupt, cat(path, ": expected a list of files under \"_data_files\", found ",
                                   list ? list->type_name() : "nothing"));
  std::vector<std::string> out;
  for (const auto& item : list->array()) {
    const auto* name = item.find("filename");
    // Only files of this folder are allowed: a name must not refer outside it.
    if (!name || !name->is_string() ||
        fs::path(name->string()).filename() != fs::path(name->string()))
      return fail(
          Errc::corrupt,
          cat(path, ": expected {\"filename\": a file beside it} in \"_data_files\", found ",
              quote(item.dump())));
    out.push_back((fs::path(folder) / name->string()).string());
  }
  if (out.empty()) return fail(Errc::corrupt, cat(path, ": names no file under \"_data_files\""));
  return Files(std::move(out));
}

Result<Files> of_train(const std::string& folder) {
  const auto path = (fs::path(folder) / "dataset_dict.json").string();
  const auto dict = read_json(path, {.depth = 16, .bytes = 1u << 20});
  RETURN_IF_ERROR(dict);
  std::vector<std::string> splits;
  const auto* list = dict->find("splits");
  for (const auto& item : list && list->is_array() ? list->array() : Json::Array{})
    if (item.is_string()) splits.push_back(item.string());
  if (splits.empty())
    return fail(Errc::corrupt, cat(path, ": expected a list of names under \"splits\""));
  const bool train = std::find(splits.begin(), splits.end(), "train") != splits.end();
  if (!train && splits.size() > 1) return choose_split(folder, splits);
  return saved_files((fs::path(folder) / (train ? "train" : splits[0])).string());
}

// The cache keeps every split in one folder: NAME-SPLIT.arrow, NAME-SPLIT-00000-of-00002.arrow.
Result<Files> cached_files(const std::string& folder) {
  const auto info = read_json((fs::path(folder) / "dataset_info.json").string(),
                              {.depth = 64, .bytes = 16u << 20});
  RETURN_IF_ERROR(info);
  const auto* splits = info->find("splits");
  if (!splits || !splits->is_object() || splits->object().empty()) return Files();
  std::vector<std::string> names, out;
  for (const auto& [name, value] : splits->object()) names.push_back(name);
  const bool train = std::find(names.begin(), names.end(), "train") != names.end();
  if (!train && names.size() > 1) return choose_split(folder, names);
  const std::string mark = cat("-", train ? std::string("train") : names[0]);
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const auto stem = entry->path().stem().string();
    const auto shard = stem.find(cat(mark, "-0"));
    if (entry->path().extension() == ".arrow" &&
        (stem.ends_with(mark) || shard != std::string::npos))
      out.push_back(entry->path().string());
  }
  if (problem) return fail(os_error(problem.value(), folder));
  if (out.empty()) return Files();
  std::sort(out.begin(), out.end());
  return Files(std::move(out));
}

}  // namespace

Result<std::optional<std::vector<std::string>>> hugging_face_files(const std::string& folder) {
  if (has(folder, "state.json")) return saved_files(folder);
  if (has(folder, "dataset_dict.json")) return of_train(folder);
  if (has(folder, "dataset_info.json")) return cached_files(folder);
  return std::nullopt;
}

namespace {

constexpr std::size_t max_pattern_files = 100000, deepest = 32;

// Metadata files are not data files.
bool is_data_file(const fs::path& path) {
  constexpr std::array about = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json",
                                "state.json"};
  constexpr std::array formats = {".jsonl", ".ndjson", ".json",    ".csv",
                                  ".tsv",   ".txt",    ".parquet", ".arrow"};
  const auto name = path.filename().string();
  return !name.starts_with('.') && std::find(about.begin(), about.end(), name) == about.end() &&
         std::find(formats.begin(), formats.end(), data_format(name)) != formats.end();
}

Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::error_code problem;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem))
    if (is_data_file(entry->path())) found.push_back(entry->path().string());
  if (problem) return fail(os_error(problem.value(), folder));
  std::sort(found.begin(), found.end());
  if (found.empty())
    return fail(Errc::not_found,
                cat(folder, ": a folder without data files; known formats: ", known_formats));
  return found;
}

bool is_pattern(const std::string& path) {
  return path.find_first_of("*?[") != std::string::npos;
}

// Files below `folder` that match the parts of a pattern from `part` on.
class Search {
 public:
  explicit Search(const std::string& pattern) {
    for (const auto& part : fs::path(pattern)) parts_.push_back(part.string());
  }
  Result<std::vector<std::string>> run() {
    RETURN_IF_ERROR(below(parts_.front() == "/" ? fs::path("/") : fs::path(),
                          parts_.front() == "/" ? 1 : 0, 0));
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()),
                 found_.end());  // ** meets a file on several ways
    return std::move(found_);
  }

 private:
  Result<> below(const fs::path& folder, std::size_t part, std::size_t depth) {
    if (part == parts_.size() || depth > deepest) return {};
    const bool last = part + 1 == parts_.size(), any_folders = parts_[part] == "**";
    if (!is_pattern(parts_[part]))
      return last ? take(folder / parts_[part]) : below(folder / parts_[part], part + 1, depth);
    if (any_folders) RETURN_IF_ERROR(below(folder, part + 1, depth));
    std::error_code problem;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, problem), end;
         !problem && entry != end; entry.increment(problem)) {
      const auto name = entry->path().filename();
      if (name.string().starts_with('.')) continue;
      const bool is_folder =
          entry->is_directory(problem) && !(any_folders && entry->is_symlink(problem));
      const bool fits = any_folders || fnmatch(parts_[part].c_str(), name.c_str(), 0) == 0;
      Result<> ok;
      if (fits && is_folder && (any_folders || !last))
        ok = below(folder / name, any_folders ? part : part + 1, depth + 1);
      if (fits && !is_folder && last) ok = take(folder / name);
      if (!ok) return ok;
    }
    return {};  // a folder that is not there has nothing that fits
  }

  Result<> take(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored) && is_data_file(path)) found_.push_back(path.string());
    if (found_.size() <= max_pattern_files) return {};
    return fail(Errc::usage, cat("more than ", max_pattern_files, " files fit the pattern ",
                                 quote(join(parts_, "/"))));
  }

  std::vector<std::string> parts_;
  std::vector<std::string> found_;
};

Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code problem;
  if (fs::is_directory(path, problem)) {
    auto set = hugging_face_files(path);
    RETURN_IF_ERROR(set);
    return *set ? Result<std::vector<std::string>>(std::move(**set)) : files_in(path);
  }
  if (fs::exists(path, problem)) return std::vector<std::string>{path};
  if (const auto packed = find_packed_files(path)) return std::vector<std::string>{*packed};
  if (!is_pattern(path)) return fail(Errc::not_found, cat(path, ": no such data file or folder"));
  auto found = Search(path).run();
  if (found && found->empty())
    return fail(Errc::not_found,
                cat(path, ": no data file fits this pattern; known formats: ", known_formats));
  return found;
}

}  // namespace

std::string data_format(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (ascii_lower(name.extension().string()) == ".gz") name = name.stem();
  const auto extension = ascii_lower(name.extension().string());
  constexpr std::array arrow = {".arrows", ".ipc", ".feather", ".arrow_file", ".stream"};
  return std::find(arrow.begin(), arrow.end(), extension) != arrow.end() ? ".arrow" : extension;
}

Result<std::vector<std::string>> list_data_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    auto found = files_of(path);
    RETURN_IF_ERROR(found);
    files.insert(files.end(), found->begin(), found->end());
  }
  return files;
}

}  // namespace troupe::engine::data
