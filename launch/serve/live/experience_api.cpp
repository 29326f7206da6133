#include "launch/serve/live/experience_api.h"

#include <utility>

#include "engine/base/text.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"
#include "launch/serve/api/token_json.h"
#include "launch/serve/live/experience_fields.h"

namespace troupe::launch::live {

using api::ApiFailure;

namespace {

constexpr int worker_threads = 1;
constexpr std::size_t max_unread = 2048;
constexpr std::int64_t max_groups = 1024;

Json group_json(const LeasedGroup& group) {
  Json::Array ids;
  for (const std::uint64_t id : group.sample_ids) ids.emplace_back(id);
  return Json::Object{{"group", group.group},
                      {"sample_ids", std::move(ids)},
                      {"prompt_token_ids", api::ids_json(group.prompt)},
                      {"answer", group.answer}};
}

[[noreturn]] void conflict(const std::string& message, const char* code) {
  throw ApiFailure(409, {message, "invalid_request_error", "sample_id", code});
}

}  // namespace

ExperienceApi::ExperienceApi(SampleExchange& exchange, const std::atomic<std::uint64_t>& version,
                             const Limits& limits)
    : exchange_(exchange),
      version_(version),
      limits_(limits),
      workers_(worker_threads, max_unread) {
}

void ExperienceApi::add_to(http::Router& router) {
  add(router, "/v1/lease", [this](const Json& body) { return lease(body); });
  add(router, "/v1/experience", [this](const Json& body) { return accept(body); });
}

void ExperienceApi::add(http::Router& router, const char* path,
                        std::function<Json(const Json&)> answer) {
  router.add(
      {"POST", path, [this, answer = std::move(answer)](http::Request from, http::Responder to) {
         auto task = [answer, from = std::move(from), to] {
           api::answer_failures(
               from, to, [&] { to.respond(api::json_answer(answer(api::parse_body(from)))); });
         };
         if (!workers_.post(std::move(task)))
           to.respond(api::error_answer({Errc::full, "too many requests wait to be read"}));
       }});
}

Json ExperienceApi::lease(const Json& body) {
  api::RequestFields fields(body);
  const auto groups = fields.integer("groups", 1, max_groups).value_or(1);
  Json::Array list;
  for (const LeasedGroup& group : exchange_.lease(static_cast<std::size_t>(groups)))
    list.push_back(group_json(group));
  return Json::Object{{"groups", std::move(list)},
                      {"weight_version", version_.load()},
                      {"lease_seconds", static_cast<std::int64_t>(exchange_.lease_time().count())}};
}

Json ExperienceApi::accept(const Json& body) {
  const SentSample sent =
      read_sent_sample(body, limits_.vocabulary, limits_.length, version_.load());
  const std::string which = cat("sample ", sent.sample_id);
  // Where there is no offer, accept() knows why.
  const auto offer = exchange_.find(sent.sample_id);
  actors::protocol::Completion completion{.sample_id = sent.sample_id};
  if (offer) completion = completion_of(sent, offer->request.prompt);
  switch (exchange_.accept(std::move(completion))) {
    case Arrival::accepted:
      break;
    case Arrival::duplicate:
      conflict(cat(which, " was accepted before; each sample id is accepted once"), "duplicate");
    case Arrival::not_offered:
      conflict(cat(which, " is not wanted: it was not leased, or its batch is over"),
               "not_offered");
    case Arrival::too_old:
      conflict(cat(which, " is too old: a token has a version before ", offer->oldest,
                   ", the oldest that the sample may have; sample after leasing"),
               "too_old");
  }
  return Json::Object{{"status", "accepted"}, {"sample_id", sent.sample_id}};
}

}  // namespace troupe::launch::live
