#include "launch/audit/history.h"

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::launch::audit {

void History::visit(const Event& event) {
  if (event.kind == "published" && event.batch) versions_.insert(*event.batch);
  if (event.kind == "saved" && event.step) saved_[*event.step] = event.hash;
  if (!chain_.survives(event.sequence)) return;
  if (event.kind == "started") start(event);
  if (event.kind == "committed") commit(event);
  if (event.kind == "published" && event.batch)
    weights_[*event.batch] = member_of(event, "rounded").is_null() ? event.hash : "";
  if (!event.samples.empty()) note_samples(event);
}

void History::start(const Event& event) {
  const std::int64_t step = event.step.value_or(0);
  ++starts_;
  const Json eta = member_of(event, "eta"), mode = member_of(event, "mode");
  eta_ = eta.is_integer() ? eta.integer() : 0;
  bounded_ = member_of(event, "external") != Json(true);
  repeats_ = bounded_ && mode != Json("free");
  if (!last_step_) {
    base_step_ = step;
    findings_.first_step = step + 1;
  } else if (*last_step_ != step) {
    findings_.add(Damage::lost, cat("row ", event.sequence, ": the run continues after step ", step,
                                    ", but the last complete one is ", *last_step_));
  }
  last_step_ = step;
}

void History::commit(const Event& event) {
  const Json first = member_of(event, "first");
  const std::int64_t begin = first.is_integer() ? first.integer() : event.step.value_or(0);
  if (last_step_ && begin != *last_step_ + 1)
    findings_.add(
        begin <= *last_step_ ? Damage::duplicated : Damage::lost,
        cat("row ", event.sequence, ": expected a step after ", *last_step_, ", found ", begin));
  last_step_ = event.step;
  findings_.last_step = event.step.value_or(0);
  if (!event.batch) return;
  if (last_batch_ && *event.batch != *last_batch_ + 1)
    findings_.add(*event.batch <= *last_batch_ ? Damage::duplicated : Damage::lost,
                  cat("row ", event.sequence, ": expected batch ", *last_batch_ + 1, ", found ",
                      *event.batch));
  last_batch_ = event.batch;
  ++findings_.batches;
  auto ids = std::move(batched_[*event.batch]);
  batched_.erase(*event.batch);
  if (ids.empty())
    findings_.add(Damage::lost, cat("row ", event.sequence, ": batch ", *event.batch,
                                    " was trained, but no sample is part of it"));
  by_step_[begin] = std::move(ids);
}

// Weights that a checkpoint kept from before the ledger began.
bool History::is_unrecorded(std::int64_t version) const {
  return base_step_ > 0 && (weights_.empty() || version < weights_.begin()->first);
}

void History::check_versions(const Event& event, std::int64_t id, const Json& versions) {
  if (!versions.is_array()) return;
  for (const Json& run : versions.array()) {
    if (!run.is_array() || run.array().empty() || !run.array()[0].is_integer()) continue;
    const std::int64_t version = run.array()[0].integer(), batch = event.batch.value_or(0);
    const std::string which = cat("sample ", id, " of batch ", batch, " (row ", event.sequence,
                                  ") has tokens of weights ", version);
    if (version > batch)
      findings_.add(Damage::stale, which + ", which were not made yet");
    else if (bounded_ && version < batch - eta_)
      findings_.add(Damage::stale, cat(which, "; async.eta is ", eta_));
    else if (bounded_ && !versions_.contains(version) && !is_unrecorded(version))
      findings_.add(Damage::lost, which + ", which were never published");
  }
}

void History::note_sampled(const Event& event, std::int64_t id, const Json& hash,
                           const Json& versions) {
  SampleState& sample = samples_[id];
  check_versions(event, id, versions);
  const std::string text = versions.dump(), found = hash.is_string() ? hash.string() : "";
  if (sample.sampled > 0 && sample.sampled_at == starts_)
    findings_.add(Damage::duplicated,
                  cat("sample ", id, " was sampled twice (row ", event.sequence, ")"));
  else if (sample.sampled > 0 && repeats_ && sample.versions == text && sample.hash != found)
    findings_.add(Damage::duplicated,
                  cat("sample ", id, " was sampled again with the same weights (row ",
                      event.sequence, ") and has the hash ", found, " instead of ", sample.hash));
  ++sample.sampled;
  sample.hash = found;
  sample.versions = text;
  sample.sampled_at = starts_;
}

void History::note_samples(const Event& event) {
  const auto ids = samples_of(event);
  if (!ids) {
    findings_.add(Damage::chain, cat("row ", event.sequence, ": the samples are no list of ids"));
    return;
  }
  const Json detail = event.kind == "sampled" ? detail_of(event) : Json();
  for (std::size_t n = 0; n < ids->size(); ++n) {
    note_sample(event, (*ids)[n]);
    if (event.kind == "sampled")
      note_sampled(event, (*ids)[n], element_of(detail, "hashes", n),
                   element_of(detail, "versions", n));
  }
}

void History::note_sample(const Event& event, std::int64_t id) {
  SampleState& sample = samples_[id];
  if (sample.batch >= 0 && event.batch != sample.batch)
    findings_.add(Damage::duplicated,
                  cat("sample ", id, " is one of batch ", sample.batch, " and of batch ",
                      event.batch.value_or(-1), " (row ", event.sequence, ")"));
  sample.batch = event.batch.value_or(-1);
  if (last_batch_ && sample.batch <= *last_batch_)
    findings_.add(Damage::duplicated,
                  cat("sample ", id, " is ", event.kind, " for batch ", sample.batch,
                      ", which is trained (row ", event.sequence, ")"));
  if (event.kind == "admitted") ++sample.admitted;
  if (event.kind == "leased") ++sample.leased;
  if (event.kind == "rewarded") ++sample.rewarded;
  if (event.kind == "dropped") ++sample.dropped;
  if (event.kind != "batched") return;
  if (++sample.batched > 1)
    findings_.add(Damage::duplicated,
                  cat("sample ", id, " is trained twice (row ", event.sequence, ")"));
  batched_[sample.batch].insert(id);
}

void History::check_sample(std::int64_t id, const SampleState& sample) {
  const std::string which = cat("sample ", id, " of batch ", sample.batch);
  const bool complete = last_batch_ && sample.batch <= *last_batch_;
  if (sample.batched > 0 && sample.dropped > 0)
    findings_.add(Damage::duplicated, which + " is trained and dropped");
  if (sample.dropped > 0) {
    ++findings_.dropped;
    return;
  }
  if (!complete) {
    ++findings_.open;
    return;
  }
  if (sample.batched == 0) {
    findings_.add(Damage::lost, which + " was admitted, but neither trained nor dropped");
    return;
  }
  ++findings_.trained;
  if (sample.admitted == 0) findings_.add(Damage::lost, which + " was never admitted");
  if (sample.rewarded == 0) findings_.add(Damage::lost, which + " has no reward");
  // A checkpoint of async.mode free whose ledger begins later brought its samples along.
  if (base_step_ > 0 && sample.sampled == 0) return;
  if (sample.sampled == 0) findings_.add(Damage::lost, which + " was never sampled");
  if (sample.leased == 0) findings_.add(Damage::lost, which + " was given to no rollout");
}

void History::finish() {
  std::vector<std::int64_t> ids;
  for (const auto& [id, sample] : samples_) ids.push_back(id);
  std::ranges::sort(ids);
  for (const std::int64_t id : ids) check_sample(id, samples_.at(id));
  for (const auto& [batch, members] : batched_)
    if (last_batch_ && batch < *last_batch_)
      findings_.add(Damage::lost,
                    cat("batch ", batch, " has ", members.size(), " samples that no step trained"));
  if (findings_.last_step == 0) findings_.last_step = last_step_.value_or(0);
}

}  // namespace troupe::launch::audit
