#include "benchmarks/support/peer.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

// Folder of OpenBLAS with OpenMP: the threads of Debian's default build interfere with those of
// PyTorch.
std::string blas_folder() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib", ignored)) {
    const auto folder = entry.path() / "openblas-openmp";
    if (std::filesystem::exists(folder / "libblas.so.3", ignored)) return folder.string();
  }
  return "";
}

std::string command_of(const Options& options, const std::string& mode, const std::string& program,
                       const std::string& blas) {
  const char* python = std::getenv("TROUPE_PEER_PYTHON");
  std::string out = cat("env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE LD_LIBRARY_PATH=", blas,
                        " MALLOC_MMAP_THRESHOLD_=17179869184",
                        " MALLOC_TRIM_THRESHOLD_=34359738368 MALLOC_TOP_PAD_=268435456 "
                        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ");
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) out += "ATEN_CPU_CAPABILITY=avx512 ";
#endif
  const char* dtype = !options.bf16() ? "fp32" : mode.starts_with("gen") ? "bf16" : "autocast";
  return out + cat(quoted(python ? python : "/usr/bin/python3"), " ", quoted(program), " ", mode,
                   " ", options.shape.name, " ", dtype, " ", options.threads, " ", options.rounds,
                   " 2>&1");
}

// Returns the number before " unit", or after "word ".
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> before(std::string_view text, std::string_view unit) {
  const auto end = text.find(cat(" ", unit));
  if (end == std::string_view::npos) return std::nullopt;
  const auto space = text.find_last_of(' ', end - 1);
  return number(text.substr(space == std::string_view::npos ? 0 : space + 1));
}

std::optional<double> behind(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  return at == std::string_view::npos ? std::nullopt : number(text.substr(at + words.size()));
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace

bool peer_has_room(double own_peak_mib) {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (double kib = 0; word == "MemAvailable:" && file >> kib)
      return kib / 1024 > 1.5 * own_peak_mib + 2048;
  return false;
}

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) c == '\'' ? void(out += "'\\''") : out.push_back(c);
  return out + "'";
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    out.append(part.data(), count);
  ::pclose(pipe);
  return out;
}

PeerAnswer ask_peer(const Options& options, const std::string& mode, const std::string& unit,
                    double step_amount) {
  const char* program = std::getenv("TROUPE_PEER");
  if (!program) return {{}, "no peer: TROUPE_PEER does not name torch_lm.py", 0};
  if (mode == "dpo" && options.shape.batch < 2)
    return {{}, "no peer: torch_lm.py has no pairs of this shape", 0};
  const std::string blas = blas_folder();
  if (blas.empty())
    return {
        {},
        "no peer: without the package libopenblas0-openmp PyTorch is so slow that it says nothing",
        0};
  const std::string said = output_of(command_of(options, mode, program, blas));
  auto value = before(said, unit);
  if (const auto step = behind(said, "step "); value && step_amount > 0 && step && *step > 0)
    value = step_amount / *step;
  if (!value)
    return {{},
            cat("no peer: it said ", quote(last_line(said), 200),
                " (the package python3-torch is needed)"),
            0};
  return {value, std::string(last_line(said)), behind(said, "peak RSS ").value_or(0)};
}

}  // namespace troupe::benchmarks
