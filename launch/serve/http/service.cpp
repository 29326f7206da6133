#include "launch/serve/http/service.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

bool valid_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::uint64_t random_start() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

/// How a message names a ClientForm's own field.
std::string other_field(const std::shared_ptr<const ClientForm>& form) {
  return form == nullptr ? "" : cat(", or ", form->key_field, ": KEY");
}

}  // namespace

IdleConnections::Ticket IdleConnections::add(std::function<void()> close) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket = next_++;
  waiting_.emplace(ticket, std::move(close));
  return ticket;
}

bool IdleConnections::remove(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return waiting_.erase(ticket) > 0;
}

bool IdleConnections::close_longest() {
  std::function<void()> close;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    close = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
  close();
  return true;
}

std::string request_id_of(const Request& request) {
  const std::string* given = request.header("x-request-id");
  if (given != nullptr && valid_id(*given)) return *given;
  static std::atomic<std::uint64_t> next = random_start();
  // An odd factor maps distinct numbers to distinct ones.
  const std::uint64_t mixed = next.fetch_add(1) * 0x9E3779B97F4A7C15ull;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "req-%016llx", static_cast<unsigned long long>(mixed));
  return text.data();
}

/// The name of the key that a request has.
std::optional<std::string> Service::key_name(const Request& request) const {
  std::optional<std::string> name;
  if (const std::string* value = request.header("authorization")) name = keys.name_of(*value);
  const auto form = router.form(request.path);
  if (name || form == nullptr) return name;
  const std::string* key = request.header(form->key_field);
  return key == nullptr ? std::nullopt : keys.name_of_key(*key);
}

Service::Admission Service::admit(Request& request) const {
  const std::string* host = request.header("host");
  if (loopback_names_only && host != nullptr && !names_loopback(*host))
    return {nullptr, error_response(421, {.message = cat("the Host field names ", quote(*host),
                                                         ", not this host"),
                                          .code = "wrong_host"})};
  if (keys.empty() && cross_site(request, port))
    return {nullptr, error_response(403, {.message = "a page of another site may not use a server "
                                                     "without API keys (Origin, Sec-Fetch-Site)",
                                          .code = "cross_site"})};
  if (!keys.empty() && !router.open(request.path)) {
    std::optional<std::string> name = key_name(request);
    if (!name) {
      Response refusal = error_response(
          401, {.message = cat("a valid API key is needed: Authorization: Bearer KEY",
                               other_field(router.form(request.path))),
                .code = "invalid_api_key"});
      refusal.headers = {{"WWW-Authenticate", "Bearer"}};
      return {nullptr, std::move(refusal)};
    }
    request.key = std::move(*name);
  }
  Router::Match match = router.match(request.method, request.path);
  request.rest = std::move(match.rest);
  return {match.route, std::move(match.otherwise)};
}

}  // namespace troupe::launch::serve::http
