#include "launch/serve/http/access.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "engine/base/files/descriptor.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::launch::serve::http {

namespace {

constexpr std::size_t min_key = 16, max_key = 256, max_file = 1 << 20;

std::string sum_of(std::string_view key) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(key.data(), key.size())));
  return sum.finish();
}

/// Reads a file whose owner, kind and mode are those of its open descriptor.
Result<std::string> read_private_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.open())
    return fail(errno == ENOENT ? Errc::not_found : Errc::io,
                cat(path, ": cannot open the file of API keys: ", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0)
    return fail(Errc::io, cat(path, ": fstat: ", std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) return fail(Errc::usage, cat(path, ": not a regular file"));
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return fail(Errc::usage, cat(path, ": belongs to another user (uid ", info.st_uid, ")"));
  if ((info.st_mode & 0177) != 0)
    return fail(Errc::usage, cat(path, ": other users could read or change the API keys; run ",
                                 "`chmod 600 ", path, "`"));
  if (info.st_size > static_cast<off_t>(max_file))
    return fail(Errc::bad_input, cat(path, ": larger than ", max_file, " bytes"));
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(Errc::io, cat(path, ": read: ", std::strerror(errno)));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  return text;
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

bool valid_key(std::string_view key) {
  return key.size() >= min_key && key.size() <= max_key &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

/// The lines that hold keys, with their numbers from 1.
std::vector<std::pair<std::size_t, std::string_view>> key_lines(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string_view>> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t last = line.find_last_not_of(" \t\r");
    line = line.substr(0, last == std::string_view::npos ? 0 : last + 1);
    if (!line.empty() && line[0] != '#') lines.emplace_back(number, line);
  }
  return lines;
}

/// Host and port of a URL or of a Host field.
struct Authority {
  std::string host;  // in lower case, without brackets
  int port = -1;     // -1: none
  bool operator==(const Authority&) const = default;
};

/// NAME, NAME:PORT, [ADDRESS] or [ADDRESS]:PORT and nothing else.
std::optional<Authority> parse_authority(std::string_view text) {
  const bool brackets = text.starts_with('[');
  const std::size_t end = brackets ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return std::nullopt;
  Authority out;
  out.host = ascii_lower(brackets ? text.substr(1, end - 1) : text.substr(0, end));
  // Brackets are for addresses of IPv6 only (RFC 3986, 3.2.2).
  if (brackets != (out.host.find(':') != std::string::npos) || out.host.empty())
    return std::nullopt;
  const std::string_view rest = text.substr(end + (brackets ? 1 : 0));
  if (rest.empty()) return out;
  out.port = rest.front() == ':' ? parse_number<int>(rest.substr(1)).value_or(-1) : -1;
  if (out.port < 0 || out.port > 65535) return std::nullopt;
  return out;
}

}  // namespace

std::vector<std::string> ApiKeys::names() const {
  std::vector<std::string> out;
  for (const Key& key : keys_) out.push_back(key.name);
  return out;
}

Result<> ApiKeys::add(std::string_view line, std::size_t number, const std::string& path) {
  const std::string where = cat(path, ":", number, ": ");
  const std::size_t space = line.find_first_of(" \t");
  std::string name = cat("key", number);
  std::string_view key = line;
  if (space != std::string_view::npos) {
    name = line.substr(0, space);
    key = line.substr(line.find_first_not_of(" \t", space));
  }
  if (!valid_name(name))
    return fail(Errc::bad_input, cat(where, "the name of a key has letters, digits and _-."));
  if (!valid_key(key))
    return fail(Errc::bad_input, cat(where, "a key has ", min_key, " to ", max_key,
                                     " visible ASCII characters without spaces"));
  Key added{std::move(name), sum_of(key)};
  for (const Key& other : keys_)
    if (other.name == added.name || other.sum == added.sum)
      return fail(Errc::bad_input, cat(where, "this name or key occurs above"));
  keys_.push_back(std::move(added));
  return {};
}

Result<ApiKeys> ApiKeys::read(const std::string& path) {
  auto text = read_private_file(path);
  RETURN_IF_ERROR(text);
  ApiKeys keys;
  for (const auto& [number, line] : key_lines(*text)) RETURN_IF_ERROR(keys.add(line, number, path));
  sodium_memzero(text->data(), text->size());
  if (keys.empty())
    return fail(Errc::bad_input, cat(path, ": contains no API key; write one per line, ",
                                     "for example the output of `openssl rand -hex 32`"));
  return keys;
}

Result<std::string> read_client_key(const std::string& path) {
  auto text = read_private_file(path);
  RETURN_IF_ERROR(text);
  const auto lines = key_lines(*text);
  std::string key;
  if (!lines.empty()) {
    const std::string_view line = lines.front().second;
    key = line.substr(line.find_last_of(" \t") + 1);
  }
  sodium_memzero(text->data(), text->size());
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (key.empty() || !visible)
    return fail(Errc::bad_input,
                cat(path,
                    ": contains no API key of visible ASCII characters; write it alone on a "
                    "line"));
  return key;
}

std::optional<std::string> ApiKeys::name_of(std::string_view authorization) const {
  constexpr std::string_view scheme = "bearer ";
  if (authorization.size() <= scheme.size() ||
      ascii_lower(authorization.substr(0, scheme.size())) != scheme)
    return std::nullopt;
  return name_of_key(authorization.substr(scheme.size()));
}

std::optional<std::string> ApiKeys::name_of_key(std::string_view given) const {
  const std::string sum = sum_of(given);
  const Key* found = nullptr;
  for (const Key& key : keys_)
    if (sodium_memcmp(sum.data(), key.sum.data(), sum.size()) == 0) found = &key;
  if (found == nullptr) return std::nullopt;
  return found->name;
}

bool loopback(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (::inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return text == "localhost";
}

Result<> check_exposure(const std::string& host, bool keys, bool tls, bool behind_tls_proxy) {
  if (loopback(host)) return {};
  if (!keys)
    return fail(Errc::usage, cat("--host ", host, " can be reached from other hosts: API keys are ",
                                 "needed (--api-key-file), or --host 127.0.0.1"));
  if (!tls && !behind_tls_proxy)
    return fail(Errc::usage, cat("--host ", host, " would send API keys in the clear: give ",
                                 "--tls-cert and --tls-key, or --behind-tls-proxy if a proxy ",
                                 "encrypts the connections"));
  return {};
}

bool names_loopback(std::string_view host_field) {
  const auto named = parse_authority(host_field);
  return named && loopback(named->host);
}

bool cross_site(const Request& request, int port) {
  const std::string* host_field = request.header("host");
  const auto host = host_field == nullptr ? std::nullopt : parse_authority(*host_field);
  for (const HeaderField& field : request.headers) {
    if (field.name == "sec-fetch-site" && field.value != "same-origin" && field.value != "none")
      return true;
    if (field.name != "origin") continue;
    const std::string_view origin = field.value;
    const std::size_t scheme = origin.find("://");
    if (scheme == std::string_view::npos) return true;  // "null"
    const auto from = parse_authority(origin.substr(scheme + 3));
    const bool own = from && ((host && *from == *host) ||
                              (loopback(from->host) && port > 0 && from->port == port));
    if (!own) return true;
  }
  return false;
}

}  // namespace troupe::launch::serve::http
