#include "engine/data/readers/file_list.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/base/text.h"
#include "engine/data/readers/hugging_face_folder.h"

namespace troupe::engine::data {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_pattern_files = 100000, deepest = 32;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

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
  if (problem) return fail(Errc::io, cat(folder, ": ", problem.message()));
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
  if (lower(name.extension().string()) == ".gz") name = name.stem();
  const auto extension = lower(name.extension().string());
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
