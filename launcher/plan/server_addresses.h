// Where the servers of frameworks listen: the addresses of nodes that all ranks reach, and the ports that agents hold.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/job/job_spec.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher {

/// What NodeFacts::held_ports begins with, for servers of rank 0: torch's store or MXNet's scheduler, and JAX's
/// coordinator. Others follow, one for each local rank, if the framework needs them.
inline constexpr int kPortsOfRank0 = 2;

/// Where each agent serves its own ranks the rendezvous of Horovod's Gloo.
inline constexpr char kGlooAddress[] = "127.0.0.1";

/// Of the servers that frameworks open on rank 0's node.
struct ServersOfRank0 {
  std::string address;  ///< at which all ranks reach rank 0's node; of IPv6 without brackets
  int port = 0;         ///< for torch's store, or MXNet's scheduler
  int jax_port = 0;
};
/// facts: of rank 0's node.
ServersOfRank0 servers_of_rank_0(const JobSpec& spec, const Placement& placement, const NodeFacts& facts);

/// At which all ranks reach a node of the placement: the loopback if there is one node.
std::string node_address(const JobSpec& spec, const Placement& placement, int node, const NodeFacts& facts);

/// "10.0.0.1:4000", "[2001:db8::1]:4000".
std::string host_and_port(const std::string& address, int port);

/// How many ports a node's agent is to hold for servers of its ranks, beside kPortsOfRank0.
int ports_for_ranks(Framework framework, int local_ranks);

/// "10.0.0.1:4001": where the server of each rank listens, by rank. facts[i] belongs to placement.nodes[i], and has
/// ports_for_ranks(); where it has none yet, kUnknownUntilLaunch.
std::vector<std::string> rank_addresses(const JobSpec& spec, const Placement& placement,
                                        const std::vector<NodeFacts>& facts);

/// HOROVOD_HOSTNAME of each node, all different: its hostname, or if others have the same, its name in the placement.
std::vector<std::string> horovod_hostnames(const Placement& placement, const std::vector<NodeFacts>& facts);

/// The interface by which ranks on the node reach those of other nodes; that of the loopback if there is one node; "": it
/// is not known.
std::string connecting_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node);

/// By which interface gloo, in PyTorch, is to connect on a node; "": it finds one itself. Without it gloo takes the
/// address of the hostname, which other nodes cannot reach if it is one of the loopback.
std::string gloo_interface(const JobSpec& spec, const Placement& placement, const NodeFacts& node);

}  // namespace ddl::launcher
