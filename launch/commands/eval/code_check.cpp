#include "launch/commands/eval/code_check.h"

#include <optional>

#include "engine/base/text/text.h"

namespace troupe::launch::commands {
namespace {

// Reads one request. The program runs in a child whose standard streams lead nowhere; the child
// reports its regular end by a word that the program does not know.
constexpr const char* runner = R"(
import json, os, secrets, sys
request = json.loads(sys.stdin.readline())
word = secrets.token_hex(16).encode()
ends, says = os.pipe()
child = os.fork()
if child == 0:
    os.close(ends)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    try:
        exec(compile(request["completion"], "program", "exec"), {"__name__": "program"})
        os.write(says, word)
        os._exit(0)
    except BaseException:
        os._exit(1)
os.close(says)
_, status = os.waitpid(child, 0)
os.set_blocking(ends, False)
try:
    said = os.read(ends, 64)
except BlockingIOError:
    said = b""
passed = status == 0 and said == word
print(json.dumps({"id": request["id"], "reward": 1.0 if passed else 0.0}), flush=True)
)";

class Sandbox {
 public:
  explicit Sandbox(double seconds) : seconds_(seconds) {}

  Result<bool> run(const std::string& program) {
    if (!rules_) {
      RETURN_IF_ERROR(start());
      const auto tried = passes("assert 1 + 1 == 2");
      RETURN_IF_ERROR(tried);
      if (!*tried)
        return fail(Errc::unsupported,
                    "the sandbox for code runs no Python program; see "
                    "docs/security.md");
    }
    return passes(program);
  }

 private:
  Result<> start() {
    const Json options = Json::Object{{"run", Json::Array{"python3", "-c", runner}},
                                      {"timeout", seconds_},
                                      {"startup", 10.0},
                                      {"fresh", true}};
    auto rules = actors::rules::Rules::from_json(
        Json::Array{Json::Object{{"name", "command"}, {"options", options}}}, "--allow-code");
    RETURN_IF_ERROR(rules);
    RETURN_IF_ERROR(rules->check_files());
    RETURN_IF_ERROR(rules->start());
    rules_ = std::move(*rules);
    return {};
  }

  /// A program that is killed, for its time or its memory, has no reward: it does not pass.
  Result<bool> passes(const std::string& program) {
    actors::protocol::RewardRequest request;
    request.completion = program;
    try {
      const auto results = rules_->score(std::span(&request, 1));
      return results.front().reward.value_or(0) == 1;
    } catch (const Failure& failure) {
      return fail(failure);
    }
  }

  double seconds_;
  std::optional<actors::rules::Rules> rules_;
};

}  // namespace

evaluation::CodeCheck sandboxed_code_check(double seconds) {
  return [sandbox = std::make_shared<Sandbox>(seconds)](const std::string& program) {
    return sandbox->run(program);
  };
}

}  // namespace troupe::launch::commands
