// The sandbox helper: a child process that starts reward programs, measures what they use and kills
// them. A process that holds keys is not dumpable, so that programs of the same user cannot read
// its memory; but the kernel lets only a dumpable process of an ordinary user create user
// namespaces for its children. So the helper is forked before any key exists. It kills all programs
// and exits when its parent has ended, however it ended.
#pragma once

namespace troupe::actors::sandbox {

/// Starts the helper of this process unless it runs. Called early by programs that will hold keys
/// or much memory; otherwise the first sandbox starts it.
void start_helper();

/// The socket to the helper: a message with the descriptors {socket, stdin, stdout, stderr} starts
/// a program; the rest is said on that socket (helper_messages.h). -1 if it could not be started.
int helper_socket();

/// Makes the memory of this process unreadable for other processes of its user, and prevents core
/// dumps.
void protect_memory();

}  // namespace troupe::actors::sandbox
