#include "engine/ledger/row.h"

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

std::string text_of(std::int64_t sequence, const Row& row) {
  const std::string place = row.place ? cat(row.place->offset, '|', row.place->bytes) : "|";
  const std::string segment = row.place ? cat(row.place->segment) : optional_text(row.segment);
  return cat(sequence, '|', name_of(row.kind), '|', optional_text(row.sample), '|',
             optional_text(row.batch), '|', optional_text(row.step), '|', row.hash, '|', row.detail,
             '|', segment, '|', place);
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
