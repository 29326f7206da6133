#include "engine/base/memory/uncaught_bad_alloc.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <typeinfo>

namespace troupe {
namespace {

std::atomic<int> bad_alloc_exit_code{0};
std::atomic<std::terminate_handler> other_handler{nullptr};

// Neither this nor what it calls allocates.
[[noreturn]] void on_terminate() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type && *type == typeid(std::bad_alloc)) {
    constexpr std::string_view text =
        "troupe: out of memory in a thread that could not report it; see ulimit -v and the limit "
        "of the control group (docs/troubleshooting.md)\n";
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) ::_exit(bad_alloc_exit_code);
    ::_exit(bad_alloc_exit_code);
  }
  if (const auto other = other_handler.load()) other();
  std::abort();
}

}  // namespace

void install_bad_alloc_handler(int exit_code) {
  bad_alloc_exit_code = exit_code;
  const auto before = std::set_terminate(on_terminate);
  if (before != on_terminate) other_handler = before;
}

}  // namespace troupe
