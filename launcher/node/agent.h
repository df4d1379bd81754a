// The node's part of a job: the link to the head, the PMIx server, output, reports.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/fd.h"

namespace ddl::launcher {

/// The whole life of an agent process: forks the spawner, answers with NodeFacts, does what the head asks, and returns
/// the process's exit status when nothing of the job is left on this node. If the head goes away it ends the ranks.
/// session_directory (a new name of session_directory.h) is made, and removed at the end, by the spawner if the agent is killed.
/// link is a connected socket to the head; or the reading half if link_write is given. The calling process must have
/// one thread, and must leave by _exit() afterwards.
/// head: the head's process if it runs on this host, which is then looked at; 0: it is waited for at the pace of another host's.
/// before_threads: called when the last process has been forked and the environment is what it stays, both of which want a process
/// with one thread; it may start some.
int run_agent(const std::string& session_directory, UniqueFd link, UniqueFd link_write = {},
              const std::function<void()>& before_threads = {}, pid_t head = 0);

/// The same for a process that another host's ddlrun has started with contract::kAgentOption: greets with the nonce on
/// standard output, makes a session directory, and takes standard input and output as its link.
int run_remote_agent(const std::string& nonce);

/// The same with contract::kJoiningAgentOption, in a Slurm job: reads on standard input whom to join, and its link is the connection
/// to that agent.
int run_joining_agent(const std::string& nonce);

}  // namespace ddl::launcher
