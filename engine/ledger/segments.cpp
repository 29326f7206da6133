#include "engine/ledger/segments.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::engine::ledger {
namespace {

// The number of "000007.seg", 0 for another name.
std::int64_t segment_of(const std::string& name) {
  long long number = 0;
  int used = 0;
  if (std::sscanf(name.c_str(), "%lld.seg%n", &number, &used) != 1) return 0;
  return std::cmp_equal(used, name.size()) ? std::max<std::int64_t>(0, number) : 0;
}

}  // namespace

std::string segment_name(std::int64_t segment) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%06lld.seg", static_cast<long long>(segment));
  return buffer;
}

std::string payload_hash(std::string_view payload) {
  checkpoint::RunningChecksum sum;
  sum.add(payload);
  return sum.xxh3_128();
}

Result<std::int64_t> last_segment(const OutputFolder& folder) {
  std::int64_t last = 0;
  std::error_code failed;
  std::filesystem::directory_iterator entries(folder.path(), failed);
  for (const std::filesystem::directory_iterator end; !failed && entries != end;
       entries.increment(failed))
    last = std::max(last, segment_of(entries->path().filename().string()));
  if (failed) return fail(os_error(failed.value(), cat(folder.path(), ": cannot list")));
  return last;
}

Result<> SegmentWriter::open(std::int64_t segment) {
  check(segment > segment_, "SegmentWriter: segments are written in their order");
  RETURN_IF_ERROR(sync());
  auto file = folder_.append(segment_name(segment));
  RETURN_IF_ERROR(file);
  file_ = std::move(*file);
  segment_ = segment;
  created_ = true;
  return {};
}

Result<> SegmentWriter::write(std::int64_t sequence, const Place& place, std::string_view payload,
                              const std::string& hash) {
  if (place.segment != segment_) RETURN_IF_ERROR(open(place.segment));
  std::string frame = "TSEGREC1";
  append_number(frame, static_cast<std::uint64_t>(sequence));
  append_number(frame, payload.size());
  frame += hash;
  written_ = true;
  const std::string path = folder_.path_of(segment_name(segment_));
  RETURN_IF_ERROR(write_whole(file_.get(), frame, path, OnFullDisk::wait));
  return write_whole(file_.get(), payload, path, OnFullDisk::wait);
}

Result<int> SegmentWriter::sync() {
  int syncs = 0;
  if (written_) {
    if (::fdatasync(file_.get()) != 0)
      return system_error(folder_.path_of(segment_name(segment_)), "synchronize");
    ++syncs;
  }
  if (created_) {
    RETURN_IF_ERROR(folder_.sync());
    ++syncs;
  }
  written_ = created_ = false;
  return syncs;
}

Result<> SegmentWriter::remove(std::int64_t segment) {
  const std::string path = folder_.path_of(segment_name(segment));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, "remove");
  return {};
}

}  // namespace troupe::engine::ledger
