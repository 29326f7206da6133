#include "launch/cluster/hosts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace troupe::launch::cluster {
namespace {

using config::YamlNode;
using Kind = YamlNode::Kind;

constexpr int max_hosts = 1024, max_slots = 1024;
constexpr int lowest_port = 1024, highest_port = 65535;

/// Text that is passed to ssh and mpirun as one word: no option, no blank, no list.
bool is_word(std::string_view text, std::string_view marks) {
  const auto allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, allowed);
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

class HostsReader {
 public:
  explicit HostsReader(ClusterProblems& problems) : problems_(problems) {}

  Hosts read(const YamlNode& root) {
    for (const auto& [key, value] : root.members) {
      if (key == "controller")
        controller(value);
      else if (key == "mpi")
        mpi(value);
      else if (key == "hosts")
        hosts(value);
    }
    if (hosts_.all.empty() || !hosts_.controller_address.empty()) return hosts_;
    problems_.at(root,
                 "hosts: controller is missing: expected the address of this host at which the "
                 "others reach it, such as controller: {address: 10.0.0.1}");
    return hosts_;
  }

 private:
  bool is_map(const YamlNode& node, const std::string& what) {
    if (node.kind == Kind::map) return true;
    problems_.at(node, cat(what, ", found ", ClusterProblems::found(node)));
    return false;
  }

  void word(const YamlNode& node, const std::string& key, std::string_view marks,
            const std::string& what, std::string& into) {
    if (node.kind == Kind::scalar && is_word(node.text, marks))
      into = node.text;
    else
      problems_.at(node, cat(key, ": expected ", what, ", found ", ClusterProblems::found(node)));
  }

  void controller(const YamlNode& node) {
    if (!is_map(node, "controller: expected a map, such as {address: 10.0.0.1, port: 7000}"))
      return;
    for (const auto& [key, value] : node.members) {
      if (key == "port")
        problems_.integer(value, "controller.port", lowest_port, highest_port,
                          hosts_.controller_port);
      else if (key != "address")
        problems_.unknown_key(value, key, {"address", "port"});
      else if (value.kind != Kind::scalar || !is_ipv4(value.text))
        problems_.at(value, cat("controller.address: expected an IPv4 address of this host, found ",
                                ClusterProblems::found(value)));
      else
        hosts_.controller_address = value.text;
    }
  }

  void mpi(const YamlNode& node) {
    if (!is_map(node, "mpi: expected a map, such as {network: 10.0.0.0/24, ports: 20000-20999}"))
      return;
    for (const auto& [key, value] : node.members) {
      if (key == "network")
        word(value, "mpi.network", "./_,:-", "networks or interfaces, such as 10.0.0.0/24 or eth0",
             hosts_.mpi_network);
      else if (key == "ports")
        ports(value);
      else
        problems_.unknown_key(value, key, {"network", "ports"});
    }
  }

  void ports(const YamlNode& node) {
    const std::string& text = node.text;
    const auto dash = std::min(text.find('-'), text.size());
    const auto first = parse_number<int>(text.substr(0, dash));
    const auto last = parse_number<int>(dash < text.size() ? text.substr(dash + 1) : "");
    // Each rank and each mpirun takes one.
    constexpr int fewest = 16;
    if (node.kind == Kind::scalar && first && last && *first >= lowest_port &&
        *last <= highest_port && *last - *first >= fewest - 1)
      hosts_.mpi_ports = {*first, *last};
    else
      problems_.at(
          node, cat("mpi.ports: expected at least ", fewest, " ports from ", lowest_port, " to ",
                    highest_port, ", such as 20000-20999, found ", ClusterProblems::found(node)));
  }

  void hosts(const YamlNode& node) {
    if (node.kind != Kind::list || node.items.empty() || node.items.size() > max_hosts)
      return problems_.at(node, cat("hosts: expected a list of 1 to ", max_hosts,
                                    " hosts, such as [{name: a, slots: 4}], found ",
                                    node.kind == Kind::list ? cat("a list of ", node.items.size())
                                                            : ClusterProblems::found(node)));
    for (const YamlNode& each : node.items) host(each);
  }

  void host(const YamlNode& node) {
    if (!is_map(node, "expected a map for a host, such as {name: a, slots: 4}")) return;
    HostSpec spec;
    for (const auto& [key, value] : node.members) {
      if (key == "name")
        word(value, "name", "._-", "a name of letters, digits, '.', '_' and '-'", spec.name);
      else if (key == "slots")
        problems_.integer(value, "slots", 1, max_slots, spec.slots);
      else if (key == "address")
        word(value, "address", "._-@", "a host name or an IPv4 address", spec.address);
      else if (key == "program")
        program(value, spec.program);
      else
        problems_.unknown_key(value, key, {"name", "slots", "address", "program"});
    }
    if (spec.name.empty()) return problems_.at(node, "a host needs the key name");
    if (spec.address.empty()) spec.address = spec.name;
    for (const HostSpec& other : hosts_.all)
      if (other.name == spec.name || other.address == spec.address)
        return problems_.at(
            node, cat("host ", spec.name, ": its ", other.name == spec.name ? "name" : "address",
                      " is that of an earlier host"));
    hosts_.all.push_back(std::move(spec));
  }

  void program(const YamlNode& node, std::string& into) {
    if (node.kind == Kind::scalar && node.text.starts_with('/'))
      into = node.text;
    else
      problems_.at(node, cat("program: expected the absolute path of troupe on the host, found ",
                             ClusterProblems::found(node)));
  }

  ClusterProblems& problems_;
  Hosts hosts_;
};

}  // namespace

const HostSpec* Hosts::find(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &HostSpec::name);
  return found == all.end() ? nullptr : &*found;
}

Hosts read_hosts(const YamlNode& root, ClusterProblems& problems) {
  return HostsReader(problems).read(root);
}

const std::vector<std::string>& host_keys() {
  static const std::vector<std::string> keys{"controller", "mpi", "hosts"};
  return keys;
}

std::vector<std::string> read_host_names(const YamlNode& value, const Hosts& hosts,
                                         ClusterProblems& problems) {
  std::vector<std::string> names, known;
  for (const HostSpec& host : hosts.all) known.push_back(host.name);
  const auto name = [&](const YamlNode& node) {
    if (node.kind == Kind::scalar && hosts.find(node.text) != nullptr) {
      if (std::ranges::count(names, node.text) == 0) return names.push_back(node.text);
      return problems.at(node, cat("host ", node.text, " is named twice"));
    }
    const std::string meant = nearest(node.text, known);
    problems.at(node,
                cat("expected the name of a host in hosts, found ", ClusterProblems::found(node),
                    known.empty()   ? "; the file has no hosts"
                    : meant.empty() ? cat("; they are ", join(known, ", "))
                                    : cat("; did you mean ", meant, "?")));
  };
  if (value.kind == Kind::list)
    for (const YamlNode& each : value.items) name(each);
  else
    name(value);
  return names;
}

Result<std::string> address_of_this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const addrinfo hints{.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(name.data(), nullptr, &hints, &found);
  std::string address;
  for (const addrinfo* each = failed ? nullptr : found; each != nullptr; each = each->ai_next) {
    const auto& ip = reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    std::array<char, INET_ADDRSTRLEN> text{};
    if (ntohl(ip.s_addr) >> 24 != 127 && address.empty())
      address = ::inet_ntop(AF_INET, &ip, text.data(), text.size());
  }
  if (!failed) ::freeaddrinfo(found);
  if (!address.empty()) return address;
  return fail(Errc::not_found,
              cat("the name of this host, ", name.data(), ", has no IPv4 address that others reach",
                  failed ? cat(" (", ::gai_strerror(failed), ")") : "",
                  "; set controller: {address: ...} in the cluster file"));
}

Slots::Slots(const Hosts& hosts) {
  for (const HostSpec& host : hosts.all) free_.push_back({host.name, host.slots});
}

Result<std::vector<RankBlock>> Slots::take(int ranks, const std::vector<std::string>& names) {
  std::vector<RankBlock*> allowed;
  if (names.empty())
    for (RankBlock& host : free_) allowed.push_back(&host);
  for (const std::string& name : names)
    allowed.push_back(&*std::ranges::find(free_, name, &RankBlock::host));
  const auto whole =
      std::ranges::find_if(allowed, [&](const RankBlock* host) { return host->ranks >= ranks; });
  if (whole != allowed.end()) allowed = {*whole};
  std::vector<RankBlock> taken;
  int left = ranks;
  for (const RankBlock* host : allowed) {
    const int here = std::min(left, host->ranks);
    if (here > 0) taken.push_back({host->host, here});
    left -= here;
  }
  if (left > 0) {
    std::vector<std::string> found;
    for (const RankBlock* host : allowed) found.push_back(cat(host->ranks, " on ", host->host));
    return fail(Errc::usage, cat("expected ", ranks, " free slots, found ", join(found, ", "),
                                 "; raise slots or name more hosts"));
  }
  for (const RankBlock& block : taken)
    std::ranges::find(free_, block.host, &RankBlock::host)->ranks -= block.ranks;
  return taken;
}

}  // namespace troupe::launch::cluster
