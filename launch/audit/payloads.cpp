#include "launch/audit/payloads.h"

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/checkpoint/running_checksum.h"

namespace troupe::launch::audit {
namespace {

constexpr std::string_view magic = "TSEGREC1";
constexpr std::size_t before_payload = 56;  // magic, sequence, size, hash

std::string path_of(const std::string& run, std::int64_t segment) {
  char name[40];
  std::snprintf(name, sizeof(name), "/ledger/%06lld.seg", static_cast<long long>(segment));
  return run + name;
}

std::int64_t number_at(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 8; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<std::int64_t>(out);
}

}  // namespace

std::string xxh3_of(std::string_view bytes) {
  engine::checkpoint::RunningChecksum sum;
  sum.add(bytes);
  return sum.xxh3_128();
}

void Payloads::note(const Event& event) {
  if (event.kind == "removed" && event.segment) removed_.insert(*event.segment);
}

// False, with a finding, where the segment cannot be read.
bool Payloads::open(std::int64_t segment) {
  if (segment == segment_ && file_) return true;
  if (unreadable_.contains(segment)) return false;
  auto file = MappedFile::open(path_of(run_, segment));
  if (!file) {
    findings_.add(Damage::payload, file.error().what);
    unreadable_.insert(segment);
    return false;
  }
  file_.emplace(std::move(*file));
  segment_ = segment;
  return true;
}

std::string Payloads::difference(const Event& event) const {
  const auto mapped = file_->bytes();
  const std::string_view all(reinterpret_cast<const char*>(mapped.data()), mapped.size());
  const std::int64_t begin = event.offset.value_or(-1), bytes = *event.bytes;
  const auto size = static_cast<std::int64_t>(all.size());
  if (begin < static_cast<std::int64_t>(before_payload) || begin > size || bytes < 0 ||
      bytes > size - begin)
    return cat("expected ", bytes, " bytes from ", begin, " on, found a file of ", size);
  const auto at = static_cast<std::size_t>(begin);
  const std::string_view frame = all.substr(at - before_payload, before_payload);
  if (!frame.starts_with(magic)) return "the frame of a record is damaged";
  if (number_at(frame.substr(8)) != event.sequence)
    return cat("the record is that of row ", number_at(frame.substr(8)));
  if (number_at(frame.substr(16)) != bytes)
    return cat("the record has ", number_at(frame.substr(16)), " bytes instead of ", bytes);
  const std::string_view payload = all.substr(at, static_cast<std::size_t>(bytes));
  const std::string hash = xxh3_of(payload);
  if (hash != event.hash) return cat("expected the hash ", event.hash, ", found ", hash);
  if (frame.substr(24) != hash) return cat("the hash of the frame of a record is damaged");
  return difference_of_samples(event, payload);
}

// The payloads of the samples of a row follow each other.
std::string Payloads::difference_of_samples(const Event& event, std::string_view payload) {
  const auto ids = samples_of(event);
  const Json detail = detail_of(event);
  for (std::size_t n = 0; ids && n < ids->size(); ++n) {
    const Json bytes = element_of(detail, "bytes", n), hash = element_of(detail, "hashes", n);
    if (!bytes.is_integer() || !hash.is_string())
      return cat("expected bytes and a hash of sample ", (*ids)[n], ", found none");
    const std::int64_t size = bytes.integer();
    if (size < 0 || std::cmp_greater(size, payload.size()))
      return cat("expected ", size, " bytes of sample ", (*ids)[n], ", found ", payload.size());
    const std::string found = xxh3_of(payload.substr(0, static_cast<std::size_t>(size)));
    if (found != hash.string())
      return cat("expected the hash ", hash.string(), " of sample ", (*ids)[n], ", found ", found);
    payload.remove_prefix(static_cast<std::size_t>(size));
  }
  return payload.empty() ? "" : cat(payload.size(), " bytes are of no sample of the row");
}

void Payloads::examine(const Event& event) {
  if (!event.bytes) {
    if (event.kind == "sampled")
      findings_.add(Damage::payload, cat("row ", event.sequence, " has no payload"));
    return;
  }
  const std::int64_t segment = event.segment.value_or(0);
  const auto ids = samples_of(event);
  const auto count = ids ? std::ssize(*ids) : 0;
  if (removed_.contains(segment)) {
    findings_.removed += count;
    return;
  }
  if (!open(segment)) return;
  const std::string found = difference(event);
  if (found.empty())
    findings_.payloads += count;
  else
    findings_.add(Damage::payload,
                  cat(path_of(run_, segment), ": row ", event.sequence, ": ", found));
}

}  // namespace troupe::launch::audit
