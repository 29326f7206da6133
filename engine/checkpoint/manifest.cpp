#include "engine/checkpoint/manifest.h"

#include <xxhash.h>
#include <algorithm>
#include <filesystem>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/files/file_parts.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::engine::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t version = 1;
constexpr std::string_view format = "troupe training checkpoint";
constexpr std::size_t manifest_bytes = 16u << 20;

// Whether the path stays inside the folder: one or two plain names.
bool plain_path(std::string_view path) {
  if (path.empty() || path.size() > 512 || path.front() == '/' ||
      std::count(path.begin(), path.end(), '/') > 1)
    return false;
  const auto slash = path.find('/');
  const auto plain = [](std::string_view name) {
    return !name.empty() && name.front() != '.' &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return c > 0x20 && c < 0x7F && c != '\\'; });
  };
  return slash == std::string_view::npos
             ? plain(path)
             : plain(path.substr(0, slash)) && plain(path.substr(slash + 1));
}

Result<std::vector<std::string>> files_of(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (!at->is_directory())
      out.push_back(fs::path(at->path()).lexically_relative(folder).generic_string());
  if (failed) return fail(os_error(failed.value(), cat(folder, ": cannot list")));
  std::sort(out.begin(), out.end());
  return out;
}

Result<Manifest> parse(const std::string& text, const std::string& where) {
  const auto json = parse_json(text, where, {.depth = 8, .bytes = manifest_bytes});
  if (!json) return fail(Errc::corrupt, json.error().what);
  const auto kind = get_string(*json, "format", where);
  const auto number = get_integer(*json, "version", where),
             step = get_integer(*json, "step", where);
  if (!kind || *kind != format)
    return fail(Errc::corrupt, cat(where, ": expected \"format\": \"", format, "\""));
  if (!number || !step) return fail(Errc::corrupt, (number ? step : number).error().what);
  if (*number != version)
    return fail(Errc::unsupported, cat(where, ": expected version ", version, ", found ", *number));
  Manifest manifest{*step, {}};
  const Json* files = json->find("files");
  if (!files || !files->is_array())
    return fail(Errc::corrupt, cat(where, ": \"files\" must be a list"));
  for (const Json& entry : files->array()) {
    const auto path = get_string(entry, "path", where), sum = get_string(entry, "xxh3_128", where);
    const auto bytes = get_integer(entry, "bytes", where);
    if (!path || !sum || !bytes)
      return fail(Errc::corrupt, (!path ? path.error() : !sum ? sum.error() : bytes.error()).what);
    if (!plain_path(*path))
      return fail(Errc::corrupt, cat(where, ": ", quote(*path), " is not a file of this folder"));
    manifest.files.push_back({*path, static_cast<std::uint64_t>(*bytes), *sum});
  }
  // The text must be exactly what to_text() writes: changed spaces or added keys are damage too.
  if (to_text(manifest) != text)
    return fail(Errc::corrupt, cat(where, ": not as troupe writes it"));
  return manifest;
}

using Measure = std::function<Result<Manifest::File>(const std::string&)>;

Result<> compare(const Manifest::File& expected, const std::string& folder,
                 const Measure& measure = measure_file) {
  const std::string path = cat(folder, "/", expected.path);
  const std::string by = cat(" (by ", folder, "/", manifest_file, ")");  // may be what is damaged
  const auto found = measure(path);
  if (!found) return fail(Errc::corrupt, cat(found.error().what, by));
  if (found->bytes != expected.bytes)
    return fail(Errc::corrupt,
                cat(path, ": expected ", expected.bytes, " bytes, found ", found->bytes, by));
  if (found->xxh3_128 != expected.xxh3_128)
    return fail(Errc::corrupt, cat(path, ": expected checksum ", quote(expected.xxh3_128),
                                   ", found ", quote(found->xxh3_128), by));
  return {};
}

}  // namespace

// In parts: mapped, the file would count as memory of this process.
Result<Manifest::File> measure_file(const std::string& path) {
  RunningChecksum sum;
  const auto bytes = visit_file(path, [&](std::span<const std::byte> part) { sum.add(part); });
  RETURN_IF_ERROR(bytes);
  return Manifest::File{path, *bytes, sum.xxh3_128()};
}

Result<Manifest> measure_checkpoint(const std::string& folder, std::int64_t step) {
  const auto paths = files_of(folder);
  RETURN_IF_ERROR(paths);
  Manifest manifest{step, {}};
  for (const auto& path : *paths) {
    if (path == manifest_file) continue;
    check(plain_path(path), "measure_checkpoint: a file name that a manifest cannot hold");
    auto file = measure_file(cat(folder, "/", path));
    RETURN_IF_ERROR(file);
    file->path = path;
    manifest.files.push_back(std::move(*file));
  }
  return manifest;
}

std::string to_text(const Manifest& manifest) {
  Json::Array files;
  for (const auto& file : manifest.files)
    files.push_back(
        Json::Object{{"path", file.path}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
  return Json(Json::Object{{"format", format},
                           {"version", version},
                           {"step", manifest.step},
                           {"files", std::move(files)}})
             .dump(1) +
         "\n";
}

Result<Manifest> verify_checkpoint(const std::string& folder) {
  const std::string where = cat(folder, "/", manifest_file);
  const auto text = read_file(where, manifest_bytes);
  RETURN_IF_ERROR(text);
  auto manifest = parse(*text, where);
  if (!manifest) return manifest;
  for (const auto& file : manifest->files) RETURN_IF_ERROR(compare(file, folder));
  const auto present = files_of(folder);
  RETURN_IF_ERROR(present);
  for (const auto& path : *present) {
    const bool listed = std::any_of(manifest->files.begin(), manifest->files.end(),
                                    [&](const auto& file) { return file.path == path; });
    // Other files are harmless; unverified weights or settings would be loaded.
    if (!listed && path != manifest_file &&
        (path.find(".safetensors") != std::string::npos || path.ends_with(".json")))
      return fail(Errc::corrupt, cat(folder, "/", quote(path), ": not listed in ", where));
  }
  return manifest;
}

Result<> verify_model_files(const std::string& folder, const Measure& measure) {
  const std::string where = cat(folder, "/", manifest_file);
  std::error_code ignored;
  if (!fs::exists(where, ignored)) return {};
  const auto text = read_file(where, manifest_bytes);
  RETURN_IF_ERROR(text);
  const auto manifest = parse(*text, where);
  RETURN_IF_ERROR(manifest);
  const auto changed = [&](const std::string& what) {
    return fail(Errc::corrupt,
                cat(what,
                    "; the checkpoint was damaged or changed after it was saved. Restore it, "
                    "or remove ",
                    folder, "/training to use the files as they are"));
  };
  for (const auto& file : manifest->files) {
    if (file.path.find('/') != std::string::npos) continue;
    if (const auto same = compare(file, folder, measure); !same) return changed(same.error().what);
  }
  const auto present = files_of(folder);
  RETURN_IF_ERROR(present);
  for (const auto& path : *present)
    if (path.ends_with(".safetensors") && path.find('/') == std::string::npos &&
        std::ranges::find(manifest->files, path, &Manifest::File::path) == manifest->files.end())
      return changed(cat(folder, "/", quote(path), ": not listed in ", where));
  return {};
}

std::uint64_t checksum(std::span<const float> values) {
  return XXH3_64bits(values.data(), values.size_bytes());
}

}  // namespace troupe::engine::checkpoint
