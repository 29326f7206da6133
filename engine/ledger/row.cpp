#include "engine/ledger/row.h"

#include <charconv>
#include <span>

#include "engine/base/json/fields.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"

namespace troupe::engine::ledger {
namespace {

std::string optional_text(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

}  // namespace

std::string first_hash() {
  return std::string(64, '0');
}

std::string text_of(const std::vector<std::int64_t>& samples) {
  std::string out;
  for (const std::int64_t id : samples) {
    char digits[24];
    const char* end = std::to_chars(digits, digits + sizeof(digits), id).ptr;
    out += out.empty() ? '[' : ',';
    out.append(digits, static_cast<std::size_t>(end - digits));
  }
  if (!out.empty()) out += ']';
  return out;
}

std::string text_of(std::int64_t sequence, const Row& row) {
  const std::string place = row.place ? cat(row.place->offset, '|', row.place->bytes) : "|";
  const std::string segment = row.place ? cat(row.place->segment) : optional_text(row.segment);
  return cat(sequence, '|', name_of(row.kind), '|', text_of(row.samples), '|',
             optional_text(row.batch), '|', optional_text(row.step), '|', row.hash, '|', row.detail,
             '|', segment, '|', place);
}

void append_number(std::string& out, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8)
    out.push_back(static_cast<char>((number >> shift) & 0xff));
}

std::string chain_hash(std::string_view before, std::string_view text) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(before)));
  constexpr std::string_view separator = "\n";
  sum.update(std::as_bytes(std::span(separator)));
  sum.update(std::as_bytes(std::span(text)));
  return sum.finish();
}

}  // namespace troupe::engine::ledger
