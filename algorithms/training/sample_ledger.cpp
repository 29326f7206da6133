#include "algorithms/training/sample_ledger.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/json/fields.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "transports/wire/codec.h"

namespace troupe::algorithms {
namespace {

using engine::ledger::Kind;

void append_size(std::string& out, std::size_t size) {
  for (int shift = 0; shift < 64; shift += 8)
    out.push_back(static_cast<char>((static_cast<std::uint64_t>(size) >> shift) & 0xff));
}

std::int64_t number_of(std::uint64_t sample_id) {
  return static_cast<std::int64_t>(sample_id);
}

Json detail_of(const protocol::Completion& completion) {
  Json::Array versions;
  for (const auto& run : completion.versions)
    versions.push_back(Json::Array{run.version, std::int64_t{run.count}});
  return Json::Object{{"versions", versions}, {"finish_reason", name_of(completion.finish_reason)}};
}

Json detail_of(const protocol::RewardResult& result) {
  Json parts = Json::Object{};
  for (const auto& [name, value] : result.parts) parts.set(name, value);
  Json out = Json::Object{{"reward", result.reward ? Json(*result.reward) : Json()}};
  if (!result.parts.empty()) out.set("parts", parts);
  if (!result.failure.empty()) out.set("failure", result.failure);
  return out;
}

}  // namespace

std::string payload_of(const protocol::Completion& completion) {
  const auto body = transports::wire::encode(completion, nullptr);
  std::string out;
  append_size(out, body.header.size());
  out += body.header;
  for (const auto& part : body.parts) {
    append_size(out, part.size);
    out.append(reinterpret_cast<const char*>(part.data), part.size);
  }
  return out;
}

std::string hash_of_weights(std::vector<std::uint64_t> checksums) {
  std::ranges::sort(checksums);
  std::string bytes;
  for (const std::uint64_t each : checksums) append_size(bytes, each);
  engine::checkpoint::RunningChecksum sum;
  sum.add(bytes);
  return sum.xxh3_128();
}

SampleLedger::SampleLedger(std::unique_ptr<engine::ledger::Ledger> ledger)
    : ledger_(std::move(ledger)), last_batch_(ledger_->kept_segments()) {
}

std::int64_t SampleLedger::append(Kind kind, std::optional<std::int64_t> sample,
                                  std::optional<std::int64_t> batch,
                                  std::optional<std::int64_t> step, Json detail, std::string hash) {
  return value_or_throw(ledger_->append({.kind = kind,
                                         .sample = sample,
                                         .batch = batch,
                                         .step = step,
                                         .hash = std::move(hash),
                                         .detail = detail.is_null() ? "" : detail.dump()}));
}

void SampleLedger::started(std::int64_t step, const std::optional<engine::ledger::Anchor>& anchor,
                           Json about) {
  if (step == 0)
    about.set("length", 0);
  else if (anchor)
    about.set("length", anchor->length);
  append(Kind::started, {}, {}, step, std::move(about));
}

void SampleLedger::admitted(std::int64_t batch,
                            const std::vector<protocol::SampleRequest>& requests) {
  for (const auto& request : requests)
    append(Kind::admitted, number_of(request.sample_id), batch, {});
}

void SampleLedger::leased(std::int64_t batch, const std::vector<protocol::SampleRequest>& requests,
                          const std::string& rollout) {
  for (const auto& request : requests)
    append(Kind::leased, number_of(request.sample_id), batch, {},
           Json::Object{{"rollout", rollout}});
}

void SampleLedger::sampled(std::int64_t batch, const protocol::Completion& completion) {
  auto& last = last_batch_[ledger_->segment()];
  last = std::max(last, batch);
  value_or_throw(ledger_->append({.kind = Kind::sampled,
                                  .sample = number_of(completion.sample_id),
                                  .batch = batch,
                                  .detail = detail_of(completion).dump()},
                                 payload_of(completion)));
}

void SampleLedger::rewarded(std::int64_t batch, const std::vector<std::uint64_t>& sample_ids,
                            const std::vector<protocol::RewardResult>& rewards) {
  check(sample_ids.size() == rewards.size(), "SampleLedger: one reward per sample");
  for (std::size_t n = 0; n < rewards.size(); ++n)
    append(Kind::rewarded, number_of(sample_ids[n]), batch, {}, detail_of(rewards[n]));
}

void SampleLedger::batched(std::int64_t batch,
                           const std::vector<protocol::Completion>& completions) {
  for (const auto& completion : completions)
    append(Kind::batched, number_of(completion.sample_id), batch, {});
}

void SampleLedger::dropped(std::int64_t batch, std::uint64_t sample_id, std::string_view reason) {
  append(Kind::dropped, number_of(sample_id), batch, {}, Json::Object{{"reason", reason}});
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
  append(Kind::committed, {}, batch, step, std::move(detail), trained_.xxh3_128());
  trained_ = {};
}

void SampleLedger::published(const protocol::Weights& weights, bool rounded) {
  append(Kind::published, {}, number_of(weights.version), {},
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
  append(Kind::saved, {}, {}, step, {}, manifest ? manifest->xxh3_128 : std::string());
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
