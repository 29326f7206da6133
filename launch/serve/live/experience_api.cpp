#include "launch/serve/live/experience_api.h"

#include <algorithm>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/token_json.h"

namespace troupe::launch::serve::live {

using api::ApiFailure;

namespace {

constexpr std::int64_t max_groups = 1024;
/// In the order of ExperienceApi::Reason.
constexpr std::array<std::string_view, 6> reason_names{"field",      "duplicate", "not_offered",
                                                       "not_leased", "too_old",   "logprobs"};
constexpr std::size_t max_warned = 64;

Json group_json(const LeasedGroup& group) {
  Json::Array ids, leases;
  for (const std::uint64_t id : group.sample_ids) ids.emplace_back(id);
  for (const std::string& lease : group.leases) leases.emplace_back(lease);
  return Json::Object{{"group", group.group},
                      {"sample_ids", std::move(ids)},
                      {"leases", std::move(leases)},
                      {"prompt_token_ids", api::ids_json(group.prompt)},
                      {"answer", group.answer}};
}

[[noreturn]] void conflict(const std::string& message, const char* field, const char* code) {
  throw api::ApiFailure(409, {message, "invalid_request_error", field, code});
}

/// The one who leases: an API key; without keys everybody who can open the socket.
std::string client_of(const http::Request& request) {
  return request.key.empty() ? request.client.substr(0, request.client.rfind(':')) : request.key;
}

}  // namespace

ExperienceApi::ExperienceApi(SampleExchange& exchange, const api::SampledTokens& sampled,
                             const std::atomic<std::uint64_t>& version, const Limits& limits)
    : exchange_(exchange),
      sampled_(sampled),
      version_(version),
      limits_(limits),
      workers_(api::Workers::Limits{.threads = 1}) {
}

void ExperienceApi::add_to(http::Router& router) {
  add(router, "/v1/lease",
      [this](const std::string& client, const Json& body) { return lease(client, body); });
  add(router, "/v1/experience",
      [this](const std::string& client, const Json& body) { return accept(client, body); });
}

void ExperienceApi::add(http::Router& router, const char* path,
                        std::function<Json(const std::string&, const Json&)> answer) {
  const api::Workers::Task task = [this, answer = std::move(answer)](const http::Request& from,
                                                                     const http::Responder& to) {
    if (!limits_.keys.empty() && std::ranges::find(limits_.keys, from.key) == limits_.keys.end())
      throw api::ApiFailure(403, {cat("the API key ", quote(from.key),
                                      " makes no samples of this run ", "(rollout.lease_keys)"),
                                  "invalid_request_error", "", "key_not_allowed"});
    to.respond(api::json_answer(answer(client_of(from), api::parse_body(from))));
  };
  router.add({"POST", path, [this, task](http::Request from, http::Responder to) {
                workers_.post(std::move(from), std::move(to), task);
              }});
}

Json ExperienceApi::lease(const std::string& client, const Json& body) {
  api::RequestFields fields(body);
  const auto groups = fields.integer("groups", 1, max_groups).value_or(1);
  Json::Array list;
  for (const LeasedGroup& group : exchange_.lease(static_cast<std::size_t>(groups), client))
    list.push_back(group_json(group));
  return Json::Object{{"groups", std::move(list)},
                      {"weight_version", version_.load()},
                      {"lease_seconds", static_cast<std::int64_t>(exchange_.lease_time().count())}};
}

Json ExperienceApi::accept(const std::string& client, const Json& body) {
  try {
    const SentSample sent =
        read_sent_sample(body, {limits_.vocabulary, limits_.length, version_.load(),
                                limits_.mask_bytes, limits_.masks_required});
    const Claim claim{.sample_id = sent.sample_id, .lease = sent.lease, .client = client};
    require(exchange_.check(claim), sent, 0);  // before anything of the sample is compared
    const auto offer = exchange_.find(sent.sample_id);
    if (!offer) require(Arrival::not_offered, sent, 0);  // since then
    actors::protocol::Completion completion = completion_of(sent, offer->request.prompt);
    require_sampled_here(sent);
    require(exchange_.accept(std::move(completion), claim), sent, offer->oldest);
    ++accepted_;
    return Json::Object{{"status", "accepted"}, {"sample_id", sent.sample_id}};
  } catch (const api::ApiFailure& failure) {
    if (failure.status() == 400) count(Reason::field);
    warn(client, failure.what());
    throw;
  }
}

void ExperienceApi::require(Arrival arrival, const SentSample& sent, std::uint64_t oldest) {
  const std::string which = cat("sample ", sent.sample_id);
  switch (arrival) {
    case Arrival::accepted:
      return;
    case Arrival::duplicate:
      count(Reason::duplicate);
      conflict(cat(which, " was accepted before; each sample id is accepted once"), "sample_id",
               "duplicate");
    case Arrival::not_offered:
      count(Reason::not_offered);
      conflict(cat(which, " is not wanted: it was not leased, or its batch is over"), "sample_id",
               "not_offered");
    case Arrival::not_leased:
      count(Reason::not_leased);
      conflict(cat(which, " has another lease: the one that was sent has ended, or belongs to ",
                   "another sample or another client; lease again"),
               "lease", "not_leased");
    case Arrival::too_old:
      count(Reason::too_old);
      conflict(cat(which, " is too old: a token has a version before ", oldest,
                   ", the oldest that the sample may have; sample after leasing"),
               "sample_id", "too_old");
  }
}

void ExperienceApi::require_sampled_here(const SentSample& sent) {
  api::SampledTokens::Chain chain = 0;
  for (std::size_t token = 0; token < sent.tokens.size(); ++token) {
    chain = sampled_.next(chain, sent.tokens[token]);
    const std::string_view mask = sent.masks.empty() ? std::string_view() : sent.masks[token];
    if (sent.mask[token] == 0 ||
        sampled_.contains(chain, sent.logp[token], sent.versions[token], mask))
      continue;
    count(Reason::logprobs);
    const std::string where = cat("logprobs[", token, "]");
    conflict(cat(where, ": this server has not sampled token ", sent.tokens[token],
                 " after the tokens before it with log-probability ", to_text(sent.logp[token]),
                 sent.masks.empty() ? "" : ", this sampling mask", " and version ",
                 sent.versions[token], "; send what /v1/completions has answered, unchanged"),
             where.c_str(), "not_sampled_here");
  }
}

void ExperienceApi::warn(const std::string& client, const std::string& what) {
  {
    const std::lock_guard lock(warned_mutex_);
    if (warned_.size() >= max_warned || !warned_.insert(client).second) return;
  }
  log_warning(cat("a sample of client ", quote(client, 64), " was refused: ", what,
                  "; /metrics counts those that follow"));
}

std::string ExperienceApi::metrics() const {
  std::string out =
      cat("# HELP troupe:experience_accepted_total Samples that were accepted.\n",
          "# TYPE troupe:experience_accepted_total counter\ntroupe:experience_accepted_total ",
          accepted_.load(), "\n# HELP troupe:experience_refused_total Samples that were refused.\n",
          "# TYPE troupe:experience_refused_total counter\n");
  for (std::size_t i = 0; i < reasons; ++i)
    out += cat("troupe:experience_refused_total{reason=\"", reason_names[i], "\"} ",
               refused_[i].load(), "\n");
  return out;
}

}  // namespace troupe::launch::serve::live
