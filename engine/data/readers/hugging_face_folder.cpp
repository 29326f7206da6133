#include "engine/data/readers/hugging_face_folder.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/json.h"
#include "engine/base/text.h"

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
  if (problem) return fail(Errc::io, cat(folder, ": ", problem.message()));
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

}  // namespace troupe::engine::data
