// Memory allocated by this test program, counted by its operator new.
#pragma once

#include <cstddef>

namespace troupe::engine::checkpoint {

/// Bytes allocated by operator new since the program began, including freed ones.
/// 0 under ThreadSanitizer.
std::size_t bytes_asked_for();

}  // namespace troupe::engine::checkpoint
