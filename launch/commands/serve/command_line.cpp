#include "launch/commands/serve/command_line.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <limits>
#include <memory>

#include "launch/commands/options.h"
#include "launch/commands/serve/serve.h"
#include "launch/commands/version.h"

namespace troupe::launch::commands {

namespace {

void add_model_options(CLI::App& command, serve::api::ServedModelOptions& o) {
  path_option(command.add_option("--model", o.model.model, "Hugging Face model directory"))
      ->required();
  add_overrides(command, o.model.overrides);
  command.add_option("--served-model-name", o.name,
                     "the model's name in requests and answers; default: --model");
  command.add_option("--template", o.chat_template,
                     "chat template instead of the model's own: a Jinja file, or the name of a "
                     "MindSpeed prompt type such as chatml");
  command
      .add_option("--runner", o.runner,
                  "generate, or pooling: scores of a reward model, or embeddings of a language "
                  "model; auto: what the model has a head for")
      ->check(CLI::IsMember({"auto", "generate", "pooling"}))
      ->capture_default_str();
  command.add_option("--tool-call-parser", o.tool_call_parser,
                     "format of the model's tool calls: hermes, llama3_json or mistral; default: "
                     "that of the chat template");
  command.add_option("--reasoning-parser", o.reasoning_parser,
                     "separates the reasoning of answers from their content: deepseek_r1 or qwen3");
  add_dtype(command, o.model.dtype);
  command
      .add_option("--threads", o.model.threads,
                  "number of threads; 0: all available cores; does not change results")
      ->check(CLI::Range(0, 1024));
}

void add_server_options(CLI::App& command, ServeOptions& o) {
  CLI::Option* host =
      command
          .add_option("--host", o.server.host,
                      "address to listen at; beyond loopback, keys and TLS are required")
          ->capture_default_str();
  CLI::Option* port = command.add_option("--port", o.server.port, "port; 0: any free one")
                          ->check(CLI::Range(0, 65535))
                          ->capture_default_str();
  path_option(command.add_option("--socket", o.server.unix_socket,
                                 "path of a Unix-domain socket to listen at, which only this user "
                                 "can open, instead of --host and --port"))
      ->excludes(host)
      ->excludes(port);
  path_option(command.add_option("--api-key-file", o.api_key_file,
                                 "file with the keys of clients, mode 0600"));
  path_option(command.add_option("--tls-cert", o.server.tls_cert, "certificate chain (PEM)"));
  path_option(command.add_option("--tls-key", o.server.tls_key, "private key (PEM)"));
  command.add_flag("--behind-tls-proxy", o.server.behind_tls_proxy,
                   "a proxy on another host ends TLS");
  path_option(
      command.add_option("--access-log", o.access_log, "file for a line of JSON per request"));
}

void add_adapters(CLI::App& command, ServeOptions& o) {
  command
      .add_option("--adapter", o.adapters,
                  "NAME=DIR: a PEFT adapter of the model, which requests select as model NAME; may "
                  "be given several times")
      ->allow_extra_args(false);
}

void add_admin_options(CLI::App& command, ServeOptions& o) {
  CLI::Option* socket = path_option(command.add_option(
      "--admin-socket", o.admin_socket,
      "path of a Unix-domain socket of this user for pauses and new weights (docs/serving.md)"));
  CLI::Option* key = path_option(command.add_option(
      "--admin-key-file", o.admin_key_file, "file with the keys for --admin-port, mode 0600"));
  CLI::Option* port =
      command
          .add_option("--admin-port", o.admin_port,
                      "the same at a port of 127.0.0.1, with keys of its own; 0: any free one")
          ->check(CLI::Range(0, 65535))
          ->needs(key)
          ->excludes(socket);
  key->needs(port);
  path_option(command.add_option("--weights-root", o.weights_root,
                                 "folder below which checkpoints are loaded by name"));
}

void add_ranks(CLI::App& command, ServeOptions& o) {
  command
      .add_option("--tp", o.tp,
                  "tensor-parallel ranks, which mpirun starts: each has a part of every matrix")
      ->check(CLI::Range(1, 1 << 12))
      ->capture_default_str();
  command
      .add_option("--pp", o.pp,
                  "pipeline stages, each on --tp ranks that mpirun starts: each has a part of the "
                  "layers")
      ->check(CLI::Range(1, 1 << 12))
      ->capture_default_str();
  command
      .add_option("--timeout", o.timeout,
                  "seconds that a rank of mpirun waits for another; then the server ends and names "
                  "the rank that did not come")
      ->check(CLI::Range(5, 604800))
      ->capture_default_str();
}

void add_generation_options(CLI::App& command, ServeOptions& o) {
  command
      .add_option_function<std::string>(
          "--weights",
          [&o](const std::string& format) {
            using engine::models::WeightFormat;
            o.engine.weights = format == "int8" ? WeightFormat::int8 : WeightFormat::full;
          },
          "full, or int8: generate with weights of 8 bits for speed; log-probabilities are "
          "those of the quantized weights")
      ->check(CLI::IsMember({"full", "int8"}))
      ->default_str("full");
  command
      .add_option("--lookup", o.engine.lookup,
                  "draft tokens per step by prompt lookup; 0: none; does not change results")
      ->check(CLI::Range(0, 256));
  path_option(command.add_option(
      "--draft", o.engine.draft,
      "folder of a draft model with the same tokenizer; does not change results"));
  command.add_option("--draft-tokens", o.engine.draft_tokens, "tokens per step of the draft model")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void add_load_limits(CLI::App& command, ServeOptions& o) {
  command.add_option("--max-batch", o.engine.max_batch, "sequences generated at the same time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option("--max-waiting", o.engine.max_waiting,
                  "sequences that may wait; beyond it requests get status 429")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--cache-tokens", o.engine.cache_tokens,
                  "tokens in the cache of keys and values; 0: enough for the batch, at most 1 GiB")
      ->check(
          CLI::Range(std::int64_t{0}, std::numeric_limits<std::int32_t>::max() - std::int64_t{16}));
  command.add_flag("--no-prefix-cache", o.engine.no_prefix_cache,
                   "compute every prompt anew, also where another began with the same tokens");
  command
      .add_option("--request-timeout", o.engine.request_seconds,
                  "seconds after which a request is given up")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command
      .add_option("--drain-timeout", o.drain_seconds,
                  "seconds that requests in progress have after SIGTERM")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86400}))
      ->capture_default_str();
}

}  // namespace

void add_serve(CLI::App& app, std::function<int()>& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand(
      "serve", "Serve a model over HTTP with the OpenAI API: completions, chat, log-probabilities");
  add_model_options(*command, options->model);
  add_adapters(*command, *options);
  add_ranks(*command, *options);
  add_server_options(*command, *options);
  add_admin_options(*command, *options);
  add_generation_options(*command, *options);
  add_load_limits(*command, *options);
  command->footer(
      "Example:\n  troupe serve --model DIR --port 8000\nPrints `listening on http://HOST:PORT` "
      "once ready. docs/serving.md lists the endpoints and the fields of requests.");
  command->callback([options, &action] {
    options->version = version_line();
    action = [options] { return serve(*options); };
  });
}

}  // namespace troupe::launch::commands
