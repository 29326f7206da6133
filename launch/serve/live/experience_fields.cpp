#include "launch/serve/live/experience_fields.h"

#include <algorithm>
#include <limits>

#include "actors/roles/rules/json_lines.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "engine/data/experience_checks.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::serve::live {

using actors::protocol::Completion;
using api::refuse;

namespace {

/// The columns of a sample as they were sent: of the right types, but not checked.
struct SentColumns {
  std::vector<std::int64_t> tokens, mask, versions;
  std::vector<double> logp;
};

/// The values of the list `name`, which `value_of` reads; it refuses those of another type.
template <class T, class ValueOf>
std::vector<T> read_column(api::RequestFields& fields, const std::string& name, ValueOf value_of) {
  const Json* found = fields.find(name);
  if (found == nullptr) refuse(name, cat(name, " is missing"));
  if (!found->is_array()) refuse(name, cat(name, ": expected a list, found ", found->type_name()));
  std::vector<T> out;
  out.reserve(found->array().size());
  for (const Json& value : found->array())
    out.push_back(value_of(value, cat(name, "[", out.size(), "]"), out.size()));
  return out;
}

SentColumns read_columns(api::RequestFields& fields, std::vector<std::int32_t> tokens) {
  SentColumns columns;
  columns.tokens.assign(tokens.begin(), tokens.end());
  columns.mask = read_column<std::int64_t>(
      fields, "loss_mask", [](const Json& value, const std::string& where, std::size_t) {
        if (!value.is_integer())
          refuse(where, cat(where, ": expected 0 or 1, found ", quote(value.dump(), 40)));
        return value.integer();
      });
  // What others wrote has no log-probability and no version: those values are not read.
  const auto is_read = [&](std::size_t token) {
    return token < columns.mask.size() && columns.mask[token] != 0;
  };
  columns.logp = read_column<double>(
      fields, "logprobs", [&](const Json& value, const std::string& where, std::size_t token) {
        if (is_read(token) && !value.is_number())
          refuse(where, cat(where, ": expected a log-probability, because loss_mask is 1, found ",
                            quote(value.dump(), 40)));
        return is_read(token) ? value.number() : 0;
      });
  columns.versions = read_column<std::int64_t>(
      fields, "weight_versions",
      [&](const Json& value, const std::string& where, std::size_t token) {
        if (is_read(token) && !value.is_integer())
          refuse(where, cat(where, ": expected a version, because loss_mask is 1, found ",
                            quote(value.dump(), 40)));
        return is_read(token) ? value.integer() : 0;
      });
  return columns;
}

/// The columns in the types of a sample; where the mask is 0, the version of the token before.
void take(const SentColumns& columns, SentSample& sent) {
  for (std::size_t token = 0; token < columns.tokens.size(); ++token) {
    const bool sampled = columns.mask[token] == 1;
    sent.mask.push_back(sampled ? 1 : 0);
    sent.logp.push_back(sampled ? static_cast<float>(columns.logp[token]) : 0);
    const std::uint64_t before = sent.versions.empty() ? 0 : sent.versions.back();
    sent.versions.push_back(sampled ? static_cast<std::uint64_t>(columns.versions[token]) : before);
  }
}

bool read_truncated(api::RequestFields& fields) {
  const std::string reason = fields.text("finish_reason").value_or("stop");
  if (reason != "stop" && reason != "length")
    refuse("finish_reason",
           cat("finish_reason: expected \"stop\" or \"length\", found ", quote(reason, 40)));
  return reason == "length";
}

/// The bytes of a sampling mask, checked; `text`: in base64.
std::string read_mask(const std::string& text, const std::string& where, std::int32_t token,
                      const SampleLimits& limits) {
  const auto longest = static_cast<std::size_t>(max_id_set_bytes(limits.vocabulary));
  if (text.size() > (longest + 2) / 3 * 4)
    refuse(where, cat(where, ": expected at most ", longest, " bytes in base64, found ",
                      text.size(), " characters"));
  auto bytes = decode_base64(text);
  if (!bytes) refuse(where, cat(where, ": expected base64, found ", quote(text, 40)));
  if (bytes->empty()) return {};
  const auto kept = decode_id_set(*bytes, limits.vocabulary);
  if (!kept) refuse(where, cat(where, ": ", kept.error().what));
  if (!std::ranges::binary_search(*kept, token))
    refuse(where, cat(where, ": expected a set that has token ", token, ", found one of ",
                      kept->size(), " others"));
  return std::move(*bytes);
}

/// The field `sampling_masks`, where it is sent.
void read_masks(api::RequestFields& fields, const SampleLimits& limits, SentSample& sent) {
  const std::string name = "sampling_masks";
  if (fields.find(name) == nullptr) {
    if (limits.masks_required)
      refuse(name, cat(name, " is missing: rollout.replay_sampling_mask is on"));
    return;
  }
  if (limits.mask_bytes == 0)
    refuse(name, cat(name, ": this run takes none (rollout.replay_sampling_mask)"));
  std::int64_t bytes = 0;
  const auto read = [&](const Json& value, const std::string& where, std::size_t token) {
    if (token >= sent.mask.size() || sent.mask[token] == 0) return std::string();
    if (!value.is_string())
      refuse(where, cat(where, ": expected base64, because loss_mask is 1, found ",
                        quote(value.dump(), 40)));
    std::string mask = read_mask(value.string(), where, sent.tokens[token], limits);
    bytes += std::ssize(mask);
    if (bytes > limits.mask_bytes)
      refuse(name, cat(name, ": expected at most ", limits.mask_bytes,
                       " bytes, the share of a sample in rollout.mask_bytes, found more"));
    return mask;
  };
  const auto masks = read_column<std::string>(fields, name, read);
  if (masks.size() != sent.tokens.size())
    refuse(name, cat(name, ": expected ", sent.tokens.size(), " values, one for each of token_ids",
                     ", found ", masks.size()));
  for (const std::string& mask : masks) sent.masks.push_back(mask);
}

void refuse_unknown(const api::RequestFields& fields) {
  const auto unknown = fields.unknown();
  if (!unknown.empty()) refuse(unknown.front(), cat("unknown field ", quote(unknown.front(), 40)));
}

}  // namespace

SentSample read_sent_sample(const Json& body, const SampleLimits& limits) {
  api::RequestFields fields(body);
  SentSample sent;
  const auto id = fields.integer("sample_id", 0, std::numeric_limits<std::int64_t>::max());
  if (!id) refuse("sample_id", "sample_id is missing");
  sent.sample_id = static_cast<std::uint64_t>(*id);
  const auto lease = fields.text("lease");
  if (!lease) refuse("lease", "lease is missing: /v1/lease answers one for each sample id");
  sent.lease = *lease;
  auto tokens = fields.ids("token_ids", limits.vocabulary);
  if (!tokens) refuse("token_ids", "token_ids is missing");
  sent.tokens = *tokens;
  const SentColumns columns = read_columns(fields, std::move(*tokens));
  // As for the programs of the rule `command`.
  const double largest = actors::rules::max_reward;
  const auto reward = fields.number("reward", -largest, largest);
  if (!reward) refuse("reward", "reward is missing");
  sent.reward = *reward;
  const auto bad = engine::data::find_bad_value(
      {columns.tokens, columns.mask, columns.logp, columns.versions, reward},
      {limits.vocabulary, limits.longest, static_cast<std::int64_t>(limits.newest)});
  if (bad) refuse(bad->field, bad->what);
  take(columns, sent);
  read_masks(fields, limits, sent);
  sent.truncated = read_truncated(fields);
  refuse_unknown(fields);
  return sent;
}

Completion completion_of(const SentSample& sent, const std::vector<std::int32_t>& prompt) {
  const auto begin = static_cast<std::ptrdiff_t>(prompt.size());
  if (sent.tokens.size() < prompt.size() ||
      !std::equal(prompt.begin(), prompt.end(), sent.tokens.begin()))
    refuse("token_ids", cat("token_ids of sample ", sent.sample_id, ": expected the ",
                            prompt.size(), " prompt_token_ids of the lease first"));
  if (std::ranges::count(sent.mask, 1) != std::count(sent.mask.begin() + begin, sent.mask.end(), 1))
    refuse("loss_mask",
           cat("loss_mask: expected 0 for the prompt, the first ", prompt.size(), " tokens"));
  if (std::ranges::count(sent.mask, 1) == 0)
    refuse("loss_mask", "loss_mask: expected a 1 for each token that was sampled, found none");
  const auto first = std::ranges::find(sent.mask, 1) - sent.mask.begin();
  Completion out{.sample_id = sent.sample_id};
  out.ids.assign(sent.tokens.begin() + begin, sent.tokens.end());
  out.logp.assign(sent.logp.begin() + begin, sent.logp.end());
  out.sampled.assign(sent.mask.begin() + begin, sent.mask.end());
  if (!sent.masks.all_whole()) out.masks.append(sent.masks, prompt.size(), sent.masks.size());
  for (auto token = begin; token < std::ssize(sent.tokens); ++token) {
    // What was written before the first sampled token has no version before it.
    const auto version = sent.versions[static_cast<std::size_t>(std::max(token, first))];
    if (out.versions.empty() || out.versions.back().version != version)
      out.versions.push_back({version, 0});
    ++out.versions.back().count;
  }
  out.reward = sent.reward;
  out.finish_reason = sent.truncated ? actors::protocol::FinishReason::length
                                     : actors::protocol::FinishReason::stop;
  return out;
}

}  // namespace troupe::launch::serve::live
