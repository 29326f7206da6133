// The settings that are paths of files or folders.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/text/text.h"
#include "launch/config/run_config.h"

namespace troupe::launch::config {

/// Calls visit(key, path) for every path of the configuration, set or not; `path` is a
/// std::string& that may be changed. A reward model's path has the key "reward".
template <class Visit>
void each_path(RunConfig& config, const Visit& visit) {
  visit("model", config.model);
  visit("output", config.output);
  visit("resume", config.resume);
  visit("chat_template", config.chat_template);
  for (std::string& path : config.data.paths) visit("data.path", path);
  for (engine::data::DataSource& source : config.data.mix)
    for (std::string& path : source.paths) visit("data.mix", path);
  for (std::string& path : config.eval.path) visit("eval.path", path);
  visit("profile.save_path", config.profile.save_path);
  visit("lora.adapter", config.lora.adapter);
  visit("serve.api_key_file", config.serve.api_key_file);
  visit("serve.tls_cert", config.serve.tls_cert);
  visit("serve.tls_key", config.serve.tls_key);
  visit("critic.model", config.critic.model);
  RunConfig::each_method(config, [&]<class Method>(Method& settings) {
    if constexpr (requires { settings.reference; })
      visit(cat(Method::name, ".reference"), settings.reference);
  });
  for (RewardRule& rule : config.reward) {
    const Json* path = rule.options.find("path");
    if (!path || !path->is_string()) continue;
    std::string text = path->string();
    visit("reward", text);
    rule.options.set("path", std::move(text));
  }
}

/// Replaces ~ and ~/ at the start of every path with the user's home directory (HOME). Returns one
/// message for each path that cannot be expanded: ~user, or HOME is not set.
std::vector<std::string> expand_home(RunConfig& config);
/// The same for one path; `name` of the option starts the message. Errc::usage.
Result<std::string> expand_home(std::string_view name, const std::string& path);

}  // namespace troupe::launch::config
