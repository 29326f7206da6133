// How much memory this thread has asked for: a program that links allocations.cpp counts every
// operator new.
#pragma once

#include <cstddef>

namespace troupe::test {

/// Bytes since the thread began, freed ones too.
std::size_t allocated_bytes();

}  // namespace troupe::test
