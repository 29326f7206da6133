// FingerprintCache: checksums of files, remembered by the stamps of the files, so that weights are
// read once and not at every start of a run.
#pragma once

#include <string>
#include <vector>

#include "engine/base/files/file_stamp.h"
#include "engine/checkpoint/manifest.h"

namespace troupe::engine::checkpoint {

class FingerprintCache {
 public:
  /// The checksums that an earlier save() wrote to `path`; a missing file, and one that
  /// differs from its own checksum, holds none.
  explicit FingerprintCache(std::string path);

  /// Size and checksum of a file, which is read unless its stamp is known. The checksum of a file
  /// that was changed in the last two seconds is not saved: another change could have the same
  /// time. The errors of measure_file.
  Result<Manifest::File> measure(const std::string& path);
  /// Errc::io. Writes nothing if nothing was added.
  Result<> save() const;

 private:
  struct Entry {
    FileStamp stamp;
    std::string xxh3_128;
    bool may_save = false;
  };
  std::string path_;
  std::vector<Entry> entries_;  // the newest last
  bool changed_ = false;
};

}  // namespace troupe::engine::checkpoint
