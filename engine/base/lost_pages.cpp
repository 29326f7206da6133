#include "engine/base/lost_pages.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

namespace troupe {
namespace {

// The handler reads this without a lock: a mapping in which a thread faults is not given back
// meanwhile, and `begin` is set last and cleared first.
struct Mapping {
  std::atomic<const std::byte*> begin{nullptr};
  std::size_t size = 0;
  std::string path;
};
constexpr std::size_t most = 1024;
std::array<Mapping, most> mappings;
std::mutex changing;
std::atomic<int> code{0};

const Mapping* mapping_at(const void* address) {
  for (const Mapping& each : mappings) {
    const std::byte* begin = each.begin.load();
    if (begin && begin <= address && address < begin + each.size) return &each;
  }
  return nullptr;
}

// What a handler may call, and nothing else.
void say(std::string_view words) {
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) return;
}

void on_lost_page(int signal, siginfo_t* info, void*) {
  const Mapping* mapping = mapping_at(info->si_addr);
  if (!mapping) {
    ::signal(signal,
             SIG_DFL);  // the instruction is tried again, and ends the process as it would have
    return;
  }
  say("troupe: ");
  say(mapping->path);
  say(": expected the bytes that were there when it was opened, found them gone: another program "
      "shortened the file, or its disk failed. "
      "Put it back and start again; to replace a file in use, rename another over it\n");
  ::_exit(code.load());
}

}  // namespace

void exit_on_lost_pages(int exit_code) {
  code = exit_code;
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

int remember_mapping(std::span<const std::byte> bytes, const std::string& path) {
  const std::lock_guard lock(changing);
  const auto place = std::ranges::find_if(
      mappings, [](const Mapping& each) { return each.begin.load() == nullptr; });
  if (place == mappings.end()) return -1;
  place->path = path, place->size = bytes.size();
  place->begin = bytes.data();
  return static_cast<int>(place - mappings.begin());
}

void forget_mapping(int place) {
  if (place < 0) return;
  const std::lock_guard lock(changing);
  mappings[static_cast<std::size_t>(place)].begin = nullptr;
}

}  // namespace troupe
