#include "launch/serve/api/admin_api.h"

#include <utility>

#include "engine/base/log.h"
#include "engine/base/text.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::api {

namespace {

constexpr std::size_t max_waiting_changes = 16;

}  // namespace

// One worker: weights are loaded one after the other.
AdminApi::AdminApi(ServedModel& model, std::vector<engine::serving::GenerationService*> services,
                   std::optional<WeightsRoot> root)
    : model_(model),
      services_(std::move(services)),
      root_(std::move(root)),
      workers_(1, max_waiting_changes) {
}

http::Router AdminApi::routes() {
  http::Router router;
  add(router, "/pause", [this](const http::Request&) -> Json {
    for (auto* service : services_) service->pause();
    log_info("generation is paused");
    return Json::Object{{"status", "paused"}};
  });
  add(router, "/resume", [this](const http::Request&) -> Json {
    for (auto* service : services_) service->resume();
    log_info("generation is resumed");
    return Json::Object{{"status", "resumed"}};
  });
  add(router, "/update_weights_from_disk",
      [this](const http::Request& from) { return load_weights(parse_body(from)); });
  router.add({"GET", "/is_paused", [this](const http::Request&, const http::Responder& to) {
                to.respond(json_answer(Json::Object{{"is_paused", services_.front()->paused()}}));
              }});
  return router;
}

void AdminApi::add(http::Router& router, const std::string& path,
                   std::function<Json(const http::Request&)> answer) {
  router.add(
      {"POST", path, [this, answer = std::move(answer)](http::Request from, http::Responder to) {
         const auto task = [answer, from = std::move(from), to] {
           answer_failures(from, to, [&] { to.respond(json_answer(answer(from))); });
         };
         if (!workers_.post(task))
           to.respond(error_answer({Errc::full, "too many requests wait; try again later"}));
       }});
}

Json AdminApi::load_weights(const Json& body) {
  RequestFields fields(body);
  const auto name = fields.text("model_path");
  if (!name) refuse("model_path", "model_path is missing: the name of a checkpoint");
  if (!root_)
    refuse_unsupported("model_path",
                       "weights cannot be loaded; start the server with "
                       "--weights-root");
  for (const std::string& other : fields.unknown())
    refuse_unsupported(other, cat(other, " is not supported"));
  const std::string folder = value_or_refuse("model_path", root_->find(*name));
  const auto write = value_or_refuse("model_path", model_.read_weights(folder));
  const std::uint64_t version = value_or_throw(services_.front()->change_weights(write));
  log_info(cat("weights ", quote(*name), " are in use, version ", version));
  return Json::Object{
      {"success", true}, {"message", cat("loaded ", *name)}, {"weight_version", version}};
}

}  // namespace troupe::launch::api
