#include "launch/serve/live/experience_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/roles/rules/command/json_lines.h"
#include "engine/base/text.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::live {

using actors::protocol::Completion;
using api::refuse;

namespace {

/// A list with a value for each token.
const Json::Array& list_of(api::RequestFields& fields, std::string_view name, std::size_t length) {
  const std::string field(name);
  const Json* found = fields.find(name);
  if (found == nullptr) refuse(field, cat(field, " is missing"));
  if (!found->is_array())
    refuse(field, cat(field, ": expected a list, found ", found->type_name()));
  if (found->array().size() != length)
    refuse(field, cat(field, ": expected ", length, " values, one for each of token_ids, found ",
                      found->array().size()));
  return found->array();
}

std::vector<std::uint8_t> read_mask(api::RequestFields& fields, std::size_t length) {
  std::vector<std::uint8_t> mask;
  for (const Json& value : list_of(fields, "loss_mask", length)) {
    const bool one = value.is_integer() && value.integer() == 1;
    if (!one && !(value.is_integer() && value.integer() == 0)) {
      const std::string where = cat("loss_mask[", mask.size(), "]");
      refuse(where, cat(where, ": expected 0 or 1, found ", quote(value.dump(), 40)));
    }
    mask.push_back(one ? 1 : 0);
  }
  return mask;
}

std::vector<float> read_logp(api::RequestFields& fields, const std::vector<std::uint8_t>& mask) {
  std::vector<float> logp;
  for (const Json& value : list_of(fields, "logprobs", mask.size())) {
    const std::size_t token = logp.size();
    logp.push_back(0);
    if (mask[token] == 0) continue;  // what others wrote has none
    const double found = value.is_number() ? value.number() : 1;
    if (!(found <= 0 && found >= std::numeric_limits<float>::lowest())) {
      const std::string where = cat("logprobs[", token, "]");
      refuse(where, cat(where, ": expected a log-probability, at most 0, because loss_mask is 1, ",
                        "found ", quote(value.dump(), 40)));
    }
    logp.back() = static_cast<float>(found);
  }
  return logp;
}

std::vector<std::uint64_t> read_versions(api::RequestFields& fields,
                                         const std::vector<std::uint8_t>& mask,
                                         std::uint64_t newest) {
  std::vector<std::uint64_t> versions;
  for (const Json& value : list_of(fields, "weight_versions", mask.size())) {
    const std::size_t token = versions.size();
    versions.push_back(versions.empty() ? 0 : versions.back());
    if (mask[token] == 0) continue;
    const bool known = value.is_integer() && value.integer() >= 0 &&
                       static_cast<std::uint64_t>(value.integer()) <= newest;
    if (!known) {
      const std::string where = cat("weight_versions[", token, "]");
      refuse(where, cat(where, ": expected a version that there is, 0 to ", newest,
                        ", because loss_mask is 1, found ", quote(value.dump(), 40)));
    }
    versions.back() = static_cast<std::uint64_t>(value.integer());
  }
  return versions;
}

bool read_truncated(api::RequestFields& fields) {
  const std::string reason = fields.text("finish_reason").value_or("stop");
  if (reason != "stop" && reason != "length")
    refuse("finish_reason",
           cat("finish_reason: expected \"stop\" or \"length\", found ", quote(reason, 40)));
  return reason == "length";
}

void refuse_unknown(const api::RequestFields& fields) {
  const auto unknown = fields.unknown();
  if (!unknown.empty()) refuse(unknown.front(), cat("unknown field ", quote(unknown.front(), 40)));
}

}  // namespace

SentSample read_sent_sample(const Json& body, std::int64_t vocabulary, std::int64_t longest,
                            std::uint64_t newest) {
  api::RequestFields fields(body);
  SentSample sent;
  const auto id = fields.integer("sample_id", 0, std::numeric_limits<std::int64_t>::max());
  if (!id) refuse("sample_id", "sample_id is missing");
  sent.sample_id = static_cast<std::uint64_t>(*id);
  const auto lease = fields.text("lease");
  if (!lease) refuse("lease", "lease is missing: /v1/lease answers one for each sample id");
  sent.lease = *lease;
  auto tokens = fields.ids("token_ids", vocabulary);
  if (!tokens) refuse("token_ids", "token_ids is missing");
  if (std::ssize(*tokens) > longest)
    refuse("token_ids", cat("token_ids: expected at most ", longest, " tokens (train.max_length), ",
                            "found ", tokens->size()));
  sent.tokens = std::move(*tokens);
  sent.mask = read_mask(fields, sent.tokens.size());
  sent.logp = read_logp(fields, sent.mask);
  sent.versions = read_versions(fields, sent.mask, newest);
  // As for the programs of the rule `command`.
  const double largest = actors::rules::max_reward;
  const auto reward = fields.number("reward", -largest, largest);
  if (!reward) refuse("reward", "reward is missing");
  sent.reward = *reward;
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

}  // namespace troupe::launch::live
