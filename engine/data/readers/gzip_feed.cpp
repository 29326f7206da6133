#include "engine/data/readers/gzip_feed.h"

#include <zlib.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

constexpr int gzip_only = 15 + 16;  // zlib's way to say: a window of 32 KiB, and a gzip header

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
    state_.next_out = reinterpret_cast<Bytef*>(to), state_.avail_out = wanted;
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
    state_.avail_in = 0, in_ = 0, out_ = 0, members_ = 0, inside_ = false, ended_ = false;
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
    state_.next_in = reinterpret_cast<Bytef*>(input_.data()),
    state_.avail_in = static_cast<uInt>(*count);
    in_ += *count;
    return {};
  }

  // Members stand one behind the other; zeros behind the last one are padding.
  Result<> begin_member() {
    while (members_ > 0 && state_.avail_in > 0 && *state_.next_in == 0)
      ++state_.next_in, --state_.avail_in;
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

}  // namespace

std::unique_ptr<ByteFeed> make_gzip_feed(std::string path, std::unique_ptr<ByteFeed> file) {
  return std::make_unique<GzipFeed>(std::move(path), std::move(file));
}

}  // namespace troupe::engine::data
