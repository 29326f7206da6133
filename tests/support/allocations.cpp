#include "tests/support/allocations.h"

#include <cstdlib>
#include <new>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define OPERATORS_OF_SANITIZER  // clang links those of ThreadSanitizer statically: no second ones
#endif
#endif

namespace {

thread_local std::size_t allocated = 0;

}  // namespace

#ifndef OPERATORS_OF_SANITIZER
void* operator new(std::size_t size) {
  allocated += size;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort allocates with this operator and frees with the usual one.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocated += size;
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace troupe::test {

std::size_t allocated_bytes() {
  return allocated;
}

}  // namespace troupe::test
