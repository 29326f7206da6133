#include "launch/journal/line_tail.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/files/system_calls.h"
#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::journal {
namespace {

constexpr std::uint64_t block_bytes = 64 << 10;
constexpr std::size_t max_line = 1 << 20;  // a longer line is damage

// The lines of a file from the last to the first.
class LinesFromTheEnd {
 public:
  LinesFromTheEnd(int file, std::uint64_t size, std::string path)
      : file_(file), begin_(size), path_(std::move(path)) {}

  /// Makes line() the line before the present one; first the last. False at the file's beginning.
  /// What is no complete line, or longer than max_line, is skipped.
  Result<bool> previous() {
    text_.resize(line_begin_);
    for (;;) {
      const auto end = text_.rfind('\n');
      const auto before =
          end == std::string::npos || end == 0 ? std::string::npos : text_.rfind('\n', end - 1);
      const bool whole = before != std::string::npos || begin_ == 0;
      if (end != std::string::npos && whole) {
        text_.resize(end + 1);
        line_begin_ = before == std::string::npos ? 0 : before + 1;
        return true;
      }
      if (begin_ == 0) return false;
      if (text_.size() > max_line) text_.clear();
      RETURN_IF_ERROR(read_block());
    }
  }
  std::string_view line() const {
    return std::string_view(text_).substr(line_begin_, text_.size() - line_begin_ - 1);
  }
  /// The offset of the byte after the present line.
  std::uint64_t end() const { return begin_ + text_.size(); }

 private:
  Result<> read_block() {
    const std::uint64_t size = std::min(begin_, block_bytes);
    std::string block(size, '\0');
    for (std::size_t done = 0; done < size;) {
      const auto count = ::pread(file_, block.data() + done, size - done,
                                 static_cast<off_t>(begin_ - size + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error(path_, "read");
      if (count == 0) return fail(Errc::io, cat(path_, ": became shorter while it was read"));
      done += static_cast<std::size_t>(count);
    }
    text_.insert(0, block);
    begin_ -= size;
    return {};
  }

  int file_;
  std::uint64_t begin_;  ///< offset of text_ in the file
  std::string path_, text_;
  std::size_t line_begin_ = 0;
};

}  // namespace

Result<std::uint64_t> truncate_tail_after(const OutputFolder& folder, const std::string& name,
                                          std::int64_t step) {
  if (!folder.contains(name)) return 0;
  const std::string path = folder.path_of(name);
  const auto file = folder.update(name);
  RETURN_IF_ERROR(file);
  const auto size = regular_file_size(file->get(), path);
  RETURN_IF_ERROR(size);
  LinesFromTheEnd lines(file->get(), *size, path);
  std::uint64_t kept = 0;
  for (;;) {
    const auto found = lines.previous();
    RETURN_IF_ERROR(found);
    if (!*found) break;
    const auto json = parse_json(lines.line(), path);
    const auto at = json && json->is_object() ? get_integer(*json, "step", path)
                                              : Result<std::int64_t>(step + 1);
    if (!at || *at > step) continue;
    kept = lines.end();
    break;
  }
  if (kept < *size && ::ftruncate(file->get(), static_cast<off_t>(kept)) != 0)
    return system_error(path, "truncate");
  return kept;
}

}  // namespace troupe::launch::journal
