#include "engine/base/sets/id_sets.h"

#include <algorithm>
#include <bit>
#include <cstring>
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

/// Calls visit(id) for each id of a list of differences.
template <class Visit>
Result<> read_differences(std::string_view bytes, std::int64_t bound, const Visit& visit) {
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
    visit(next++);
  }
  return {};
}

Result<> read_bit_set(std::string_view bytes, std::int64_t bound, std::span<std::uint64_t> words) {
  static_assert(std::endian::native == std::endian::little, "bytes of words are in their order");
  if (std::ssize(bytes) != (bound + 7) / 8)
    return fail(Errc::bad_input,
                cat("a set of ids has a bit set of ", bytes.size(), " bytes; expected ",
                    (bound + 7) / 8, " for ids below ", bound));
  words.back() = 0;
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const std::int64_t end = 64 * std::ssize(words) - std::countl_zero(words.back());
  if (words.back() != 0 && end > bound)
    return fail(Errc::bad_input,
                cat("a set of ids has the id ", end - 1, ", but all are below ", bound));
  return {};
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

Result<> decode_id_set(std::string_view set, std::int64_t bound, std::span<std::uint64_t> words) {
  check(!set.empty() && std::ssize(words) == (bound + 63) / 64, "decode_id_set: a part of the ids");
  const char form = set.front();
  set.remove_prefix(1);
  Result<> read;
  if (form == 'b') {
    read = read_bit_set(set, bound, words);
  } else if (form == 'd') {
    std::ranges::fill(words, 0);
    read = read_differences(
        set, bound, [&](std::int64_t id) { words[id / 64] |= std::uint64_t{1} << id % 64; });
  } else if (form == 'x') {
    std::ranges::fill(words, ~std::uint64_t{0});
    if (bound % 64 != 0) words.back() = (std::uint64_t{1} << bound % 64) - 1;
    read = read_differences(
        set, bound, [&](std::int64_t id) { words[id / 64] &= ~(std::uint64_t{1} << id % 64); });
  } else {
    return fail(Errc::bad_input, cat("a set of ids has the form ", static_cast<int>(form),
                                     "; expected 'd' (ids), 'x' (missing ids) or 'b' (a bit set)"));
  }
  if (read && std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; }))
    return fail(Errc::bad_input, "a set of ids is empty");
  return read;
}

Result<std::vector<std::int32_t>> decode_id_set(std::string_view set, std::int64_t bound) {
  std::vector<std::uint64_t> words(static_cast<std::size_t>((bound + 63) / 64));
  RETURN_IF_ERROR(decode_id_set(set, bound, words));
  std::vector<std::int32_t> ids;
  for (std::size_t w = 0; w < words.size(); ++w)
    for (std::uint64_t word = words[w]; word != 0; word &= word - 1)
      ids.push_back(static_cast<std::int32_t>(64 * w) + std::countr_zero(word));
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
