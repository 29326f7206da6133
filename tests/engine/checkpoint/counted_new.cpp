#include "tests/engine/checkpoint/counted_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define OPERATORS_OF_SANITIZER  // clang links those of ThreadSanitizer statically: no second ones
#endif
#endif

namespace {
std::atomic<std::size_t> asked{0};
}

#ifndef OPERATORS_OF_SANITIZER
void* operator new(std::size_t size) {
  asked += size;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort asks in this way, and gives back in the usual one.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  asked += size;
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace troupe::engine::checkpoint {
std::size_t bytes_asked_for() {
  return asked;
}
}  // namespace troupe::engine::checkpoint
