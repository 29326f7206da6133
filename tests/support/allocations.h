// Memory allocated by this thread: a program that links allocations.cpp counts every operator new.
#pragma once

#include <cstddef>

namespace troupe::test {

/// Bytes allocated since the thread began, including freed ones. 0 under ThreadSanitizer.
std::size_t allocated_bytes();

}  // namespace troupe::test
