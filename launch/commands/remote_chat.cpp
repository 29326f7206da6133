#include "launch/commands/remote_chat.h"

#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/errors/error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"
#include "launch/serve/api/fields/sampling_names.h"
#include "launch/serve/http/access.h"
#include "launch/terminal/interruption.h"

namespace troupe::launch::commands {

namespace {

/// EventStream: the data of server-sent events (WHATWG HTML, 9.2) in bytes that arrive in pieces.
class EventStream {
 public:
  /// `on_data` receives the data of each event; its lines are joined by newlines.
  explicit EventStream(std::function<void(const std::string&)> on_data)
      : on_data_(std::move(on_data)) {}

  /// Errc::full for an event of more than 1 MiB; what follows is then ignored.
  Result<> push(std::string_view bytes);

 private:
  void end_line();

  std::function<void(const std::string&)> on_data_;
  std::string line_, data_;
  bool after_return_ = false;  // a newline behind it belongs to it
  bool has_data_ = false, too_long_ = false;
};

constexpr std::size_t max_event = std::size_t{1} << 20;

void EventStream::end_line() {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (std::exchange(has_data_, false)) on_data_(std::exchange(data_, {}));
    return;
  }
  if (!line.starts_with("data:")) return;  // comments and other fields
  const std::string_view value = std::string_view(line).substr(line.starts_with("data: ") ? 6 : 5);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

Result<> EventStream::push(std::string_view bytes) {
  for (const char c : bytes) {
    if (too_long_) break;
    const bool joined = std::exchange(after_return_, c == '\r');
    if (joined && c == '\n') continue;
    if (c == '\n' || c == '\r')
      end_line();
    else
      line_ += c;
    too_long_ = line_.size() + data_.size() > max_event;
  }
  if (!too_long_) return {};
  return fail(Errc::full, cat("the server sent an event of more than ", max_event, " bytes"));
}

/// The name of a setting in requests of the OpenAI API and vLLM, or "".
std::string_view name_at_servers(std::string_view setting) {
  if (setting == "seed" || setting == "stop_token_ids") return setting;
  const auto* param = serve::api::request_param(engine::generate::sampling_param_named(setting));
  return param ? param->request : std::string_view();
}

Result<Json> request_fields(const Json& settings) {
  Json fields = Json::Object{};
  for (const auto& [name, value] : settings.object()) {
    const std::string_view field = name_at_servers(name);
    if (name == "do_sample" && value == Json(false))
      fields.set("temperature", 0);
    else if (!field.empty())
      fields.set(std::string(field), value);
    else
      return fail(Errc::usage, cat(name, " cannot be sent to a server; leave the option out"));
  }
  return fields;
}

serve::http::Client make_client(const ChatOptions& options) {
  serve::http::Url url = value_or_throw(serve::http::parse_url(options.url));
  // Both forms are common: of the server, and of its API, as the clients of OpenAI have it.
  if (url.path.empty()) url.path = "/v1";
  std::string key;
  if (!options.api_key_file.empty())
    key = value_or_throw(serve::http::read_client_key(options.api_key_file));
  if (!key.empty() && !url.tls && url.host != "localhost" && !serve::http::loopback(url.host) &&
      !options.send_key_unencrypted)
    throw Failure(
        {Errc::usage, cat("--url ", options.url, ": the API key would be sent unencrypted to ",
                          quote(url.host), "; use an https URL, or give --send-key-unencrypted")});
  return {std::move(url), std::move(key)};
}

/// The member `key` of a choice's delta, or "".
std::string delta_text(const Json& event, std::string_view key) {
  const Json* choices = event.find("choices");
  if (choices == nullptr || !choices->is_array() || choices->array().empty()) return "";
  const Json* delta = choices->array().front().find("delta");
  const Json* text = delta ? delta->find(key) : nullptr;
  return text != nullptr && text->is_string() ? text->string() : "";
}

/// What an answer says about a mistake: {"error": {"message"}}, or vLLM's older {"message"}.
std::string mistake_in(const Json& answer) {
  const Json* error = answer.find("error");
  const Json* message = (error ? *error : answer).find("message");
  if (message != nullptr && message->is_string()) return message->string();
  return error != nullptr && error->is_string() ? error->string() : "";
}

Error error_of(const serve::http::ClientResponse& response, const serve::http::Url& url) {
  const auto answer = parse_json(response.body, "the answer");
  std::string message = answer ? mistake_in(*answer) : "";
  if (message.empty()) message = quote(response.body, 200);
  Errc code = response.status == 503 ? Errc::closed : Errc::bad_input;
  if (response.status == 429) code = Errc::full;
  if (response.status == 404) code = Errc::not_found;
  return {code, cat(url.host, " answers with status ", response.status, ": ", message)};
}

/// Whether the prompt was too long: OpenAI's code, and the message that vLLM has without it.
bool exceeds_context(const Error& error) {
  return error.what.find("maximum context length") != std::string::npos ||
         error.what.find("context_length_exceeded") != std::string::npos;
}

/// Reads the events of one reply.
class ReplyReader {
 public:
  explicit ReplyReader(ModelOutput& output)
      : output_(output), events_([this](const std::string& data) { read(data); }) {}

  void push(std::string_view bytes) {
    const auto pushed = events_.push(bytes);
    if (!pushed && state_) state_ = pushed;
  }
  const std::string& text() const { return text_; }
  bool done() const { return done_; }
  /// What was wrong with the events.
  const Result<>& state() const { return state_; }

 private:
  void read(const std::string& data) {
    if (done_ || !state_) return;
    if (data == "[DONE]") {
      done_ = true;
      return;
    }
    const auto event = parse_json(data, "an event of the server");
    if (!event) {
      state_ = fail(event);
    } else if (event->find("error") != nullptr) {
      state_ = fail(Errc::bad_input, cat("the server ends the reply: ", mistake_in(*event)));
    } else {
      const std::string piece = delta_text(*event, "content");
      output_.print(piece);
      text_ += piece;
    }
  }

  ModelOutput& output_;
  EventStream events_;
  std::string text_;
  Result<> state_;
  bool done_ = false;
};

}  // namespace

RemoteChat::RemoteChat(const ChatOptions& options)
    : client_(make_client(options)),
      model_(options.model.model),
      settings_(value_or_throw(request_fields(options.settings))) {
  if (model_.empty()) model_ = first_model();
}

std::string RemoteChat::first_model() const {
  const auto response = value_or_throw(client_.send({.path = "/models"}));
  if (response.status != 200) throw Failure(error_of(response, client_.url()));
  const Json answer = value_or_throw(parse_json(response.body, "the server's list of models"));
  const Json* models = answer.find("data");
  const Json* id = models && models->is_array() && !models->array().empty()
                       ? models->array().front().find("id")
                       : nullptr;
  if (id == nullptr || !id->is_string())
    throw Failure({Errc::bad_input, "the server's list of models is empty; give --model NAME"});
  return id->string();
}

Result<std::string> RemoteChat::reply(Conversation& conversation, ModelOutput& output) {
  std::size_t left_out = 0;
  while (true) {
    auto text = stream(conversation.messages(), output);
    if (!text && exceeds_context(text.error()) && conversation.leave_out_oldest()) {
      ++left_out;
      continue;
    }
    if (text && left_out > 0) {
      std::cerr << "(the context is full: the oldest " << left_out
                << (left_out == 1 ? " turn is" : " turns are") << " no longer sent)\n";
    }
    return text;
  }
}

Result<std::string> RemoteChat::stream(const Json& messages, ModelOutput& output) const {
  Json body = settings_;
  body.set("model", model_).set("messages", messages).set("stream", true);
  ReplyReader reader(output);
  const auto response = client_.send(
      {.method = "POST", .path = "/chat/completions", .body = body.dump()},
      {.on_body = [&](std::string_view bytes) { reader.push(bytes); },
       .stop =
           [&] { return terminal::Interruption::pending() || !reader.state() || reader.done(); }});
  const bool interrupted = terminal::Interruption::pending();
  if (response && response->status != 200) return fail(error_of(*response, client_.url()));
  if (response || reader.done() || interrupted || !reader.state() || !reader.text().empty())
    output.print_line("");
  RETURN_IF_ERROR(reader.state());
  if (!reader.done() && !interrupted) {
    RETURN_IF_ERROR(response);
    return fail(Errc::closed, "the server ended the reply before it was complete");
  }
  return reader.text();
}

}  // namespace troupe::launch::commands
