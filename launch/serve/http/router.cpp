#include "launch/serve/http/router.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

/// What `*` stands for if `path` is of the form `pattern`.
std::optional<std::string> match_path(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*'))
    return path == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view fixed = pattern.substr(0, pattern.size() - 1);
  if (!path.starts_with(fixed) || path.size() == fixed.size()) return std::nullopt;
  return std::string(path.substr(fixed.size()));
}

/// The paths of the routes once each, in their order.
std::string paths_of(const std::vector<Route>& routes) {
  std::vector<std::string> paths;
  for (const Route& route : routes)
    if (std::ranges::find(paths, route.path) == paths.end()) paths.push_back(route.path);
  return join(paths, ", ");
}

}  // namespace

Router& Router::add(Route route) {
  for (const Route& other : routes_)
    check(other.method != route.method || other.path != route.path,
          cat("two routes of ", route.method, " ", route.path));
  routes_.push_back(std::move(route));
  return *this;
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  std::set<std::string> allowed;
  for (const Route& route : routes_) {
    auto rest = match_path(route.path, path);
    if (!rest) continue;
    if (route.method == method || (route.method == "GET" && method == "HEAD"))
      return {&route, std::move(*rest), {}};
    allowed.insert(route.method);
    if (route.method == "GET") allowed.insert("HEAD");
  }
  if (allowed.empty() && path != "*")
    return {nullptr, "",
            error_response(404, {.message = cat("there is no ", quote(path, 256),
                                                "; this server has ", paths_of(routes_)),
                                 .code = "not_found"})};
  allowed.insert("OPTIONS");
  Response response{.status = 204};
  if (method != "OPTIONS")
    response = error_response(405, {.message = cat(quote(method, 32), " is not allowed here"),
                                    .code = "method_not_allowed"});
  response.headers = {
      {"Allow", join(std::vector<std::string>(allowed.begin(), allowed.end()), ", ")}};
  return {nullptr, "", std::move(response)};
}

bool Router::open(std::string_view path) const {
  for (const Route& route : routes_)
    if (route.access == Access::open && match_path(route.path, path)) return true;
  return false;
}

std::shared_ptr<const ClientForm> Router::form(std::string_view path) const {
  for (const Route& route : routes_)
    if (route.form != nullptr && match_path(route.path, path)) return route.form;
  return nullptr;
}

}  // namespace troupe::launch::serve::http
