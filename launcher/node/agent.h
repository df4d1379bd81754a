// The agent, which runs the node's part of a job: the link to the head, the PMIx server, output, reports.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/fd.h"

namespace ddl::launcher {

/// The main function of an agent process: forks the spawner, answers with NodeFacts, acts on the messages of
/// the head, and returns the process's exit status when nothing of the job is left on this node. If the head ends,
/// the agent ends the ranks. The calling process must have one thread, and must end by _exit() afterwards.
/// session_directory: a name from new_session_directory_name(). The spawner creates the directory, and removes it
/// when the agent has ended.
/// link: a connected socket to the head, or only the reading half if link_write is given.
/// before_threads: called after the last fork and the last change of the environment, which need a process with
/// one thread. It may start threads.
/// head: the head's process if it runs on this host: then its state is checked as well. 0: it runs on another host,
/// and heartbeats have the pace for that.
int run_agent(const std::string& session_directory, UniqueFd link, UniqueFd link_write = {},
              const std::function<void()>& before_threads = {}, pid_t head = 0);

/// The same for a process that another host's ddlrun has started with contract::kAgentOption: greets with the nonce
/// on standard output, makes a session directory, and takes standard input and output as its link.
int run_remote_agent(const std::string& nonce);

/// The same with contract::kJoiningAgentOption, in a scheduler's job: reads a Join from standard input, and its link is
/// the connection to the agent that the Join names.
int run_joining_agent(const std::string& nonce);

}  // namespace ddl::launcher
