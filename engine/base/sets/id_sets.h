// Sets of ids below a bound, encoded for storage and messages: the tokens of a vocabulary from
// which tokens were sampled. The empty encoding stands for all ids.
//
// The first byte names the form, the shortest of three; ties go to the first:
//   'd'  the ids: LEB128 of the first, then of each difference from the one before, less 1
//   'x'  the ids that are missing, in the same way
//   'b'  a bit set, (bound + 7) / 8 bytes: id v is bit v % 8 of byte v / 8
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe {

/// `ids` rise, are in [0, bound) and not empty.
std::string encode_id_set(std::span<const std::int32_t> ids, std::int64_t bound);

/// Assigns the bits of a set that is not all ids: id v is bit v % 64 of word v / 64. `words`:
/// [(bound + 63) / 64]. Errc::bad_input for another form, an id beyond the bound, a set without
/// ids, or bytes beyond its end; the words are then unspecified.
Result<> decode_id_set(std::string_view set, std::int64_t bound, std::span<std::uint64_t> words);
/// The ids of such a set, ascending.
Result<std::vector<std::int32_t>> decode_id_set(std::string_view set, std::int64_t bound);

/// The maximum length of an encoded set, in bytes.
constexpr std::int64_t max_id_set_bytes(std::int64_t bound) {
  return (bound + 7) / 8 + 1;
}

/// Encoded sets, one after another.
class IdSets {
 public:
  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  /// Whether every set has all ids.
  bool all_whole() const { return bytes_.empty(); }
  std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, ends_[i] - begin};
  }
  void push_back(std::string_view set);
  /// Appends `count` sets of all ids.
  void append_whole(std::size_t count) { ends_.insert(ends_.end(), count, bytes_.size()); }
  void append(const IdSets& from, std::size_t begin, std::size_t end);
  /// Errc::bad_input where the bytes are not those of the sets: call it for what a message or a
  /// file brought.
  Result<> validate() const;
  bool operator==(const IdSets&) const = default;

  friend auto fields(IdSets& s) { return std::tie(s.ends_, s.bytes_); }

 private:
  std::vector<std::uint64_t> ends_;  ///< of each set in bytes_
  std::vector<std::uint8_t> bytes_;
};

}  // namespace troupe
