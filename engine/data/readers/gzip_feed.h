// The bytes inside a gzip file, member after member (RFC 1952).
#pragma once

#include "engine/data/readers/text_stream.h"

namespace troupe::engine::data {

/// `file` gives the compressed bytes of `path`.
std::unique_ptr<ByteFeed> make_gzip_feed(std::string path, std::unique_ptr<ByteFeed> file);

}  // namespace troupe::engine::data
