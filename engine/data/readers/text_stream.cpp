#include "engine/data/readers/text_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/errors/check.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/cancellation.h"

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

constexpr int gzip_only = 15 + 16;  // zlib's way to say: a window of 32 KiB, and a gzip header

// The content of a gzip file, member after member (RFC 1952).
class GzipFeed : public ByteFeed {
 public:
  GzipFeed(std::string path, std::unique_ptr<ByteFeed> file)
      : path_(std::move(path)), file_(std::move(file)), input_(64u << 10, '\0') {
    check(inflateInit2(&state_, gzip_only) == Z_OK, "zlib cannot begin");
  }
  GzipFeed(const GzipFeed&) = delete;
  ~GzipFeed() override { inflateEnd(&state_); }

  Result<std::size_t> read(char* to, std::size_t size) override {
    const auto wanted = static_cast<uInt>(std::min<std::size_t>(size, 1u << 20));
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = wanted;
    while (state_.avail_out == wanted && !ended_) {
      RETURN_IF_ERROR(refill());
      RETURN_IF_ERROR(inside_ ? Result<>() : begin_member());
      RETURN_IF_ERROR(inside_ ? step() : Result<>());
    }
    out_ += wanted - state_.avail_out;
    if (out_ > expansion_free && out_ / expansion_limit > in_)
      return damaged(
          cat(in_, " bytes that become more than ", out_, ", beyond ", expansion_limit,
              " to 1, which rows of data are not; unpack it first (gunzip) if that is meant"));
    return wanted - state_.avail_out;
  }

  Result<> rewind() override {
    RETURN_IF_ERROR(file_->rewind());
    inflateReset(&state_);
    state_.avail_in = 0;
    in_ = 0;
    out_ = 0;
    members_ = 0;
    inside_ = false;
    ended_ = false;
    return {};
  }

 private:
  tl::unexpected<Error> damaged(const std::string& found) const {
    return fail(Errc::corrupt, cat(path_, ": expected text compressed by gzip, found ", found));
  }

  Result<> refill() {
    if (state_.avail_in > 0) return {};
    const auto count = file_->read(input_.data(), input_.size());
    RETURN_IF_ERROR(count);
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(*count);
    in_ += *count;
    return {};
  }

  // Members are concatenated; zeros after the last one are padding.
  Result<> begin_member() {
    while (members_ > 0 && state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    RETURN_IF_ERROR(refill());
    ended_ = state_.avail_in == 0;
    inside_ = !ended_ && (members_ == 0 || *state_.next_in != 0);
    if (inside_ && members_++ > 0) inflateReset(&state_);
    return {};
  }

  Result<> step() {
    const int code = inflate(&state_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      inside_ = false;
    } else if (code == Z_BUF_ERROR && state_.avail_in == 0) {
      return damaged("its end in the middle: the file is truncated");
    } else if (code != Z_OK) {
      return damaged(cat("damage near byte ", in_ - state_.avail_in, " (",
                         state_.msg ? state_.msg : "zlib gives no reason", ")"));
    }
    return {};
  }

  std::string path_;
  std::unique_ptr<ByteFeed> file_;
  std::string input_;
  z_stream state_{};
  std::uint64_t in_ = 0, out_ = 0;
  int members_ = 0;
  bool inside_ = false, ended_ = false;
};

Result<std::unique_ptr<ByteFeed>> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot open for reading: ", reason_of(errno)));
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
  std::unique_ptr<ByteFeed> feed = std::move(*file);
  if (packed) feed = std::make_unique<GzipFeed>(path, std::move(feed));
  TextStream stream(std::move(feed));
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
      RETURN_IF_ERROR(check_cancelled());
      const auto count = feed_->read(window_.data() + filled, window_.size() - filled);
      if (!count) {
        window_.resize(filled);
        return fail(count);
      }
      ended_ = *count == 0;
      filled += *count;
    }
    window_.resize(filled);
  }
  return std::string_view(window_).substr(at_);
}

Result<> TextStream::rewind() {
  window_.clear();
  at_ = 0;
  ended_ = false;
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
