#include "engine/data/readers/text_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/text.h"
#include "engine/data/readers/gzip_feed.h"

namespace troupe::engine::data {
namespace {

constexpr std::size_t chunk = 256u << 10;

class FileFeed : public ByteFeed {
 public:
  FileFeed(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  FileFeed(const FileFeed&) = delete;
  ~FileFeed() override { ::close(fd_); }

  Result<std::size_t> read(char* to, std::size_t size) override {
    for (;;) {
      const auto count = ::read(fd_, to, size);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR)
        return fail(Errc::io, cat(path_, ": cannot read: ", std::strerror(errno)));
    }
  }
  Result<> rewind() override {
    if (::lseek(fd_, 0, SEEK_SET) < 0)
      return fail(Errc::io,
                  cat(path_, ": cannot go back to its beginning: ", std::strerror(errno)));
    return {};
  }

 private:
  std::string path_;
  int fd_;
};

Result<std::unique_ptr<ByteFeed>> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot open for reading: ", std::strerror(errno)));
  auto file = std::make_unique<FileFeed>(path, fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(Errc::io, cat(path, ": expected a regular file"));
  return file;
}

}  // namespace

bool is_gzip(std::string_view first_bytes) {
  return first_bytes.starts_with("\x1f\x8b");
}

Result<TextStream> TextStream::open(const std::string& path) {
  auto file = open_file(path);
  RETURN_IF_ERROR(file);
  char magic[2] = {};
  const auto count = (*file)->read(magic, sizeof magic);
  RETURN_IF_ERROR(count);
  RETURN_IF_ERROR((*file)->rewind());
  const bool packed = is_gzip({magic, *count});
  TextStream stream(packed ? make_gzip_feed(path, std::move(*file)) : std::move(*file));
  RETURN_IF_ERROR(stream.rewind());
  return stream;
}

Result<std::string_view> TextStream::peek(std::size_t bytes) {
  while (!ended_ && window_.size() - at_ < bytes) {
    window_.erase(0, at_);
    at_ = 0;
    const auto before = window_.size();
    window_.resize(
        before +
        std::max(chunk, before));  // doubling: a long row is copied a few times, not once a chunk
    std::size_t filled = before;
    while (!ended_ && filled < window_.size()) {
      const auto count = feed_->read(window_.data() + filled, window_.size() - filled);
      if (!count) return window_.resize(filled), fail(count.error());
      ended_ = *count == 0, filled += *count;
    }
    window_.resize(filled);
  }
  return std::string_view(window_).substr(at_);
}

Result<> TextStream::rewind() {
  window_.clear(), at_ = 0, ended_ = false;
  RETURN_IF_ERROR(feed_->rewind());
  const auto first = peek(3);
  RETURN_IF_ERROR(first);
  if (first->starts_with("\xEF\xBB\xBF")) skip(3);
  return {};
}

Result<std::string> unpack(const std::string& path, std::size_t limit) {
  auto stream = TextStream::open(path);
  RETURN_IF_ERROR(stream);
  std::string out;
  for (;;) {
    const auto text = stream->peek(1);
    RETURN_IF_ERROR(text);
    if (text->empty()) return out;
    if (out.size() + text->size() > limit) break;
    out += *text;
    stream->skip(text->size());
  }
  return fail(Errc::unsupported, cat(path, ": a compressed list of rows of more than ", limit >> 20,
                                     " MiB; unpack it first (gunzip), or compress lines of rows "
                                     "(.jsonl.gz), which are read piece by piece"));
}

}  // namespace troupe::engine::data
