// How much memory the program has asked for so far: this test program's operator new counts.
#pragma once

#include <cstddef>

namespace troupe::engine::checkpoint {

/// Bytes asked of operator new since the program began, returned or not.
std::size_t bytes_asked_for();

}  // namespace troupe::engine::checkpoint
