#include "launch/tools/megatron/load_folder.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::launch::tools::megatron {
namespace fs = std::filesystem;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(a, b, ignored);
}

std::string tokenizer_folder(const CommandLine& line) {
  const std::string file = line.value("tokenizer-model");
  std::error_code ignored;
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = file.empty() || fs::is_directory(file, ignored) ? file
                             : parent.empty()                                ? "."
                                                                             : parent.string();
  return line.value("tokenizer-name-or-path", folder);
}

Result<> wait_for_rank_0(const std::string& path) {
  constexpr std::chrono::minutes timeout{60};
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!is_there(path)) {
    if (std::chrono::steady_clock::now() > end)
      return fail(Errc::timeout,
                  cat(path, ": rank 0 has not made it in ", timeout.count(), " minutes"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return {};
}

Result<LoadFolder> find_load(const std::string& load) {
  if (is_there(load + "/latest/config.json")) return LoadFolder{load + "/latest"};
  if (is_there(load + "/latest_checkpointed_iteration.txt")) return LoadFolder{load, true};
  if (is_there(load + "/config.json")) return LoadFolder{load};
  return fail(Errc::not_found, cat("--load ", load,
                                   ": neither a checkpoint of Megatron "
                                   "(latest_checkpointed_iteration.txt) nor a Hugging Face "
                                   "folder (config.json)"));
}

Result<> check_tokenizers(const std::string& model, const std::string& tokenizer) {
  if (tokenizer.empty() || same_folder(model, tokenizer)) return {};
  bool found = false;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.json", "qwen.tiktoken"}) {
    const std::string theirs = cat(tokenizer, '/', name), ours = cat(model, '/', name);
    if (!is_there(theirs)) continue;
    found = true;
    const auto a = read_file(theirs), b = read_file(ours);
    RETURN_IF_ERROR(a);
    RETURN_IF_ERROR(b);
    if (*a != *b)
      return fail(Errc::usage, cat("--tokenizer-name-or-path: ", theirs, " differs from ", ours,
                                   ", the model's own; give the folder of the model's tokenizer"));
  }
  if (!found)
    return fail(Errc::not_found, cat("--tokenizer-name-or-path ", tokenizer, ": no tokenizer"));
  return {};
}

}  // namespace troupe::launch::tools::megatron
