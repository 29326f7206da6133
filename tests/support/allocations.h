// Memory allocated by this thread: a program that links allocations.cpp counts every operator new.
#pragma once

#include <cstddef>

namespace troupe::test {

/// Bytes allocated since the thread began, including freed ones. 0 under ThreadSanitizer.
std::size_t allocated_bytes();

/// From now on every operator new of more bytes throws std::bad_alloc, on all threads; 0: none
/// does. Returns how many have thrown so far. Has no effect under ThreadSanitizer.
std::size_t refuse_allocations_above(std::size_t bytes);

}  // namespace troupe::test
