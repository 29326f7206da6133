#include "launch/journal/events_file.h"

#include <array>
#include <bit>
#include <cmath>

namespace troupe::launch::journal {

namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    table[i] = crc;
  }
  return table;
}
constexpr auto table = make_table();

template <class Number>
void put_little(std::string& to, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    to.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

// Protocol buffers' wire format: a key (field number and kind), then the value.
enum Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
void put_key(std::string& to, std::uint64_t field, Wire wire) {
  put_varint(to, field << 3 | wire);
}
void put_double(std::string& to, std::uint64_t field, double value) {
  put_key(to, field, fixed64);
  put_little(to, std::bit_cast<std::uint64_t>(value));
}
void put_float(std::string& to, std::uint64_t field, float value) {
  put_key(to, field, fixed32);
  put_little(to, std::bit_cast<std::uint32_t>(value));
}
void put_integer(std::string& to, std::uint64_t field, std::int64_t value) {
  put_key(to, field, varint);
  put_varint(to, static_cast<std::uint64_t>(value));
}
void put_bytes(std::string& to, std::uint64_t field, std::string_view value) {
  put_key(to, field, bytes);
  put_varint(to, value.size());
  to.append(value);
}

std::string event(double wall_time, std::int64_t step) {
  std::string out;
  put_double(out, 1, wall_time);
  if (step != 0) put_integer(out, 2, step);
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view text) {
  std::uint32_t crc = ~0u;
  for (const char c : text) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view payload) {
  std::string out;
  put_little(out, static_cast<std::uint64_t>(payload.size()));
  put_little(out, masked(crc32c(out)));
  out.append(payload);
  put_little(out, masked(crc32c(payload)));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = event(wall_time, 0);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string restart_event(double wall_time, std::int64_t step) {
  std::string out = event(wall_time, step), session;
  put_integer(session, 1, 1);  // SessionLog.status = START
  put_bytes(out, 7, session);
  return out;
}

std::string metrics_event(double wall_time, std::int64_t step, const algorithms::Metrics& metrics) {
  std::string summary;
  for (const auto& [name, value] : metrics) {
    if (!std::isfinite(value)) continue;
    std::string entry;
    put_bytes(entry, 1, name);
    put_float(entry, 2, static_cast<float>(value));
    put_bytes(summary, 1, entry);
  }
  std::string out = event(wall_time, step);
  put_bytes(out, 5, summary);
  return out;
}

}  // namespace troupe::launch::journal
