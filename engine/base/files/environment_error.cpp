#include "engine/base/files/environment_error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/thread_with_blocked_signals.h"

namespace troupe {
namespace {

constexpr std::string_view memory_prefix = "out of memory";

// The soft limit, or nothing if it is infinite.
std::optional<std::uint64_t> limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

// " (ulimit -n allows 16)" for EMFILE.
std::string file_limit(int code) {
  const auto files = limit_of(RLIMIT_NOFILE);
  return code == EMFILE && files ? cat(" (ulimit -n allows ", *files, ")") : "";
}

// Freed when the memory is exhausted, so that the message can be built.
std::atomic<char*> reserve = new char[std::size_t{64} << 10];

std::vector<std::string> memory_limits() {
  std::vector<std::string> limits;
  if (const auto space = limit_of(RLIMIT_AS))
    limits.push_back(cat("ulimit -v limits the address space to ", *space >> 10, " KiB"));
  const std::string group = read_proc_file("/sys/fs/cgroup/memory.max");
  if (!group.empty() && !group.starts_with("max"))
    limits.push_back(cat("the control group is limited to ",
                         std::strtoull(group.c_str(), nullptr, 10) >> 20, " MiB"));
  const auto machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  limits.push_back(cat("this machine has ", machine >> 20, " MiB of memory"));
  return limits;
}

}  // namespace

std::string out_of_memory(std::string_view what) {
  delete[] reserve.exchange(nullptr);
  return cat(memory_prefix, what.empty() ? "" : ": ", what, " (", join(memory_limits(), "; "), ")");
}

bool is_out_of_memory(std::string_view message) {
  return message.find(memory_prefix) != std::string_view::npos;
}

std::string reason_of(int code) {
  return code == ENOMEM ? out_of_memory("") : std::strerror(code) + file_limit(code);
}

Error os_error(int code, std::string_view what) {
  return {code == ENOMEM ? Errc::full : Errc::io, cat(what, ": ", reason_of(code))};
}

Result<> check_open_files(int count, std::string_view what) {
  std::vector<Descriptor> files;
  for (int i = 0; i < count; ++i) {
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (files.back().open()) continue;
    return fail(os_error(
        errno, cat(what, " needs ", count, " more open files, but only ", i, " can be opened")));
  }
  return {};
}

Result<> check_threads(int count, std::string_view what) {
  std::promise<void> all_exist;
  const std::shared_future<void> end = all_exist.get_future().share();
  std::vector<std::thread> started;
  std::optional<Error> failed;
  try {
    started.reserve(static_cast<std::size_t>(count));
    while (std::ssize(started) < count)
      started.push_back(thread_with_blocked_signals("troupe/check", [end] { end.wait(); }));
  } catch (const std::exception& error) {
    failed = environment_error(error);
    if (failed)
      failed->what = cat(what, " needs ", count, " more threads, but only ", started.size(),
                         " can be started: ", failed->what);
  }
  all_exist.set_value();
  for (std::thread& each : started) each.join();
  if (failed) return fail(std::move(*failed));
  return {};
}

Result<> check_address_space(std::size_t bytes, std::string_view what) {
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return fail(Errc::full, out_of_memory(cat(what, " needs ", bytes >> 20, " MiB")));
  ::munmap(room, bytes);
  return {};
}

std::optional<Error> environment_error(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception)) return Error{Errc::full, out_of_memory("")};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception))
    return os_error(file->code().value(), file->path1().string());
  const auto* failed = dynamic_cast<const std::system_error*>(&exception);
  if (!failed) return std::nullopt;
  if (failed->code() == std::errc::not_enough_memory)
    return Error{Errc::full, out_of_memory(failed->what())};
  if (failed->code() != std::errc::resource_unavailable_try_again)
    return Error{Errc::io, failed->what() + file_limit(failed->code().value())};
  std::vector<std::string> limits = memory_limits();
  if (const auto processes = limit_of(RLIMIT_NPROC))
    limits.insert(limits.begin(), cat("ulimit -u allows ", *processes, " processes and threads"));
  return Error{Errc::full, cat("cannot start a thread (", join(limits, "; "), ")")};
}

}  // namespace troupe
