#include "engine/base/sets/id_sets.h"

#include <algorithm>
#include <limits>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

std::string bit_set(std::span<const std::int32_t> ids, std::int64_t bound) {
  std::string bytes(static_cast<std::size_t>((bound + 7) / 8), '\0');
  for (const std::int32_t id : ids) {
    auto& byte = bytes[static_cast<std::size_t>(id / 8)];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << (id % 8));
  }
  return bytes;
}

/// Differences in LEB128. Stops where they have more than `limit` bytes: the result is then longer
/// than that.
class Differences {
 public:
  explicit Differences(std::size_t limit) : limit_(limit) {}
  void add(std::int32_t id) {
    if (bytes_.size() > limit_) return;
    auto rest = static_cast<std::uint32_t>(id - next_);
    for (; rest >= 128; rest >>= 7) bytes_ += static_cast<char>((rest & 127) | 128);
    bytes_ += static_cast<char>(rest);
    next_ = id + 1;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t limit_;
  std::string bytes_;
  std::int32_t next_ = 0;
};

Result<std::vector<std::int32_t>> read_differences(std::string_view bytes, std::int64_t bound) {
  std::vector<std::int32_t> ids;
  std::int64_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    std::int64_t difference = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 28)
        return fail(Errc::bad_input, "a set of ids ends within an id");
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      difference |= std::int64_t{byte & 127} << shift;
      if (byte < 128) break;
    }
    next += difference;
    if (next >= bound)
      return fail(Errc::bad_input,
                  cat("a set of ids has the id ", next, ", but all are below ", bound));
    ids.push_back(static_cast<std::int32_t>(next++));
  }
  return ids;
}

Result<std::vector<std::int32_t>> read_bit_set(std::string_view bytes, std::int64_t bound) {
  if (std::ssize(bytes) != (bound + 7) / 8)
    return fail(Errc::bad_input,
                cat("a set of ids has a bit set of ", bytes.size(), " bytes; expected ",
                    (bound + 7) / 8, " for ids below ", bound));
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (unsigned rest = static_cast<unsigned char>(bytes[i]), bit = 0; rest != 0;
         rest >>= 1, ++bit)
      if (rest & 1) ids.push_back(static_cast<std::int32_t>(8 * i + bit));
  if (!ids.empty() && ids.back() >= bound)
    return fail(Errc::bad_input,
                cat("a set of ids has the id ", ids.back(), ", but all are below ", bound));
  return ids;
}

/// The ids of [0, bound) that `ids` lacks.
std::vector<std::int32_t> complement(std::span<const std::int32_t> ids, std::int64_t bound) {
  std::vector<std::int32_t> out;
  out.reserve(static_cast<std::size_t>(bound) - ids.size());
  std::int32_t next = 0;
  for (const std::int32_t id : ids) {
    for (; next < id; ++next) out.push_back(next);
    next = id + 1;
  }
  for (; next < bound; ++next) out.push_back(next);
  return out;
}

}  // namespace

std::string encode_id_set(std::span<const std::int32_t> ids, std::int64_t bound) {
  check(!ids.empty() && ids.front() >= 0 && ids.back() < bound,
        "encode_id_set: ids below the bound");
  if (std::ssize(ids) == bound) return {};
  const auto limit = static_cast<std::size_t>((bound + 7) / 8);
  Differences kept(limit), missing(limit);
  if (ids.size() <= limit)  // a byte each, at least
    for (const std::int32_t id : ids) kept.add(id);
  if (static_cast<std::size_t>(bound) - ids.size() <= limit)
    for (const std::int32_t id : complement(ids, bound)) missing.add(id);
  const auto length = [](const Differences& of) {
    return of.bytes().empty() ? std::numeric_limits<std::size_t>::max() : of.bytes().size();
  };
  const std::size_t least = std::min({length(kept), length(missing), limit});
  if (length(kept) == least) return 'd' + kept.bytes();
  if (length(missing) == least) return 'x' + missing.bytes();
  return 'b' + bit_set(ids, bound);
}

Result<std::vector<std::int32_t>> decode_id_set(std::string_view mask, std::int64_t bound) {
  check(!mask.empty(), "decode_id_set: all ids");
  const char form = mask.front();
  mask.remove_prefix(1);
  if (form != 'd' && form != 'x' && form != 'b')
    return fail(Errc::bad_input, cat("a set of ids has the form ", static_cast<int>(form),
                                     "; expected 'd' (ids), 'x' (missing ids) or 'b' (a bit set)"));
  auto ids = form == 'b' ? read_bit_set(mask, bound) : read_differences(mask, bound);
  if (ids && form == 'x') *ids = complement(*ids, bound);
  if (ids && ids->empty()) return fail(Errc::bad_input, "a set of ids is empty");
  return ids;
}

void IdSets::push_back(std::string_view set) {
  bytes_.insert(bytes_.end(), set.begin(), set.end());
  ends_.push_back(bytes_.size());
}

void IdSets::append(const IdSets& from, std::size_t begin, std::size_t end) {
  for (; begin < end; ++begin) push_back(from[begin]);
}

Result<> IdSets::validate() const {
  if (!std::ranges::is_sorted(ends_) || (ends_.empty() ? 0 : ends_.back()) != bytes_.size())
    return fail(Errc::bad_input, cat("sets of ids: expected ends that rise to ", bytes_.size(),
                                     " bytes, found others"));
  return {};
}

}  // namespace troupe
