#include "actors/roles/weight_coding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "engine/base/errors/check.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::actors::roles {
namespace {

constexpr std::size_t bf16_block = 512, delta_block = 64, delta_group = 64 * delta_block;
constexpr int planes = 4;

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

std::vector<std::byte> copied(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

// Bytes that are read in order. `ok` becomes false when there are too few.
class Source {
 public:
  explicit Source(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::uint64_t mask() {
    std::uint64_t word = 0;
    const auto taken = take(sizeof word);
    if (!taken.empty()) std::memcpy(&word, taken.data(), sizeof word);
    return word;
  }
  bool ok() const { return ok_; }
  bool complete() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

template <class T>
void append(std::vector<std::byte>& out, const T& word) {
  const auto bytes = std::as_bytes(std::span(&word, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Values of `block` as bf16, whose lower halves are all 0.
void append_upper_halves(std::span<const float> block, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + 2 * block.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto upper = static_cast<std::uint16_t>(bits_of(block[i]) >> 16);
    std::memcpy(out.data() + begin + 2 * i, &upper, sizeof upper);
  }
}

std::vector<std::byte> encode_bf16(std::span<const float> values) {
  const std::size_t blocks = (values.size() + bf16_block - 1) / bf16_block;
  std::vector<std::byte> out((blocks + 7) / 8);
  out.reserve(out.size() + 2 * values.size() + values.size() / 8);
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto block =
        values.subspan(b * bf16_block, std::min(bf16_block, values.size() - b * bf16_block));
    std::uint32_t lower = 0;
    for (const float value : block) lower |= bits_of(value) & 0xffffu;
    if (lower == 0) {
      append_upper_halves(block, out);
    } else {
      out[b / 8] |= std::byte{1} << (b % 8);
      const auto bytes = std::as_bytes(block);
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
  }
  return out;
}

void decode_bf16(Source& source, std::span<float> values) {
  const std::size_t blocks = (values.size() + bf16_block - 1) / bf16_block;
  const auto full = source.take((blocks + 7) / 8);
  for (std::size_t b = 0; b < blocks && source.ok(); ++b) {
    const auto block =
        values.subspan(b * bf16_block, std::min(bf16_block, values.size() - b * bf16_block));
    const bool whole = (full[b / 8] & (std::byte{1} << (b % 8))) != std::byte{0};
    const auto bytes = source.take(block.size() * (whole ? 4 : 2));
    if (bytes.empty()) return;
    if (whole) {
      std::memcpy(block.data(), bytes.data(), bytes.size());
      continue;
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      std::uint16_t upper = 0;
      std::memcpy(&upper, bytes.data() + 2 * i, sizeof upper);
      block[i] = std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
    }
  }
}

// The changed bits of up to 4096 values; those behind the last one are 0.
struct Changes {
  std::array<std::uint32_t, delta_group> words{};
  std::array<std::uint32_t, delta_group / delta_block> any{};  ///< of each block

  Changes(std::span<const float> values, std::span<const float> base) {
    for (std::size_t i = 0; i < values.size(); ++i)
      words[i] = bits_of(values[i]) ^ bits_of(base[i]);
    for (std::size_t i = 0; i < values.size(); ++i) any[i / delta_block] |= words[i];
  }
};

// Bytes of one plane of a block that are not zero, after their mask.
void append_block(const std::uint32_t* words, int shift, std::vector<std::byte>& out) {
  std::uint64_t mask = 0;
  std::array<std::byte, delta_block> bytes{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < delta_block; ++i) {
    const std::uint32_t byte = words[i] >> shift & 0xffu;
    bytes[count] = static_cast<std::byte>(byte);
    count += byte != 0;
    mask |= static_cast<std::uint64_t>(byte != 0) << i;
  }
  append(out, mask);
  out.insert(out.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
}

std::vector<std::byte> encode_delta(std::span<const float> values, std::span<const float> base) {
  std::vector<std::byte> out;
  for (std::size_t at = 0; at < values.size(); at += delta_group) {
    const std::size_t count = std::min(delta_group, values.size() - at);
    const Changes changes(values.subspan(at, count), base.subspan(at, count));
    for (int shift = 0; shift < 8 * planes; shift += 8) {
      std::uint64_t blocks = 0;
      for (std::size_t b = 0; b < changes.any.size(); ++b)
        blocks |= static_cast<std::uint64_t>((changes.any[b] >> shift & 0xffu) != 0) << b;
      append(out, blocks);
      for (; blocks != 0; blocks &= blocks - 1)
        append_block(
            changes.words.data() + static_cast<std::size_t>(std::countr_zero(blocks)) * delta_block,
            shift, out);
    }
  }
  return out;
}

// XORs the bytes of one block of a plane into its words, of which `count` exist.
void read_block(Source& source, int shift, std::span<float> block) {
  std::uint64_t mask = source.mask();
  const auto bytes = source.take(static_cast<std::size_t>(std::popcount(mask)));
  if (bytes.empty()) return;
  for (std::size_t n = 0; mask != 0; mask &= mask - 1, ++n) {
    const auto i = static_cast<std::size_t>(std::countr_zero(mask));
    if (i >= block.size()) return;
    block[i] =
        std::bit_cast<float>(bits_of(block[i]) ^ static_cast<std::uint32_t>(bytes[n]) << shift);
  }
}

void decode_delta(Source& source, std::span<const float> base, std::span<float> values) {
  std::memcpy(values.data(), base.data(), values.size_bytes());
  for (std::size_t at = 0; at < values.size() && source.ok(); at += delta_group) {
    const auto group = values.subspan(at, std::min(delta_group, values.size() - at));
    for (int shift = 0; shift < 8 * planes; shift += 8)
      for (std::uint64_t blocks = source.mask(); blocks != 0; blocks &= blocks - 1) {
        const std::size_t begin = static_cast<std::size_t>(std::countr_zero(blocks)) * delta_block;
        read_block(source, shift,
                   begin < group.size()
                       ? group.subspan(begin, std::min(delta_block, group.size() - begin))
                       : std::span<float>());
      }
  }
}

}  // namespace

std::vector<std::byte> encode_values(WeightCoding coding, std::span<const float> values,
                                     std::span<const float> base) {
  switch (coding) {
    case WeightCoding::f32:
      return copied(values);
    case WeightCoding::bf16:
      return encode_bf16(values);
    case WeightCoding::delta:
      check(base.size() == values.size(), "encode_values: a base of another model");
      return encode_delta(values, base);
  }
  return {};
}

Result<> decode_values(WeightCoding coding, std::span<const std::byte> bytes,
                       std::span<const float> base, std::span<float> values) {
  Source source(bytes);
  if (coding == WeightCoding::f32) {
    const auto all = source.take(values.size_bytes());
    if (!all.empty()) std::memcpy(values.data(), all.data(), all.size());
  } else if (coding == WeightCoding::bf16) {
    decode_bf16(source, values);
  } else {
    check(base.size() == values.size(), "decode_values: a base of another model");
    decode_delta(source, base, values);
  }
  if (source.complete()) return {};
  return fail(Errc::bad_input, cat("expected ", values.size(), " values as ", name_of(coding),
                                   ", found another length (", bytes.size(), " bytes)"));
}

}  // namespace troupe::actors::roles
