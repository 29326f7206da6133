#include "engine/checkpoint/result_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/files/file_stamp.h"
#include "engine/base/files/output_folder.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/output_file.h"

namespace troupe::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view record_format = "troupe unfinished result", suffix = ".partial";
constexpr std::size_t record_bytes = std::size_t{64} << 20;

tl::unexpected<Error> foreign(const std::string& path, std::string_view what) {
  return fail(Errc::usage,
              cat(path, ": ", what,
                  "; nothing there is overwritten or kept as a part of the result. Remove it, or "
                  "choose another folder for the result"));
}

/// What lies at a path itself, links not followed; nothing if there is none.
std::optional<struct stat> found_at(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return found;
}

/// Relative names of everything below a folder but folders that contain something, sorted; links
/// are not followed.
Result<std::vector<std::string>> names_below(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed, ignored;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (at->is_symlink(ignored) || !at->is_directory(ignored) || fs::is_empty(*at, ignored))
      out.push_back(at->path().lexically_relative(folder).generic_string());
  if (failed) return fail(os_error(failed.value(), cat(folder, ": cannot list")));
  std::ranges::sort(out);
  return out;
}

bool is_record_temporary(std::string_view name) {
  return name.starts_with(cat(ResultFolder::record_file, ".tmp-"));
}

/// Whether a listed name stays inside its folder.
bool plain(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() && path.lexically_normal().generic_string() == name &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".."; });
}

/// A folder of this user that is not a link.
Result<> check_own(const std::string& folder) {
  const auto found = found_at(folder);
  if (!found) return system_error(folder, "open");
  if (S_ISLNK(found->st_mode)) return foreign(folder, "is a symbolic link");
  if (!S_ISDIR(found->st_mode)) return foreign(folder, "exists and is no folder");
  if (found->st_uid != ::geteuid())
    return foreign(folder, cat("belongs to the user ", found->st_uid));
  return {};
}

/// The path without slashes at its end; a link to an existing folder is followed, because the user
/// named it.
std::string plain_target(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code failed;
  if (fs::is_symlink(path, failed) && fs::is_directory(path, failed))
    if (const fs::path real = fs::canonical(path, failed); !failed) return real.string();
  return path;
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<Json> stamps_of(const std::vector<std::string>& paths) {
  Json::Array out;
  for (const std::string& path : paths) {
    const auto stamp = stamp_of(path);
    RETURN_IF_ERROR(stamp);
    out.push_back(Json::Object{{"path", path},
                               {"inode", cat(stamp->device, ':', stamp->inode)},
                               {"bytes", stamp->bytes},
                               {"modified", stamp->modified}});
  }
  return Json(std::move(out));
}

Result<Json> stamps_of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed, ignored;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->is_regular_file(ignored)) paths.push_back(at->path().string());
  if (failed) return fail(os_error(failed.value(), cat(folder, ": cannot list")));
  std::ranges::sort(paths);
  return stamps_of(paths);
}

/// Nothing without a file of this name. Errc::usage for a file that is no record.
Result<std::optional<ResultFolder::Record>> ResultFolder::read_record(const std::string& folder) {
  const std::string path = cat(folder, '/', record_file);
  const auto found = found_at(path);
  if (!found) return std::optional<Record>();
  if (!S_ISREG(found->st_mode) || found->st_uid != ::geteuid())
    return foreign(path, "is no regular file of this user");
  const auto text = read_file(path, record_bytes);
  RETURN_IF_ERROR(text);
  const auto json = parse_json(*text, path, {.depth = 16, .bytes = record_bytes});
  const Json* const job = json && json->is_object() ? json->find("job") : nullptr;
  const Json* const files = job ? json->find("files") : nullptr;
  const auto format = get_string(json ? *json : Json(), "format", path);
  if (!files || !files->is_array() || !format || *format != record_format)
    return foreign(path, "is no record of an unfinished command of troupe");
  Record out{*job, {}};
  for (const Json& each : files->array()) {
    const auto name = get_string(each, "path", path), sum = get_string(each, "xxh3_128", path);
    const auto bytes = get_integer(each, "bytes", path);
    if (!name || !sum || !bytes || !plain(*name))
      return foreign(path, "is no record of an unfinished command of troupe");
    out.files.push_back({*name, static_cast<std::uint64_t>(*bytes), *sum});
  }
  return std::optional(std::move(out));
}

Result<> ResultFolder::write_record() const {
  Json::Array files;
  for (const Manifest::File& file : files_)
    files.push_back(
        Json::Object{{"path", file.path}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}});
  const Json record(
      Json::Object{{"format", record_format}, {"job", job_}, {"files", std::move(files)}});
  const auto folder = OutputFolder::open(path_);
  RETURN_IF_ERROR(folder);
  return folder->replace(std::string(record_file), record.dump(1) + "\n");
}

Result<> ResultFolder::remove_record(const std::string& folder) const {
  const std::string path = cat(folder, '/', record_file);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, "remove");
  return sync_directory(folder);
}

const Manifest::File* ResultFolder::find(std::string_view name) const {
  const auto found = std::ranges::find(files_, name, &Manifest::File::path);
  return found == files_.end() ? nullptr : &*found;
}

/// Keeps the listed files that have their checksums; the others are written again.
Result<> ResultFolder::keep_complete(const std::vector<Manifest::File>& listed) {
  for (const Manifest::File& file : listed) {
    const std::string path = cat(path_, '/', file.path);
    const auto found = found_at(path);
    if (!found) continue;  // killed before it got its name
    const auto measured =
        S_ISREG(found->st_mode) ? measure_file(path) : Result<Manifest::File>(fail(Errc::io, ""));
    if (measured && measured->bytes == file.bytes && measured->xxh3_128 == file.xxh3_128)
      files_.push_back(file);
    else if (!replaces())
      return foreign(path, "was changed after it was written");
  }
  return {};
}

/// Removes what is not complete.
Result<> ResultFolder::sweep() const {
  std::error_code failed;
  if (!replaces()) {
    for (fs::directory_iterator at(path_, failed), end; !failed && at != end; at.increment(failed))
      if (is_record_temporary(at->path().filename().string())) fs::remove(at->path(), failed);
  }
  for (bool more = replaces(); more;) {  // a folder may be empty now
    const auto names = names_below(path_);
    RETURN_IF_ERROR(names);
    more = false;
    for (const std::string& name : *names)
      if (!failed && name != record_file && !find(name))
        more = fs::remove(cat(path_, '/', name), failed) || more;
  }
  if (failed) return fail(os_error(failed.value(), cat(path_, ": cannot remove leftovers")));
  return {};
}

/// Locks path_: the kernel releases the lock when the process ends.
Result<> ResultFolder::lock() {
  lock_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock_.open()) return system_error(path_, "open");
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return fail(Errc::usage, cat(path_,
                               ": another process is writing there; wait for its end, or "
                               "choose another folder for the result"));
}

/// Reads the record of path_, which is locked, and removes what is not complete.
Result<> ResultFolder::resume() {
  auto record = read_record(path_);
  RETURN_IF_ERROR(record);
  if (!*record && replaces()) {
    const auto names = names_below(path_);
    RETURN_IF_ERROR(names);
    for (const std::string& name : *names)
      if (!is_record_temporary(name))
        return foreign(cat(path_, '/', name),
                       "exists, and there is no record of an unfinished command");
  }
  const bool same = *record && (*record)->job.dump() == job_.dump();
  if (same || (*record && !replaces())) RETURN_IF_ERROR(keep_complete((*record)->files));
  if (!same && !replaces())
    for (const Manifest::File& file : std::exchange(files_, {}))
      if (::unlink(cat(path_, '/', file.path).c_str()) != 0)
        return system_error(cat(path_, '/', file.path), "remove");
  RETURN_IF_ERROR(sweep());
  RETURN_IF_ERROR(sync_directory(path_));
  begun_ = true;
  return write_record();
}

/// A folder of the final name that the same job has completed, without having removed its record.
Result<> ResultFolder::finish_published() {
  const auto names = names_below(target_);
  RETURN_IF_ERROR(names);
  if (names->empty()) return {};
  RETURN_IF_ERROR(check_own(target_));
  const auto record = read_record(target_);
  RETURN_IF_ERROR(record);
  const std::string first = cat(target_, '/', names->front());
  if (!*record || (*record)->job.dump() != job_.dump()) return foreign(first, "exists");
  path_ = target_;
  RETURN_IF_ERROR(keep_complete((*record)->files));
  for (const std::string& name : *names)
    if (name != record_file && !find(name)) return foreign(cat(target_, '/', name), "exists");
  if (files_.size() != (*record)->files.size()) return foreign(first, "exists");
  published_ = true;
  return remove_record(target_);
}

Result<ResultFolder> ResultFolder::create(const std::string& path, const Json& job) {
  const std::string target = plain_target(path);
  ResultFolder out(target, cat(target, suffix), job);
  if (const auto found = found_at(target)) {
    if (!S_ISDIR(found->st_mode)) return foreign(target, "exists and is no folder");
    RETURN_IF_ERROR(out.finish_published());
    if (out.published_) return out;
  }
  RETURN_IF_ERROR(create_directory_durably(parent_of(target)));
  if (::mkdir(out.path_.c_str(), 0777) != 0 && errno != EEXIST)
    return system_error(out.path_, "create");
  RETURN_IF_ERROR(check_own(out.path_));
  RETURN_IF_ERROR(out.lock());
  RETURN_IF_ERROR(out.resume());
  return out;
}

Result<ResultFolder> ResultFolder::within(const std::string& path, const Json& job) {
  const std::string target = plain_target(path);
  ResultFolder out(target, target, job);
  RETURN_IF_ERROR(out.lock());
  RETURN_IF_ERROR(out.resume());
  return out;
}

ResultFolder::~ResultFolder() {
  if (!lock_.open() || !begun_ || published_ || !files_.empty()) return;
  std::error_code ignored;
  if (replaces())
    fs::remove_all(path_, ignored);
  else
    fs::remove(cat(path_, '/', record_file), ignored);
}

Result<> ResultFolder::check_free(const std::string& name) const {
  const std::string path = cat(path_, '/', name);
  if (find(name) || !found_at(path)) return {};
  return foreign(path, "exists");
}

/// Adds a file to the record, before it gets its name.
Result<> ResultFolder::list(const std::string& name, const std::string& measured) {
  auto file = measure_file(measured);
  RETURN_IF_ERROR(file);
  file->path = name;
  files_.push_back(std::move(*file));
  return {};
}

Result<bool> ResultFolder::add(const std::string& name,
                               const std::function<Result<>(const std::string& path)>& write) {
  if (find(name)) return false;
  RETURN_IF_ERROR(check_free(name));
  const std::string path = cat(path_, '/', name), partial = cat(path, suffix);
  RETURN_IF_ERROR(create_directory_durably(parent_of(path)));
  if (::unlink(partial.c_str()) != 0 && errno != ENOENT) return system_error(partial, "replace");
  RETURN_IF_ERROR(write(partial));
  RETURN_IF_ERROR(list(name, partial));
  RETURN_IF_ERROR(write_record());
  if (found_at(path)) return foreign(path, "exists");
  if (::rename(partial.c_str(), path.c_str()) != 0) return system_error(path, "rename to it");
  RETURN_IF_ERROR(sync_directory(parent_of(path)));
  return true;
}

Result<bool> ResultFolder::add(const std::string& name, std::string_view content) {
  return add(name, [&](const std::string& path) { return write_new_file(path, content); });
}

Result<> ResultFolder::add_written() {
  const auto names = names_below(path_);
  RETURN_IF_ERROR(names);
  for (const std::string& name : *names)
    if (name != record_file && !find(name)) RETURN_IF_ERROR(list(name, cat(path_, '/', name)));
  return write_record();
}

Result<> ResultFolder::publish() {
  if (published_) return {};
  if (!replaces()) {
    published_ = true;
    return remove_record(path_);
  }
  const auto names = names_below(path_);
  RETURN_IF_ERROR(names);
  for (const std::string& name : *names)
    if (name != record_file) RETURN_IF_ERROR(check_free(name));
  RETURN_IF_ERROR(sync_directory(path_));
  if (::rename(path_.c_str(), target_.c_str()) != 0) return system_error(target_, "rename to it");
  published_ = true;
  RETURN_IF_ERROR(sync_directory(parent_of(target_)));
  return remove_record(target_);
}

}  // namespace troupe::engine::checkpoint
