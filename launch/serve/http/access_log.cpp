#include "launch/serve/http/access_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "engine/base/files/output_folder.h"
#include "engine/base/json/json.h"
#include "engine/base/log/log.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

constexpr std::size_t flush_bytes = 64 << 10, max_path = 256;

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Json size_json(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace

std::string to_line(const AccessRecord& record) {
  Json line;
  line.set("time", utc_time())
      .set("request_id", record.request_id)
      .set("client", record.client)
      .set("key", record.key.empty() ? Json() : Json(record.key))
      .set("method", record.method)
      .set("path", record.path.substr(0, max_path))
      .set("status", record.status)
      .set("request_bytes", size_json(record.request_bytes))
      .set("response_bytes", size_json(record.response_bytes))
      .set("ms", static_cast<double>(static_cast<std::int64_t>(record.seconds * 1e6)) / 1e3);
  return line.dump() + "\n";
}

Result<std::shared_ptr<AccessLog>> AccessLog::open(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  const auto parent = OutputFolder::open(folder, FileAccess::owner_only);
  if (!parent) return fail(Errc::io, cat("--access-log: ", parent.error().what));
  auto file = parent->append(whole.filename().string());
  if (!file) return fail(Errc::io, cat("--access-log: ", file.error().what));
  return std::make_shared<AccessLog>(std::move(*file));
}

AccessLog::~AccessLog() {
  flush();
}

void AccessLog::write(const AccessRecord& record) {
  const std::string line = to_line(record);
  const std::lock_guard lock(mutex_);
  pending_ += line;
  if (pending_.size() >= flush_bytes) flush_locked();
}

void AccessLog::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void AccessLog::flush_locked() {
  if (!pending_.empty() && !write_all(file_.get(), pending_) && !std::exchange(failed_, true))
    log_error(cat("the access log cannot be written: ", std::strerror(errno)));
  pending_.clear();
}

}  // namespace troupe::launch::serve::http
