#include "launch/cluster/host_inputs.h"

#include <unistd.h>

#include <array>
#include <string_view>

#include "engine/base/text/text.h"
#include "engine/checkpoint/manifest.h"
#include "launch/run/identity.h"

namespace troupe::launch::cluster {
namespace {

using recipes::Role;

bool writes_checkpoints(Role role) {
  return role == Role::policy || role == Role::critic || role == Role::reference;
}

/// Whether a role reads a part of the run's identity. The controller alone reads the data.
bool reads(Role role, std::string_view part) {
  if (role == Role::verifier) return false;
  if (part == run::reference_part) return role == Role::reference;
  if (part == "critic.model") return role == Role::critic;
  if (part.starts_with("reward model ")) return role == Role::reward;
  if (part == "model" || part == "lora.adapter")
    return role == Role::policy || role == Role::rollout;
  return part == "tokenizer" || part == run::chat_template_part;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Result<> check_file(const InputFile& file, const std::string& host) {
  const auto differs = [&](const std::string& found) {
    return fail(
        Errc::usage,
        cat("host ", host, ": ", file.path, ": expected the file of the controller's host (",
            file.bytes, " bytes, XXH3-128 ", file.xxh3_128, "), found ", found,
            file.path.ends_with("/identity.json")
                ? "; the output folder must be on a file system that the hosts share"
                : "; copy it there"));
  };
  const auto found = engine::checkpoint::measure_file(file.path);
  if (!found) return differs(cat("none (", found.error().what, ")"));
  if (found->bytes != file.bytes) return differs(cat(found->bytes, " bytes"));
  if (found->xxh3_128 != file.xxh3_128) return differs(cat("XXH3-128 ", found->xxh3_128));
  return {};
}

}  // namespace

Result<std::vector<InputFile>> inputs_of(const engine::checkpoint::Identity& identity, Role role,
                                         const std::string& output) {
  std::vector<InputFile> files;
  for (const auto& part : identity.parts)
    if (reads(role, part.name))
      for (const auto& file : part.files) files.push_back({file.path, file.bytes, file.xxh3});
  if (!writes_checkpoints(role)) return files;
  auto record = engine::checkpoint::measure_file(cat(output, "/identity.json"));
  RETURN_IF_ERROR(record);
  files.push_back({record->path, record->bytes, record->xxh3_128});
  return files;
}

Result<> check_host(const std::string& own, const std::string& build,
                    const std::vector<InputFile>& inputs) {
  const std::string host = host_name();
  if (own != build)
    return fail(Errc::usage, cat("host ", host, ": expected the controller's program, ", build,
                                 ", found ", own, "; install the same one on all hosts"));
  for (const InputFile& file : inputs) RETURN_IF_ERROR(check_file(file, host));
  return {};
}

}  // namespace troupe::launch::cluster
