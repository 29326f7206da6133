// AccessLog: one JSON object per request.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe::launch::serve::http {

struct AccessRecord {
  std::string request_id, client, key;
  std::string method, path;  ///< the path without its query, cut at 256 bytes
  int status = 0;            ///< 499: the client disconnected before the answer was complete
  std::size_t request_bytes = 0, response_bytes = 0;  ///< of the bodies
  double seconds = 0;  ///< from the first byte of the request to the last of the response
};

/// Appends lines to a file. Lines are buffered and written every quarter of a second, or at
/// 64 KiB; a failing write is reported once and its lines are lost.
class AccessLog {
 public:
  /// Opens or creates the file with mode 0600. Errc::io, also if it is not a regular file: a
  /// symbolic link is not followed, and a FIFO would wait for its reader.
  static Result<std::shared_ptr<AccessLog>> open(const std::string& path);
  explicit AccessLog(Descriptor file) : file_(std::move(file)) {}
  ~AccessLog();

  void write(const AccessRecord& record);
  void flush();

 private:
  void flush_locked();
  std::mutex mutex_;
  Descriptor file_;
  std::string pending_;
  bool failed_ = false;
};

/// {"time":"2026-11-24T22:01:54.123Z","request_id":...,"client":...,"status":200,...}
std::string to_line(const AccessRecord& record);

}  // namespace troupe::launch::serve::http
