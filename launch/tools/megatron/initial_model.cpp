#include "launch/tools/megatron/initial_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "engine/base/files/file.h"
#include "engine/base/files/file_names.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/result_folder.h"
#include "launch/config/yaml.h"
#include "launch/tools/convert/convert.h"
#include "launch/tools/megatron/architecture.h"
#include "launch/tools/megatron/load_folder.h"
#include "transports/mpi/mpi_world.h"

namespace troupe::launch::tools::megatron {
namespace {

namespace fs = std::filesystem;
using engine::checkpoint::ResultFolder;

constexpr std::array tokenizer_files{"tokenizer.json",
                                     "tokenizer.model",
                                     "tokenizer_config.json",
                                     "special_tokens_map.json",
                                     "added_tokens.json",
                                     "vocab.json",
                                     "merges.txt",
                                     "qwen.tiktoken",
                                     "generation_config.json",
                                     "chat_template.jinja"};

struct Places {
  std::string load, save, tokenizer;
  bool resumed = false;  ///< --load is --save, which is the folder of a run
  std::string made() const { return save + "/initial_model"; }
};

Result<Places> places_of(const CommandLine& line) {
  // The policy of trl_ppo starts from its reference.
  const std::string reference =
      line.value("stage") == "trl_ppo" ? line.value("ref-model") : std::string();
  Places out{line.value("load", line.value("pretrained-checkpoint", reference)), line.value("save"),
             tokenizer_folder(line)};
  if (out.save.empty()) return fail(Errc::usage, "--save is missing: the folder of the run");
  if (!out.load.empty() && same_folder(out.load, out.save)) {
    out.load.clear();
    out.resumed = is_there(out.save + "/config.yaml");
  }
  if (!out.resumed && out.load.empty() && out.tokenizer.empty())
    return fail(Errc::usage,
                "expected --load or --tokenizer-name-or-path, a Hugging Face model folder");
  if (!out.load.empty() && !is_there(out.load))
    return fail(Errc::not_found, cat("--load ", out.load, ": no such folder"));
  if (!out.tokenizer.empty() && !is_there(out.tokenizer))
    return fail(Errc::not_found,
                cat("--tokenizer-name-or-path ", out.tokenizer, ": no such folder"));
  return out;
}

/// Rank 0 makes a folder that appears when it is complete; the others wait for it. `origin`: what
/// it is made from, which a resumed run must name again.
Result<> make_once(const Places& places, const std::string& origin,
                   const std::function<Result<>()>& make) {
  const std::string path = places.made() + ".origin";
  if (transports::mpi::mpirun_rank() != 0) return wait_for_rank_0(places.made());
  std::error_code failed;
  fs::create_directories(places.save, failed);
  if (failed) return fail(Errc::io, cat(places.save, ": ", failed.message()));
  if (is_there(path)) {
    const auto before = read_file(path);
    RETURN_IF_ERROR(before);
    if (*before != origin)
      return fail(Errc::usage, cat(places.save, " is the run of another model: ", quote(*before),
                                   ", not ", quote(origin), "; choose another --save"));
  }
  RETURN_IF_ERROR(write_file_durably(path, origin));
  const bool complete =
      is_there(places.made()) && !is_there(cat(places.made(), '/', ResultFolder::record_file));
  return complete ? Result<>() : make();
}

Result<InitialModel> from_megatron(const Places& places) {
  if (!is_there(places.tokenizer + "/config.json"))
    return fail(Errc::not_found, cat(places.tokenizer,
                                     "/config.json: expected beside the tokenizer, as --load is "
                                     "a checkpoint of Megatron"));
  const auto iteration = read_file(places.load + "/latest_checkpointed_iteration.txt");
  RETURN_IF_ERROR(iteration);
  const auto made = make_once(places, cat(places.load, " at ", *iteration), [&]() -> Result<> {
    convert::ConvertOptions options{.load_type = "mg", .save_type = "hf"};
    options.load_dir = places.load;
    options.save_dir = places.tokenizer;
    options.hf_folder = places.made();
    RETURN_IF_ERROR(convert::convert(options));
    return {};
  });
  RETURN_IF_ERROR(made);
  return InitialModel{places.made()};
}

/// Needs the two flags of a start with a new optimizer: none is read from --load.
Result<> check_new_optimizer(const CommandLine& line) {
  if (line.find("finetune") || line.find("pretrained-checkpoint")) return {};
  if (line.find("no-load-optim") && line.find("no-load-rng")) return {};
  return fail(Errc::usage,
              "--load: only weights are read from another folder than --save; add --no-load-optim "
              "--no-load-rng, or --finetune");
}

Result<InitialModel> loaded(const CommandLine& line, const Places& places) {
  RETURN_IF_ERROR(check_new_optimizer(line));
  const auto load = find_load(places.load);
  RETURN_IF_ERROR(load);
  if (load->megatron) return from_megatron(places);
  RETURN_IF_ERROR(check_tokenizers(load->folder, places.tokenizer));
  return InitialModel{load->folder};
}

Result<InitialModel> defined(const CommandLine& line, const Places& places) {
  const auto config = config_of_flags(line);
  RETURN_IF_ERROR(config);
  const auto made = make_once(places, config->dump(), [&]() -> Result<> {
    auto folder = ResultFolder::create(places.made(), Json(Json::Object{{"config", *config}}));
    RETURN_IF_ERROR(folder);
    std::vector<std::string> names(tokenizer_files.begin(), tokenizer_files.end());
    for (const auto& name :
         file_names(cat(places.tokenizer, '/', additional_templates_folder), ".jinja"))
      names.push_back(cat(additional_templates_folder, '/', name));
    for (const std::string& name : names) {
      const auto content = read_file(cat(places.tokenizer, '/', name));
      if (!content && content.error().code == Errc::not_found) continue;
      RETURN_IF_ERROR(content);
      RETURN_IF_ERROR(folder->add(name, *content));
    }
    RETURN_IF_ERROR(folder->add("config.json", config->dump(2) + "\n"));
    return folder->publish();
  });
  RETURN_IF_ERROR(made);
  return InitialModel{places.made(), true};
}

const config::YamlNode* member(const config::YamlNode& map, std::string_view name) {
  const auto found = std::ranges::find(map.members, name, &config::YamlMember::name);
  return found == map.members.end() ? nullptr : &found->value;
}

/// What the run in --save started from, whatever its --load was.
Result<InitialModel> of_the_run(const CommandLine& line, const Places& places) {
  const std::string path = places.save + "/config.yaml";
  const auto text = read_file(path);
  RETURN_IF_ERROR(text);
  const auto config = config::parse_yaml(*text, path);
  RETURN_IF_ERROR(config);
  const config::YamlNode *model = member(*config, "model"), *init = member(*config, "init"),
                         *weights = init ? member(*init, "weights") : nullptr;
  if (!model || model->text.empty())
    return fail(Errc::corrupt, cat(path, ": expected the key model, the folder of a model"));
  auto checked = check_architecture(line, model->text + "/config.json");
  RETURN_IF_ERROR(checked);
  return InitialModel{model->text, weights && weights->text == "random", std::move(*checked)};
}

}  // namespace

Result<InitialModel> initial_model(const CommandLine& line) {
  const auto places = places_of(line);
  RETURN_IF_ERROR(places);
  if (places->resumed) return of_the_run(line, *places);
  const bool described = is_there(places->tokenizer + "/config.json");
  Replaced values;
  // Before a conversion, which may take long.
  if (described) {
    auto checked = check_architecture(line, places->tokenizer + "/config.json");
    RETURN_IF_ERROR(checked);
    values = std::move(*checked);
  }
  if (places->load.empty() && !described) return defined(line, *places);
  if (places->load.empty()) return InitialModel{places->tokenizer, true, std::move(values)};
  auto model = loaded(line, *places);
  RETURN_IF_ERROR(model);
  auto checked = check_architecture(line, model->folder + "/config.json");
  RETURN_IF_ERROR(checked);
  model->values = std::move(*checked);
  return model;
}

}  // namespace troupe::launch::tools::megatron
