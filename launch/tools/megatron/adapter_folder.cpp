#include "launch/tools/megatron/adapter_folder.h"

#include "engine/adapter/peft_file.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/tools/convert/adapter_forms.h"
#include "launch/tools/megatron/load_folder.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

Result<double> number_of(const CommandLine& line, std::string_view flag) {
  if (!line.find(flag)) return 0;
  const auto number = parse_number<double>(line.value(flag));
  if (number && *number > 0) return *number;
  return fail(Errc::usage, cat("--", flag, ' ', line.value(flag), ": expected a positive number"));
}

/// Compares the flags with adapter_config.json.
Result<> check_flags(const CommandLine& line, const std::string& folder) {
  const std::string path = cat(folder, '/', engine::adapter::config_file);
  const auto config = read_json(path);
  RETURN_IF_ERROR(config);
  for (const auto& [flag, key] : {std::pair{"lora-r", "r"}, {"lora-alpha", "lora_alpha"}}) {
    const auto given = number_of(line, flag);
    RETURN_IF_ERROR(given);
    const Json* value = config->find(key);
    if (*given > 0 && value && value->is_number() && value->number() != *given)
      return fail(Errc::usage, cat("--", flag, ' ', line.value(flag), " contradicts ", path,
                                   ", which says ", to_text(value->number())));
  }
  return {};
}

Result<> convert_adapter(const CommandLine& line, const std::string& model,
                         const std::string& made) {
  if (transports::mpi::mpirun_rank() != 0) return wait_for_rank_0(made);
  engine::checkpoint::AdapterSettings settings{.folder = line.value("lora-load")};
  const auto rank = number_of(line, "lora-r"), alpha = number_of(line, "lora-alpha");
  RETURN_IF_ERROR(rank);
  RETURN_IF_ERROR(alpha);
  settings.rank = static_cast<int>(*rank);
  settings.alpha = *alpha;
  if (const Given* targets = line.find("lora-target-modules")) settings.targets = targets->values;
  return convert::adapter_to_peft(settings, model, made);
}

}  // namespace

Result<std::string> adapter_folder(const CommandLine& line, const std::string& model,
                                   const std::string& made) {
  const std::string given = line.value("lora-load");
  if (given.empty()) return given;
  for (const std::string& folder : {given, given + "/latest"}) {
    if (!engine::adapter::is_adapter(folder)) continue;
    RETURN_IF_ERROR(check_flags(line, folder));
    return folder;
  }
  if (!is_there(given + "/latest_checkpointed_iteration.txt"))
    return fail(Errc::not_found,
                cat("--lora-load ", given,
                    ": neither an adapter of PEFT (adapter_config.json), nor the folder of a run "
                    "or a checkpoint of Megatron (latest_checkpointed_iteration.txt)"));
  RETURN_IF_ERROR(convert_adapter(line, model, made));
  return made;
}

}  // namespace troupe::launch::tools::megatron
