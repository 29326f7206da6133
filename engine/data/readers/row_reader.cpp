#include "engine/data/readers/row_reader.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"
#include "engine/data/readers/json_reader.h"
#include "engine/data/readers/jsonl_reader.h"
#include "engine/data/readers/parquet_library.h"

namespace troupe::engine::data {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view known = "known formats: .jsonl, .ndjson, .json, .parquet";

std::string extension(const std::string& path) {
  auto text = fs::path(path).extension().string();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return c < 128 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c); });
  return text;
}

bool is_data_file(const fs::path& path) {
  const auto ext = extension(path.string());
  return ext == ".jsonl" || ext == ".ndjson" || ext == ".json" || ext == ".parquet";
}

template <class Reader, class... Args>
Result<std::unique_ptr<RowReader>> made(Args&&... args) {
  return std::unique_ptr<RowReader>(std::make_unique<Reader>(std::forward<Args>(args)...));
}

// What the first bytes say, whatever the name.
Result<> refuse_other_formats(std::string_view text, const std::string& path) {
  if (text.starts_with("\x1f\x8b")) return fail(Errc::unsupported, cat(path, ": compressed by gzip; unpack it first (gunzip)"));
  if (text.starts_with("ARROW1"))
    return fail(Errc::unsupported, cat(path, ": an Arrow IPC file; save it as .parquet or .jsonl first; ", known));
  if (text.starts_with("PK\x03\x04")) return fail(Errc::unsupported, cat(path, ": a zip archive; unpack it first"));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return fail(Errc::unsupported, cat(path, ": UTF-16 text; save it as UTF-8"));
  return {};
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_rows(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto text = text_of(*file);
  const auto ext = extension(path);
  if (text.starts_with("PAR1")) return open_parquet(path);
  if (ext == ".parquet")
    return fail(Errc::corrupt, cat(path, ": expected a parquet file (PAR1 at its start), found ", quote(text.substr(0, 8))));
  if (auto ok = refuse_other_formats(text, path); !ok) return fail(ok.error());
  if (ext == ".jsonl" || ext == ".ndjson") return made<JsonlReader>(path, std::move(*file));
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
  if (ext != ".json" && !json) return fail(Errc::unsupported, cat(path, ": not a data file that is read here; ", known));
  auto rows = find_rows(text, path);
  if (!rows) return fail(rows.error());
  if (!*rows) return made<JsonlReader>(path, std::move(*file));
  return made<JsonReader>(path, std::move(*file), std::move(**rows));
}

Result<std::vector<std::string>> list_data_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code problem;
    if (!fs::is_directory(path, problem)) {
      if (!fs::exists(path, problem)) return fail(Errc::not_found, cat(path, ": no such data file or folder"));
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (fs::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
      if (is_data_file(entry->path())) found.push_back(entry->path().string());
    if (problem) return fail(Errc::io, cat(path, ": ", problem.message()));
    if (found.empty()) return fail(Errc::not_found, cat(path, ": a folder without data files; ", known));
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace troupe::engine::data
