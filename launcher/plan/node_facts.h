// The facts about a node that its agent reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/topology.h"
#include "launcher/process/shell_attributes.h"

namespace ddl::launcher {

/// An address at which other nodes may reach this one.
struct NodeAddress {
  std::string interface;  ///< "eth0"
  std::string address;    ///< "10.0.0.7", "2001:db8::7"
  int family = 4;         ///< version of IP: 4 or 6
  bool operator==(const NodeAddress&) const = default;
};

/// In a dry plan, in place of what is known only once the agents have answered.
inline constexpr std::string_view kUnknownUntilLaunch = "(unknown until launch)";

/// Sent by every agent before ranks are placed.
struct NodeFacts {
  std::string version;  ///< ddlrun's on that node
  std::string hostname;
  std::string kernel;          ///< "6.1.0-18-amd64"
  std::string architecture;    ///< "x86_64"
  int slots = 0;               ///< ranks it takes without --oversubscribe: its allowed CPUs
  int allowed_cpus = 0;        ///< hardware threads that the job may use
  int allowed_cores = 0;       ///< distinct cores among them
  std::string master_address;  ///< MASTER_ADDR if all ranks are on this node: the loopback
  /// TCP ports that the agent holds for servers of its ranks' programs (node/held_ports.h): see plan/server_addresses.h.
  std::vector<int> held_ports;
  /// The hostname stands for an address of the loopback in /etc/hosts, as Debian's installer writes it.
  bool hostname_is_loopback = false;
  std::int64_t agent_pid = 0;

  std::vector<NodeAddress> addresses;       ///< of interfaces that are up; no loopback, no link-local ones
  std::int64_t memory_bytes = 0;            ///< of the machine; 0: unknown
  std::int64_t memory_available_bytes = 0;  ///< the kernel's estimate for a new program; 0: unknown
  std::int64_t memlock_bytes = 0;           ///< soft limit (ulimit -l); -1: none
  std::int64_t nofile = 0;                  ///< soft limit (ulimit -n); -1: none
  ResourceLimits hard_limits;               ///< that ranks can have
  std::int64_t shm_free_bytes = -1;         ///< in /dev/shm, for this user; -1: it cannot be read
  std::string tmp_directory;                ///< TMPDIR, or /tmp: where the agent keeps its files
  std::int64_t tmp_free_bytes = -1;         ///< there, for this user; -1: it cannot be read
  std::int64_t wall_time_ns = 0;            ///< its clock when the facts were collected, since 1970
  affinity::Topology topology;              ///< without cores if it could not be read
  std::string topology_failure;             ///< why; "" if it was read
  /// The agent's own values of visible_device_variables(), those that were set at its start: schedulers set some.
  std::map<std::string, std::string> visible_devices;
  std::string libddl;  ///< path of the libddl beside this ddlrun; "": there is none
  /// The folder beside this ddlrun in which Python finds ddl by the name horovod; "": there is none.
  std::string horovod;
  bool operator==(const NodeFacts&) const = default;
};

}  // namespace ddl::launcher
