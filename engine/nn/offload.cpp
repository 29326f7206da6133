#include "engine/nn/offload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/files/environment_error.h"
#include "engine/base/files/file_parts.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::engine::nn {
namespace {

constexpr const char* advice =
    "; set train.offload to a directory on a disk with more space, or lower "
    "train.micro_batch_tokens";

/// A new file without a name, or -1 and errno.
int open_unlinked(const std::string& directory) {
  std::string path = cat(directory, "/troupe-activations-", ::getpid(), "-XXXXXX");
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(path.c_str());
  return file;
}

Error directory_error(int code, const std::string& directory) {
  return {code == ENOENT || code == ENOTDIR ? Errc::not_found : Errc::io,
          cat("train.offload: expected a directory in which files can be created, found ",
              quote(directory), ": ", reason_of(code))};
}

}  // namespace

/// Transfers of whole ranges. Errc::io.
class OffloadedPass::File {
 public:
  explicit File(const std::string& directory)
      : directory_(directory), file_(open_unlinked(directory)) {
    if (!file_.open()) throw Failure(directory_error(errno, directory));
  }

  Result<> write(std::span<const std::byte> bytes, std::int64_t offset) const {
    const int code = write_at(file_.get(), bytes, static_cast<std::uint64_t>(offset));
    if (code != 0) return refused("written", bytes.size(), code);
    return {};
  }
  Result<> read(std::span<std::byte> bytes, std::int64_t offset) const {
    while (!bytes.empty()) {
      const ssize_t done = ::pread(file_.get(), bytes.data(), bytes.size(), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return refused("read", bytes.size(), done < 0 ? errno : EIO);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      offset += done;
    }
    return {};
  }

 private:
  Result<> refused(const char* what, std::size_t bytes, int code) const {
    return fail(Errc::io, cat("train.offload: ", bytes, " bytes of activations cannot be ", what,
                              " in ", quote(directory_), ": ", reason_of(code), advice));
  }

  std::string directory_;
  Descriptor file_;
};

Result<> Offload::check_directory(const std::string& directory) {
  // One that does not exist is created in the nearest that does.
  std::filesystem::path place = std::filesystem::absolute(directory);
  for (std::error_code why;
       place.has_relative_path() && !std::filesystem::exists(place, why) && !why;)
    place = place.parent_path();
  const Descriptor file(open_unlinked(place.string()));
  if (!file.open()) return fail(directory_error(errno, directory));
  return {};
}

Offload::Offload(std::string directory) : directory_(std::move(directory)) {
  std::error_code ignored;  // what fails is found by the check
  std::filesystem::create_directories(directory_, ignored);
  value_or_throw(check_directory(directory_));
  thread_ = thread_with_blocked_signals("offload", [this] { serve(); });
}

Offload::~Offload() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::future<Result<>> Offload::run(std::function<Result<>()> work) {
  std::packaged_task<Result<>()> task(std::move(work));
  auto done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

void Offload::serve() {
  for (;;) {
    std::packaged_task<Result<>()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stops_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    const progress::Operation watched("reading or writing activations");
    task();
  }
}

OffloadedPass::OffloadedPass(Offload& to, ops::Device& device) : to_(to), device_(device) {
}
OffloadedPass::~OffloadedPass() {
  for (const auto& segment : segments_)
    if (segment->work.valid()) segment->work.wait();
}

std::vector<OffloadedPass::Part> OffloadedPass::take(Saved& saved, std::size_t mark,
                                                     std::int64_t& end) const {
  std::vector<Part> parts;
  for (std::size_t place = mark; place < saved.mark(); ++place) {
    Tensor x = saved.exchange(place, {});
    if (!x) continue;
    if (x.dtype() == DType::i32) {  // routes of experts, a few numbers for a token, stay in memory
      saved.exchange(place, std::move(x));
      continue;
    }
    check(x.dtype() == DType::f32, "OffloadedPass: activations are f32");
    const auto same = std::ranges::find_if(parts, [&](const Part& part) {
      return part.tensor.buffer() == x.buffer() && part.tensor.offset_bytes() == x.offset_bytes() &&
             part.shape == x.shape();
    });
    if (same != parts.end()) {
      same->places.push_back(place);
      continue;
    }
    parts.push_back({{place}, x.shape(), end, x, nullptr});
    end += x.count() * std::int64_t{sizeof(float)};
  }
  return parts;
}

void OffloadedPass::finish(Segment& segment, const char* what) const {
  if (!segment.work.valid()) return;
  const progress::Wait watched;
  if (segment.work.wait_for(Offload::deadline) != std::future_status::ready)
    throw Failure({Errc::timeout,
                   cat("train.offload: the activations of a layer, ", segment.end - segment.begin,
                       " bytes, were not ", what, " in ", quote(to_.directory()), " within ",
                       Offload::deadline.count(), " s; choose a faster disk")});
  value_or_throw(segment.work.get());
}

void OffloadedPass::unload(Saved& saved, std::size_t mark) {
  if (!file_) file_ = std::make_unique<File>(to_.directory());
  std::int64_t end = 0;
  if (!segments_.empty()) {
    Segment& before = *segments_.back();
    finish(before, "written");
    for (Part& part : before.parts) {
      part.values.reset();
      part.tensor = {};
    }
    before.in_memory = false;
    end = before.end;
  }
  auto segment = std::make_unique<Segment>();
  segment->begin = end;
  segment->parts = take(saved, mark, end);
  segment->end = end;
  for (Part& part : segment->parts)
    part.values = std::make_unique<ops::HostValues>(device_, part.tensor);
  segment->work = to_.run([file = file_.get(), &parts = segment->parts]() -> Result<> {
    for (const Part& part : parts)
      RETURN_IF_ERROR(file->write(std::as_bytes(part.values->values()), part.offset));
    return {};
  });
  segments_.push_back(std::move(segment));
}

void OffloadedPass::start_reading(Segment& segment) {
  for (Part& part : segment.parts) {
    part.tensor = device_.empty(part.shape);
    part.values = std::make_unique<ops::HostValues>(device_, part.tensor);
  }
  segment.in_memory = true;
  segment.work = to_.run([file = file_.get(), &parts = segment.parts]() -> Result<> {
    for (const Part& part : parts)
      RETURN_IF_ERROR(file->read(std::as_writable_bytes(part.values->values()), part.offset));
    return {};
  });
}

void OffloadedPass::load(Saved& saved) {
  check(!segments_.empty(), "OffloadedPass: backward loads more than forward unloaded");
  Segment& segment = *segments_.back();
  if (!segment.in_memory) start_reading(segment);
  finish(segment, "read");
  for (const Part& part : segment.parts) part.values->store();
  for (const Part& part : segment.parts)
    for (const std::size_t place : part.places) saved.exchange(place, part.tensor);
  segments_.pop_back();
  if (!segments_.empty() && !segments_.back()->in_memory) start_reading(*segments_.back());
}

}  // namespace troupe::engine::nn
