#include "launch/cluster/status_writer.h"

#include <unistd.h>

#include <future>
#include <memory>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe::launch::cluster {
namespace {

Result<> replace(const OutputFolder& folder, const std::string& text) {
  const std::string name = run::status_file, temporary = cat(name, ".tmp");
  auto file = folder.append(temporary);
  RETURN_IF_ERROR(file);
  if (::ftruncate(file->get(), 0) != 0 ||
      ::write(file->get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail(Errc::io, cat("cannot write ", folder.path_of(temporary)));
  return folder.rename(temporary, name);
}

}  // namespace

StatusWriter::StatusWriter(OutputFolder folder, actors::Executor& control,
                           std::function<run::RunStatus()> gather, std::chrono::milliseconds every)
    : folder_(std::move(folder)), control_(control), gather_(std::move(gather)), every_(every) {
  thread_ = thread_with_blocked_signals("troupe/status", [this] { write_all(); });
}

StatusWriter::~StatusWriter() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

bool StatusWriter::ended_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return ends_.wait_for(lock, time, [this] { return ended_; });
}

// A status is not worth a wait: one that is not there in time is written the next time.
void StatusWriter::write_all() {
  std::shared_ptr<std::promise<run::RunStatus>> promise;
  std::future<run::RunStatus> status;
  do {
    if (!status.valid()) {
      promise = std::make_shared<std::promise<run::RunStatus>>();
      status = promise->get_future();
      control_.post([gather = gather_, promise] { promise->set_value(gather()); });
    }
    if (status.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready)
      write(status.get());
  } while (!ended_within(every_));
}

// Not durable: it describes a moment. A full disk is the concern of those who need their files.
void StatusWriter::write(const run::RunStatus& status) {
  const auto written = replace(folder_, run::to_json(status).dump() + "\n");
  if (!written && !std::exchange(warned_, true)) log_warning(written.error().what);
}

}  // namespace troupe::launch::cluster
