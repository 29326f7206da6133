// A request that a test hands to a handler without a connection, and what became of it.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "launch/serve/http/exchange.h"
#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch {

struct PostedRequest {
  explicit PostedRequest(const std::string& key, std::string body = "") {
    request.key = key;
    request.client = "127.0.0.1:1";
    request.body = std::move(body);
    exchange = std::make_shared<serve::http::Exchange>(
        serve::http::Exchange::Terms{.draining = std::make_shared<std::atomic<bool>>(false)},
        [this] { answered.set_value(); });
  }
  serve::http::Responder responder() const { return serve::http::Responder(exchange); }
  /// Waits for the answer; 0: none came.
  int status() {
    if (answered.get_future().wait_for(std::chrono::seconds(30)) != std::future_status::ready)
      return 0;
    return exchange->status();
  }
  /// Of the answer, which is there.
  std::string body() const {
    const std::string bytes = exchange->take().bytes;
    return bytes.substr(bytes.find("\r\n\r\n") + 4);
  }

  serve::http::Request request;
  std::promise<void> answered;  // before what calls it
  std::shared_ptr<serve::http::Exchange> exchange;
};

}  // namespace troupe::launch
