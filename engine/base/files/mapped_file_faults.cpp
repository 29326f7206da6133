#include "engine/base/files/mapped_file_faults.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

namespace troupe {
namespace {

// The handler reads this without a lock: the mapping of a faulting thread is not unregistered at
// the same time, and `begin` is set last and cleared first.
struct Mapping {
  std::atomic<const std::byte*> begin{nullptr};
  std::size_t size = 0;
  std::string path;
};
constexpr std::size_t max_mappings = 1024;
std::array<Mapping, max_mappings> mappings;
std::mutex mappings_mutex;
std::atomic<int> sigbus_exit_code{0};

const Mapping* mapping_at(const void* address) {
  for (const Mapping& each : mappings) {
    const std::byte* begin = each.begin.load();
    if (begin && begin <= address && address < begin + each.size) return &each;
  }
  return nullptr;
}

// Async-signal-safe output.
void write_to_stderr(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void on_sigbus(int signal, siginfo_t* info, void*) {
  const Mapping* mapping = mapping_at(info->si_addr);
  if (!mapping) {
    // The instruction is retried and ends the process with the default action.
    ::signal(signal, SIG_DFL);
    return;
  }
  write_to_stderr("troupe: ");
  write_to_stderr(mapping->path);
  write_to_stderr(
      ": expected the bytes that were there when it was opened, found them gone: another program "
      "shortened the file, or its disk failed. Put it back and start again; to replace a file in "
      "use, rename another over it\n");
  ::_exit(sigbus_exit_code.load());
}

}  // namespace

void install_sigbus_handler(int exit_code) {
  sigbus_exit_code = exit_code;
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

int register_mapping(std::span<const std::byte> bytes, const std::string& path) {
  const std::lock_guard lock(mappings_mutex);
  const auto slot = std::ranges::find_if(
      mappings, [](const Mapping& each) { return each.begin.load() == nullptr; });
  if (slot == mappings.end()) return -1;
  slot->path = path;
  slot->size = bytes.size();
  slot->begin = bytes.data();
  return static_cast<int>(slot - mappings.begin());
}

void unregister_mapping(int slot) {
  if (slot < 0) return;
  const std::lock_guard lock(mappings_mutex);
  mappings[static_cast<std::size_t>(slot)].begin = nullptr;
}

}  // namespace troupe
