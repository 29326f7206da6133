#include "algorithms/training/sample_ledger.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "engine/ledger/segments.h"
#include "transports/wire/codec.h"

namespace troupe::algorithms {
namespace {

using engine::ledger::Kind;

using engine::ledger::append_number;

// Samples with more bytes are another row, so that little memory waits for the disk.
constexpr std::size_t row_bytes = std::size_t{4} << 20;

std::int64_t number_of(std::uint64_t id) {
  return static_cast<std::int64_t>(id);
}

std::vector<std::int64_t> ids_of(const std::vector<protocol::SampleRequest>& requests) {
  std::vector<std::int64_t> ids;
  for (const auto& request : requests) ids.push_back(number_of(request.sample_id));
  return ids;
}

Json versions_of(const protocol::Completion& completion) {
  Json::Array versions;
  for (const auto& run : completion.versions)
    versions.push_back(Json::Array{run.version, std::int64_t{run.count}});
  return versions;
}

// A row of samples that are complete, and its payload.
struct SampledRow {
  engine::ledger::Row row{.kind = Kind::sampled};
  std::string payload;
  Json::Array hashes, bytes, versions, reasons;

  void add(const protocol::Completion& completion) {
    const std::string own = payload_of(completion);
    row.samples.push_back(number_of(completion.sample_id));
    hashes.emplace_back(engine::ledger::payload_hash(own));
    bytes.emplace_back(own.size());
    versions.push_back(versions_of(completion));
    reasons.emplace_back(name_of(completion.finish_reason));
    payload += own;
  }
  void finish() {
    Json detail = Json::Object{{"hashes", std::move(hashes)}};
    detail.set("bytes", std::move(bytes)).set("versions", std::move(versions));
    row.detail = detail.set("finish_reasons", std::move(reasons)).dump();
  }
};

// The values of each part of the rewards, null where a reward does not have it.
Json parts_of(const std::vector<protocol::RewardResult>& rewards) {
  std::map<std::string, Json::Array> parts;
  for (std::size_t n = 0; n < rewards.size(); ++n)
    for (const auto& [name, value] : rewards[n].parts) {
      auto& values = parts[name];
      values.resize(rewards.size());
      values[n] = value;
    }
  Json out = Json::Object{};
  for (auto& [name, values] : parts) out.set(name, std::move(values));
  return out;
}

Json detail_of(const std::vector<protocol::RewardResult>& rewards) {
  Json::Array values, failures;
  bool failed = false;
  for (const auto& result : rewards) {
    values.push_back(result.reward ? Json(*result.reward) : Json());
    failures.push_back(result.failure.empty() ? Json() : Json(result.failure));
    failed = failed || !result.failure.empty();
  }
  Json out = Json::Object{{"rewards", std::move(values)}};
  if (Json parts = parts_of(rewards); !parts.object().empty()) out.set("parts", std::move(parts));
  if (failed) out.set("failures", std::move(failures));
  return out;
}

}  // namespace

std::string payload_of(const protocol::Completion& completion) {
  const auto body = transports::wire::encode(completion, nullptr);
  std::string out;
  append_number(out, body.header.size());
  out += body.header;
  for (const auto& part : body.parts) {
    append_number(out, part.size);
    out.append(reinterpret_cast<const char*>(part.data), part.size);
  }
  return out;
}

protocol::Completion completion_of(const std::string& payload, std::string_view what) {
  const auto bytes = std::make_shared<const std::string>(payload);
  std::string_view rest = *bytes;
  const auto take = [&] {
    std::uint64_t size = 0;
    for (std::size_t i = 8; rest.size() >= 8 && i-- > 0;)
      size = size << 8 | static_cast<unsigned char>(rest[i]);
    if (rest.size() < 8 || size > rest.size() - 8)
      throw Failure({Errc::corrupt, cat(what, ": expected a size and as many bytes, found ",
                                        rest.size(), " bytes")});
    const std::string_view part = rest.substr(8, size);
    rest.remove_prefix(8 + size);
    return part;
  };
  transports::wire::WireBody body;
  body.header = std::string(take());
  while (!rest.empty()) {
    const std::string_view part = take();
    body.parts.push_back({bytes, reinterpret_cast<const std::byte*>(part.data()), part.size()});
  }
  try {
    return transports::wire::decode<protocol::Completion>(body, what);
  } catch (const Failure& failure) {
    throw Failure({Errc::corrupt, failure.error().what});
  }
}

std::string hash_of_weights(std::vector<std::uint64_t> checksums) {
  std::ranges::sort(checksums);
  std::string bytes;
  for (const std::uint64_t each : checksums) append_number(bytes, each);
  engine::checkpoint::RunningChecksum sum;
  sum.add(bytes);
  return sum.xxh3_128();
}

SampleLedger::SampleLedger(std::unique_ptr<engine::ledger::Ledger> ledger)
    : ledger_(std::move(ledger)), last_batch_(ledger_->kept_segments()) {
}

void SampleLedger::append(Kind kind, std::optional<std::int64_t> batch,
                          std::optional<std::int64_t> step, Json detail, std::string hash) {
  value_or_throw(ledger_->append({.kind = kind,
                                  .samples = {},
                                  .batch = batch,
                                  .step = step,
                                  .hash = std::move(hash),
                                  .detail = detail.is_null() ? "" : detail.dump()}));
}

void SampleLedger::append_samples(Kind kind, std::int64_t batch, std::vector<std::int64_t> samples,
                                  Json detail) {
  if (samples.empty()) return;
  value_or_throw(ledger_->append({.kind = kind,
                                  .samples = std::move(samples),
                                  .batch = batch,
                                  .detail = detail.is_null() ? "" : detail.dump()}));
}

void SampleLedger::started(std::int64_t step, const std::optional<engine::ledger::Anchor>& anchor,
                           Json about) {
  if (step == 0)
    about.set("length", 0);
  else if (anchor)
    about.set("length", anchor->length);
  append(Kind::started, {}, step, std::move(about));
}

void SampleLedger::admitted(std::int64_t batch,
                            const std::vector<protocol::SampleRequest>& requests) {
  append_samples(Kind::admitted, batch, ids_of(requests));
}

void SampleLedger::leased(std::int64_t batch, const std::vector<protocol::SampleRequest>& requests,
                          const std::string& rollout) {
  append_samples(Kind::leased, batch, ids_of(requests), Json::Object{{"rollout", rollout}});
}

void SampleLedger::sampled(std::int64_t batch,
                           const std::vector<const protocol::Completion*>& completions) {
  if (completions.empty()) return;
  auto& last = last_batch_[ledger_->segment()];
  last = std::max(last, batch);
  SampledRow next;
  for (const auto* completion : completions) {
    next.add(*completion);
    if (next.payload.size() < row_bytes && completion != completions.back()) continue;
    next.finish();
    next.row.batch = batch;
    value_or_throw(ledger_->append(std::move(next.row), std::move(next.payload)));
    next = {};
  }
}

void SampleLedger::rewarded(std::int64_t batch, const std::vector<std::uint64_t>& sample_ids,
                            const std::vector<protocol::RewardResult>& rewards) {
  check(sample_ids.size() == rewards.size(), "SampleLedger: one reward per sample");
  append_samples(Kind::rewarded, batch, {sample_ids.begin(), sample_ids.end()}, detail_of(rewards));
}

void SampleLedger::batched(std::int64_t batch,
                           const std::vector<protocol::Completion>& completions) {
  std::vector<std::int64_t> ids;
  for (const auto& completion : completions) ids.push_back(number_of(completion.sample_id));
  append_samples(Kind::batched, batch, std::move(ids));
}

void SampleLedger::dropped(std::int64_t batch, const std::vector<std::uint64_t>& sample_ids,
                           std::string_view reason) {
  append_samples(Kind::dropped, batch, {sample_ids.begin(), sample_ids.end()},
                 Json::Object{{"reason", reason}});
}

void SampleLedger::trained(const engine::data::Experience& batch) {
  trained_.add(std::as_bytes(std::span(batch.offsets)));
  trained_.add(std::as_bytes(std::span(batch.tokens)));
  trained_.add(std::as_bytes(std::span(batch.sample_id)));
}

void SampleLedger::committed(std::int64_t previous, std::int64_t step,
                             const protocol::RunState& state, const Json& selection) {
  Json detail = Json::Object{{"first", previous + 1}, {"data", state.data}};
  if (!state.algorithm.is_null()) detail.set("algorithm", state.algorithm);
  if (!selection.is_null()) detail.set("selection", selection);
  const auto batch = state.batches > 0 ? std::optional(state.batches - 1) : std::nullopt;
  append(Kind::committed, batch, step, std::move(detail), trained_.xxh3_128());
  trained_ = {};
}

void SampleLedger::published(const protocol::Weights& weights, bool rounded) {
  append(Kind::published, number_of(weights.version), {},
         rounded ? Json(Json::Object{{"rounded", "bf16"}}) : Json(),
         hash_of_weights(weights.checksums));
}

Json SampleLedger::anchor(std::int64_t step, std::int64_t batches) {
  const auto anchor = value_or_throw(ledger_->anchor());
  ledger_->start_segment();
  anchored_[step] = batches;
  return Json::Object{{"length", anchor.length}, {"head", anchor.head}};
}

void SampleLedger::saved(std::int64_t step, const std::string& path) {
  const auto manifest =
      engine::checkpoint::measure_file(cat(path, "/", engine::checkpoint::manifest_file));
  if (!manifest) log_warning(cat("the ledger has no hash of it: ", manifest.error().what));
  append(Kind::saved, {}, step, {}, manifest ? manifest->xxh3_128 : std::string());
  const auto anchored = anchored_.find(step);
  if (anchored == anchored_.end()) return;
  if (saved_) remove_segments(*saved_);
  saved_ = anchored->second;
  anchored_.erase(anchored_.begin(), std::next(anchored));
}

// Those whose samples are all of the first `batches` batches.
void SampleLedger::remove_segments(std::int64_t batches) {
  for (auto each = last_batch_.begin(); each != last_batch_.end();) {
    const auto [segment, last] = *each;
    if (last >= batches || segment == ledger_->segment()) {
      ++each;
      continue;
    }
    value_or_throw(ledger_->remove_segment(segment));
    each = last_batch_.erase(each);
  }
}

}  // namespace troupe::algorithms
