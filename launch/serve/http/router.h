// Router: the table of routes, which is the only source of what a server answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::http {

/// Whether a route is open to clients without an API key, when keys are configured.
enum class Access { key, open };

/// What the clients of a route expect where they are not those of the OpenAI API.
struct ClientForm {
  /// A header field (lower case) that may have the API key in place of Authorization.
  std::string key_field;
  /// Writes an error of error_response() in the form of these clients.
  std::function<Response(Response)> error;
};

struct Route {
  std::string method;  ///< "GET" (also answers HEAD) or "POST", ...
  std::string path;    ///< exact; a `*` at the end stands for one or more characters
  Handler handler;
  Access access = Access::key;
  std::shared_ptr<const ClientForm> form = nullptr;  ///< nullptr: that of OpenAI
};

class Router {
 public:
  /// Adds a route. Two routes of one method and path are a Bug.
  Router& add(Route route);
  const std::vector<Route>& routes() const { return routes_; }

  /// The route of a request, with what `*` stands for; or nullptr and the response: 404, 405 with
  /// Allow, 204 with Allow for OPTIONS.
  struct Match {
    const Route* route = nullptr;
    std::string rest;
    Response otherwise;
  };
  Match match(std::string_view method, std::string_view path) const;
  /// Whether a route of this path is open, whatever its method.
  bool open(std::string_view path) const;
  /// Of the route of this path, whatever its method, or nullptr.
  std::shared_ptr<const ClientForm> form(std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace troupe::launch::serve::http
