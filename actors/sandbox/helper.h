// The sandbox helper: a process that starts reward programs, measures what they use and kills them.
// A process that holds keys is not dumpable, so that programs of the same user cannot read its
// memory; but the kernel lets only a dumpable process of an ordinary user create user namespaces
// for its children. So the helper is this program, executed anew: it has no memory, descriptor or
// environment of its parent. It kills all programs and exits when its parent has ended, however it
// ended. helper_process.h is the parent's side.
#pragma once

#include <string_view>

namespace troupe::actors::sandbox {

/// Name of the process, and its first argument.
inline constexpr std::string_view helper_name = "troupe-sandbox";
/// Descriptor of the helper's socket to its parent. A message with the descriptors {socket, stdin,
/// stdout, stderr} starts a program; the rest is said on that socket (helper_messages.h).
inline constexpr int helper_socket = 3;

/// main() of every program that starts sandboxes calls this first: its helper begins here, and the
/// call does not return in it.
void run_if_helper(int argc, const char* const* argv);
/// Whether main() has called run_if_helper().
bool can_be_helper();

/// Makes the memory of this process unreadable for other processes of its user, and prevents core
/// dumps.
void protect_memory();

}  // namespace troupe::actors::sandbox
