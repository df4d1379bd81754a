// Values that several tests of the launcher start from.
#pragma once

#include <string>
#include <vector>

#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/node_facts.h"
#include "launcher/plan/placement.h"

namespace ddl::launcher::test {

inline Allocation allocation_of(std::size_t num_nodes) {
  Allocation allocation;
  allocation.origin = "the test";
  for (std::size_t i = 0; i < num_nodes; ++i) {
    AllocatedNode node;
    node.name = "node" + std::to_string(i);
    allocation.nodes.push_back(std::move(node));
  }
  return allocation;
}

/// What all ranks of a node inherit.
inline Environment inherited(const LaunchPlan& plan, std::size_t node) {
  Environment environment = plan.nodes.at(node).environment;
  environment.insert(plan.job.environment.begin(), plan.job.environment.end());
  return environment;
}

inline JobSpec job_of(int num_ranks) {
  JobSpec spec;
  spec.command = {"./train", "--fast"};
  spec.num_ranks = num_ranks;
  spec.workdir = "/data/run 1";
  return spec;
}

inline NodeFacts facts_of(const std::string& hostname, int cores) {
  NodeFacts facts;
  facts.version = "0.1.0";
  facts.hostname = hostname;
  facts.kernel = "6.1.0";
  facts.slots = cores;
  facts.allowed_cpus = cores;
  facts.allowed_cores = cores;
  facts.master_address = "10.0.0." + std::to_string(cores);
  facts.held_ports = {40000 + cores, 50000 + cores};
  facts.agent_pid = 71;
  facts.architecture = "x86_64";
  facts.addresses = {{"eth0", facts.master_address, 4}, {"eth0", "2001:db8::1", 6}};
  facts.memory_bytes = 64'000'000'000;
  facts.memory_available_bytes = 60'000'000'000;
  facts.memlock_bytes = -1;
  facts.nofile = 1024;
  facts.shm_free_bytes = 32'000'000'000;
  facts.tmp_directory = "/tmp";
  facts.tmp_free_bytes = 100'000'000'000;
  facts.wall_time_ns = 1'700'000'000'000'000'000;
  facts.libddl = "/usr/lib/libddl.so.0.1.0";
  facts.horovod = "/usr/share/ddlrun/as-horovod";
  return facts;
}

/// The facts of every node with ranks, each with this number of cores.
inline std::vector<NodeFacts> facts_of(const Placement& placement, int cores) {
  std::vector<NodeFacts> facts;
  for (const PlacedNode& node : placement.nodes) facts.push_back(facts_of(node.name + ".site", cores));
  return facts;
}

}  // namespace ddl::launcher::test
