#include "launch/serve/api/admin_api.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/answering.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::size_t max_waiting_changes = 16;
/// What has been accepted is done, also when its client has disconnected.
constexpr std::chrono::milliseconds no_deadline{0};

}  // namespace

namespace fs = std::filesystem;

Result<WeightsRoot> WeightsRoot::open(const std::string& folder) {
  std::error_code failed;
  const fs::path real = fs::canonical(folder, failed);
  if (failed || !fs::is_directory(real, failed))
    return fail(Errc::usage, cat("--weights-root ", folder, ": expected a folder"));
  return WeightsRoot(real.string());
}

Result<std::string> WeightsRoot::find(const std::string& name) const {
  const fs::path path(name);
  const auto leads_out = [](const fs::path& part) { return part == ".."; };
  const auto outside = [&] {
    return fail(Errc::bad_input,
                cat(quote(name), ": expected the name of a checkpoint below --weights-root"));
  };
  if (path.empty() || path.is_absolute() || name.find('\0') != std::string::npos ||
      std::ranges::any_of(path, leads_out))
    return outside();
  std::error_code failed;
  const fs::path real = fs::canonical(fs::path(folder_) / path, failed);
  if (failed || !fs::is_directory(real, failed))
    return fail(Errc::not_found, cat("no checkpoint ", quote(name), " below --weights-root"));
  const fs::path root(folder_);
  if (std::ranges::mismatch(root, real).in1 != root.end()) return outside();
  return real.string();
}

// One worker: weights are loaded one after the other.
AdminApi::AdminApi(ModelSet& models, std::optional<WeightsRoot> root)
    : models_(models),
      root_(std::move(root)),
      workers_({.waiting = max_waiting_changes, .deadline = no_deadline}) {
}

http::Router AdminApi::routes() {
  http::Router router;
  add(router, "/pause", [this](const http::Request&) -> Json {
    models_.set_paused(true);
    log_info("generation is paused");
    return Json::Object{{"status", "paused"}};
  });
  add(router, "/resume", [this](const http::Request&) -> Json {
    models_.set_paused(false);
    log_info("generation is resumed");
    return Json::Object{{"status", "resumed"}};
  });
  add(router, "/update_weights_from_disk",
      [this](const http::Request& from) { return load_weights(parse_body(from)); });
  add(router, "/v1/load_lora_adapter",
      [this](const http::Request& from) { return load_adapter(parse_body(from)); });
  add(router, "/v1/unload_lora_adapter",
      [this](const http::Request& from) { return unload_adapter(parse_body(from)); });
  router.add({"GET", "/is_paused", [this](const http::Request&, const http::Responder& to) {
                to.respond(json_answer(Json::Object{{"is_paused", models_.paused()}}));
              }});
  return router;
}

void AdminApi::add(http::Router& router, const std::string& path,
                   std::function<Json(const http::Request&)> answer) {
  router.add(
      {"POST", path, [this, answer = std::move(answer)](http::Request from, http::Responder to) {
         workers_.post(std::move(from), std::move(to),
                       [answer](const http::Request& request, const http::Responder& responder) {
                         responder.respond(json_answer(answer(request)));
                       });
       }});
}

/// The folder that a field names below the root. There is no other field.
std::string AdminApi::folder_in(RequestFields& fields, const std::string& field) const {
  const auto name = fields.text(field);
  if (!name) refuse(field, field + " is missing: a name below --weights-root");
  if (!root_)
    refuse_unsupported(field, "nothing can be loaded; start the server with --weights-root");
  for (const std::string& other : fields.unknown())
    refuse_unsupported(other, cat(other, " is not supported"));
  return value_or_refuse(field, root_->find(*name));
}

Json AdminApi::load_weights(const Json& body) {
  RequestFields fields(body);
  const std::string folder = folder_in(fields, "model_path");
  const std::uint64_t version = value_or_refuse("model_path", models_.load_weights(folder));
  log_info(cat("weights ", quote(folder), " are in use, version ", version));
  return Json::Object{{"success", true}, {"weight_version", version}};
}

Json AdminApi::load_adapter(const Json& body) {
  RequestFields fields(body);
  const auto name = fields.text("lora_name");
  if (!name) refuse("lora_name", "lora_name is missing");
  const std::string folder = folder_in(fields, "lora_path");
  if (auto loaded = models_.load_adapter(*name, folder); !loaded)
    refuse(loaded.error().code == Errc::usage ? "lora_name" : "lora_path", loaded.error().what);
  log_info(cat("adapter ", quote(*name), " is loaded from ", quote(folder)));
  return Json::Object{{"success", true}};
}

Json AdminApi::unload_adapter(const Json& body) {
  RequestFields fields(body);
  const auto name = fields.text("lora_name");
  if (!name) refuse("lora_name", "lora_name is missing");
  if (auto unloaded = models_.unload_adapter(*name); !unloaded)
    refuse("lora_name", unloaded.error().what);
  log_info(cat("adapter ", quote(*name), " is unloaded"));
  return Json::Object{{"success", true}};
}

}  // namespace troupe::launch::serve::api
