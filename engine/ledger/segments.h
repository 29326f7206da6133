// Segments: files of payloads, OUTPUT/ledger/NNNNNN.seg. Each payload follows a frame of
// frame_bytes: "TSEGREC1", the sequence of its row and its size (8 bytes each, little-endian), and
// its XXH3-128 as 32 hexadecimal digits. Files only grow; a process never appends to those of
// another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/errors/error.h"
#include "engine/base/files/output_folder.h"
#include "engine/ledger/row.h"

namespace troupe::engine::ledger {

inline constexpr std::string_view segments_folder = "ledger";
inline constexpr std::int64_t frame_bytes = 8 + 8 + 8 + 32;

/// "000007.seg"
std::string segment_name(std::int64_t segment);

/// XXH3-128 of a payload, as in a row and in a frame.
std::string payload_hash(std::string_view payload);

/// The largest number of a segment in `folder`, 0 without one. Errc::io.
Result<std::int64_t> last_segment(const OutputFolder& folder);

/// Appends payloads to segments whose numbers never decrease.
class SegmentWriter {
 public:
  explicit SegmentWriter(OutputFolder folder) : folder_(std::move(folder)) {}

  /// Writes a frame and a payload at the place, which follows the one before in its segment.
  /// Errc::io.
  Result<> write(std::int64_t sequence, const Place& place, std::string_view payload,
                 const std::string& hash);
  /// Makes what was written durable; returns the number of syncs. Errc::io.
  Result<int> sync();
  /// Removes a segment that is complete; one that is gone already is no error. Errc::io.
  Result<> remove(std::int64_t segment);

 private:
  Result<> open(std::int64_t segment);

  OutputFolder folder_;
  Descriptor file_;
  std::int64_t segment_ = 0;
  bool written_ = false, created_ = false;  ///< since the last sync
};

}  // namespace troupe::engine::ledger
