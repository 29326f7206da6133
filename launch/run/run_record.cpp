#include "launch/run/run_record.h"

#include <unistd.h>

#include "engine/base/files/output_folder.h"
#include "engine/base/files/system_calls.h"
#include "engine/base/log/log.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/fingerprint_cache.h"
#include "launch/recipes/lora.h"
#include "launch/run/identity_parts.h"

namespace troupe::launch::run {

using engine::checkpoint::Identity;

namespace {

constexpr const char *identity_file = "identity.json", *starts_file = "starts.jsonl",
                     *fingerprints_file = ".fingerprints.json";
constexpr std::size_t identity_bytes = 64u << 20;

// A power failure or a full disk may have left a part of a line, which must not damage the next.
bool ends_within_a_line(const OutputFolder& folder, const std::string& name) {
  const auto file = folder.update(name);
  if (!file) return false;
  char last = '\n';
  const off_t end = ::lseek(file->get(), 0, SEEK_END);
  return end > 0 && ::pread(file->get(), &last, 1, end - 1) == 1 && last != '\n';
}

// Appends one line, durably.
Result<> append_line(const OutputFolder& folder, const std::string& name, std::string_view line) {
  const auto file = folder.append(name);
  RETURN_IF_ERROR(file);
  const std::string text = cat(ends_within_a_line(folder, name) ? "\n" : "", line);
  RETURN_IF_ERROR(write_whole(file->get(), text, folder.path_of(name)));
  if (::fsync(file->get()) != 0) return system_error(folder.path_of(name), "make durable");
  return folder.sync();
}

}  // namespace

Identity identify(const config::RunConfig& config) {
  engine::checkpoint::FingerprintCache fingerprints(cat(config.output, "/", fingerprints_file));
  auto identity = identity_of(config, fingerprints);
  value_or_throw(fingerprints.save());
  return value_or_throw(std::move(identity));
}

std::vector<Change> check_identity(const Identity& now, const std::string& checkpoint,
                                   const std::optional<Identity>& recorded,
                                   const config::RunConfig& config) {
  if (!recorded) {
    log_warning(cat(checkpoint,
                    " does not record what its run was created from (an earlier version wrote "
                    "it): model, data and settings are not compared with it"));
    return {};
  }
  auto found = compare(*recorded, now);
  if (!found.rejected.empty())
    throw Failure(
        {Errc::usage, cat("cannot resume from ", checkpoint, ", whose run was created from other ",
                          "inputs:\n  - ", join(found.rejected, "\n  - "),
                          "\nRestore them, or start a new run from the checkpoint: ",
                          new_run_from(checkpoint, config))});
  for (const Change& change : found.changed)
    log_warning(cat(change.key, ": ", change.was, " in the run, now ", change.now));
  return std::move(found.changed);
}

void record_start(const config::RunConfig& config, const Identity& now,
                  const std::string& resume_from, std::int64_t done,
                  const std::vector<Change>& changes) {
  const auto folder = value_or_throw(OutputFolder::open(config.output, config.output_mode));
  const Json identity = now.to_json();
  value_or_throw(folder.replace(identity_file, identity.dump(1) + "\n"));
  Json::Array changed;
  for (const Change& each : changes)
    changed.push_back(Json::Object{{"key", each.key}, {"was", each.was}, {"now", each.now}});
  const Json line(Json::Object{{"time", utc_time()},
                               {"step", done},
                               {"resume_from", resume_from.empty() ? Json() : Json(resume_from)},
                               {"model", config.model},
                               {"changed", std::move(changed)},
                               {"settings", *identity.find("settings")}});
  value_or_throw(append_line(folder, starts_file, line.dump() + "\n"));
}

std::string new_run_from(const std::string& checkpoint, const config::RunConfig& config) {
  if (recipes::adapts(config))
    return cat("--set output=NEW --set model=", config.model, " --set lora.adapter=", checkpoint);
  return cat("--set output=NEW --set model=", checkpoint);
}

std::optional<Identity> recorded_identity(const std::string& output) {
  const std::string path = cat(output, "/", identity_file);
  const auto found = read_json(path, {.depth = 8, .bytes = identity_bytes});
  if (!found && found.error().code == Errc::not_found) return {};
  return value_or_throw(Identity::from_json(value_or_throw(found), path));
}

}  // namespace troupe::launch::run
