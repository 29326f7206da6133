// A network namespace that has only the loopback interface. mpirun runs in one, because its ports
// accept connections from every interface.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::launch::cluster {

/// Moves this process, which has one thread, into a new network namespace and activates its
/// loopback interface. Users other than root get a user namespace, too, in which they keep their
/// user and group. Unix sockets of the file system can still be reached. Errc::unsupported where
/// the system denies it; the process should then exit.
Result<> enter_network_namespace();

/// `troupe loopback [-- COMMAND...]`: replaces this process by COMMAND in such a namespace. Where
/// the system denies it, runs COMMAND without one, after a warning. Without a command, exits with 0
/// or the error of enter_network_namespace(). Throws Failure.
int run_in_network_namespace(const std::vector<std::string>& command);

/// Why children of this process cannot have such a namespace; nullopt if they can. Tries it in a
/// child process, which runs `program` (this program).
std::optional<std::string> network_namespace_denied(const std::string& program);

/// The warning where namespaces are denied.
std::string open_ports_warning(const std::string& why);

}  // namespace troupe::launch::cluster
