#include "engine/checkpoint/fingerprint_cache.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "engine/base/files/file.h"
#include "engine/base/json/json.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::engine::checkpoint {
namespace {

constexpr std::size_t cache_bytes = 4u << 20, max_entries = 4096;
constexpr std::int64_t minimum_age_ns = 2'000'000'000;

bool is_old_enough(const FileStamp& stamp) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return std::max(stamp.modified, stamp.changed) + minimum_age_ns < now;
}

std::optional<FileStamp> read_stamp(const Json& entry) {
  const auto device = get_integer(entry, "device", ""), inode = get_integer(entry, "inode", ""),
             bytes = get_integer(entry, "bytes", ""), modified = get_integer(entry, "mtime_ns", ""),
             changed = get_integer(entry, "ctime_ns", "");
  if (!device || !inode || !bytes || !modified || !changed) return std::nullopt;
  return FileStamp{static_cast<std::uint64_t>(*device), static_cast<std::uint64_t>(*inode),
                   static_cast<std::uint64_t>(*bytes), *modified, *changed};
}

std::string sum_of(const Json& files) {
  RunningChecksum sum;
  sum.add(files.dump());
  return sum.xxh3_128();
}

}  // namespace

FingerprintCache::FingerprintCache(std::string path) : path_(std::move(path)) {
  const auto json = read_json(path_, {.depth = 4, .bytes = cache_bytes});
  // A damaged checksum would be that of another file, so that a run could not resume.
  const Json* files = json && json->is_object() ? json->find("files") : nullptr;
  const Json* sum_of_files = files ? json->find("xxh3_128") : nullptr;
  if (!sum_of_files || !files->is_array() || *sum_of_files != Json(sum_of(*files))) return;
  for (const Json& entry : files->array()) {
    const auto stamp = read_stamp(entry);
    const auto sum = get_string(entry, "xxh3_128", "");
    if (stamp && sum) entries_.push_back({*stamp, *sum, true});
  }
}

Result<Manifest::File> FingerprintCache::measure(const std::string& path) {
  const auto stamp = stamp_of(path);
  RETURN_IF_ERROR(stamp);
  const auto known = std::ranges::find(entries_, *stamp, &Entry::stamp);
  if (known != entries_.end()) return Manifest::File{path, stamp->bytes, known->xxh3_128};
  auto file = measure_file(path);
  RETURN_IF_ERROR(file);
  const auto after = stamp_of(path);
  if (!after || *after != *stamp) return file;
  entries_.push_back({*stamp, file->xxh3_128, is_old_enough(*stamp)});
  changed_ = changed_ || entries_.back().may_save;
  return file;
}

Result<> FingerprintCache::save() const {
  if (!changed_) return {};
  Json::Array list;
  const std::size_t first = entries_.size() - std::min(entries_.size(), max_entries);
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const FileStamp& stamp = entries_[i].stamp;
    if (!entries_[i].may_save) continue;
    list.push_back(Json::Object{{"device", stamp.device},
                                {"inode", stamp.inode},
                                {"bytes", stamp.bytes},
                                {"mtime_ns", stamp.modified},
                                {"ctime_ns", stamp.changed},
                                {"xxh3_128", entries_[i].xxh3_128}});
  }
  const Json files(std::move(list));
  const Json whole(Json::Object{{"xxh3_128", sum_of(files)}, {"files", files}});
  return write_file_durably(path_, whole.dump(1) + "\n");
}

}  // namespace troupe::engine::checkpoint
