#include <xxhash.h>

#include <cstdio>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/data/dataset.h"

namespace troupe::engine::data {

Result<FilePrint> fingerprint(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = file->bytes();
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return FilePrint{path, bytes.size(), text};
}

}  // namespace troupe::engine::data
