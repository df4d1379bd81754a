#include "launcher/plan/framework_environment.h"

#include <set>
#include <string>

#include "launcher/facts.h"
#include "launcher/scheduler/slurm.h"
#include "support/catch.h"

using ddl::Environment;
using namespace ddl::launcher;  // NOLINT(google-build-using-namespace)
using ddl::launcher::test::facts_of;

namespace {

const RankPlacement kRank{5, 1, 2, 3, 1, 2};

FrameworkJob job_for(Framework framework) {
  return {framework, 7, 2, "ddlrun-1-2", {"10.0.0.4", 40004, 50004}, {}, "first,second"};
}

const Environment kHorovod{{"HOROVOD_RANK", "5"},         {"HOROVOD_SIZE", "7"},
                           {"HOROVOD_LOCAL_RANK", "2"},   {"HOROVOD_LOCAL_SIZE", "3"},
                           {"HOROVOD_CROSS_RANK", "1"},   {"HOROVOD_CROSS_SIZE", "2"},
                           {"HOROVOD_HOSTNAME", "b.site"}};
const Environment kTorch{{"RANK", "5"},
                         {"WORLD_SIZE", "7"},
                         {"LOCAL_RANK", "2"},
                         {"LOCAL_WORLD_SIZE", "3"},
                         {"GROUP_RANK", "1"},
                         {"GROUP_WORLD_SIZE", "2"},
                         {"NODE_RANK", "1"},
                         {"ROLE_RANK", "5"},
                         {"ROLE_WORLD_SIZE", "7"},
                         {"ROLE_NAME", "default"},
                         {"MASTER_ADDR", "10.0.0.4"},
                         {"MASTER_PORT", "40004"},
                         {"TORCHELASTIC_RUN_ID", "ddlrun-1-2"},
                         {"TORCHELASTIC_RESTART_COUNT", "0"},
                         {"TORCHELASTIC_MAX_RESTARTS", "0"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
const Environment kDeepspeed{{"CROSS_RANK", "1"}, {"CROSS_SIZE", "2"}, {"LOCAL_SIZE", "3"}};
const Environment kJax{{"JAX_COORDINATOR_ADDRESS", "10.0.0.4:50004"}};
const Environment kJaxBySlurm{{"SLURM_JOB_ID", "50004"},
                              {"SLURM_STEP_NODELIST", "first,second"},
                              {"SLURM_NTASKS", "7"},
                              {"SLURM_PROCID", "5"},
                              {"SLURM_LOCALID", "2"}};

Environment together(std::initializer_list<Environment> all) {
  Environment whole;
  for (const Environment& one : all) whole.insert(one.begin(), one.end());
  return whole;
}

/// The variables of the job, of node 1 and of rank 5: no variable is of two of them.
Environment of(const FrameworkJob& job) {
  const Environment node = node_variables(job, {1, 3, "b.site", "10.0.0.5"});
  Environment all = together({job_variables(job), node, rank_variables(job, kRank)});
  CHECK(all.size() == job_variables(job).size() + node.size() + rank_variables(job, kRank).size());
  return all;
}

}  // namespace

TEST_CASE("each framework gets its names, and auto those that can be set together") {
  CHECK(of(job_for(Framework::kAuto)) == together({kHorovod, kTorch, kDeepspeed, kJax}));
  CHECK(of(job_for(Framework::kTorch)) == together({kHorovod, kTorch}));
  CHECK(of(job_for(Framework::kDeepspeed)) == together({kHorovod, kTorch, kDeepspeed}));
  CHECK(of(job_for(Framework::kHorovod)) == kHorovod);
  CHECK(of(job_for(Framework::kMpi)) == kHorovod);
  CHECK(of(job_for(Framework::kJax)) == together({kHorovod, kJax, kJaxBySlurm}));
  CHECK(of(job_for(Framework::kNone)).empty());
}

TEST_CASE("TensorFlow's tasks have the same cluster, and each its place in it") {
  FrameworkJob job = job_for(Framework::kTensorflow);
  job.roles = {{"chief", 1}, {"worker", 4}, {"ps", 2}};
  const std::vector<std::string> addresses = {"a:1", "a:2", "a:3", "a:4", "[::1]:5", "b:6", "b:7"};
  job.tensorflow_configs = tensorflow_configs(job.roles, addresses);
  const std::string cluster =
      R"({"cluster":{"chief":["a:1"],"ps":["b:6","b:7"],"worker":["a:2","a:3","a:4","[::1]:5"]},"task":)";
  CHECK(job.tensorflow_configs.at(0) == cluster + R"({"index":0,"type":"chief"}})");
  CHECK(of(job).at("TF_CONFIG") == cluster + R"({"index":0,"type":"ps"}})");
  CHECK_FALSE(of(job).contains("RANK"));
}

TEST_CASE("MXNet's processes get their role, the number of each, and the scheduler's place") {
  FrameworkJob job = job_for(Framework::kMxnet);
  job.roles = mxnet_roles(4, 2);
  CHECK(of(job) == Environment{{"DMLC_ROLE", "server"},
                               {"DMLC_NUM_WORKER", "4"},
                               {"DMLC_NUM_SERVER", "2"},
                               {"DMLC_PS_ROOT_URI", "10.0.0.4"},
                               {"DMLC_PS_ROOT_PORT", "40004"},
                               {"DMLC_NODE_HOST", "10.0.0.5"}});
}

TEST_CASE("in a Slurm job JAX finds Slurm's own variables") {
  FrameworkJob job = job_for(Framework::kJax);
  job.scheduler_variables = slurm().step_variables({{"first", "second"}, {{0}, {1}}});
  CHECK(of(job) == together({kHorovod, kJax}));
}

TEST_CASE("JAX takes all GPUs that it sees if it sees its own alone") {
  CHECK(own_gpus_environment(Framework::kJax, 2) == Environment{{"JAX_LOCAL_DEVICE_IDS", "0,1"}});
  CHECK(own_gpus_environment(Framework::kJax, 0).empty());
  CHECK(own_gpus_environment(Framework::kTorch, 2).empty());
}

TEST_CASE("an address of IPv6 has brackets only beside a port") {
  FrameworkJob job = job_for(Framework::kAuto);
  job.servers.address = "2001:db8::1";
  CHECK(of(job).at("MASTER_ADDR") == "2001:db8::1");
  CHECK(of(job).at("JAX_COORDINATOR_ADDRESS") == "[2001:db8::1]:50004");
}

TEST_CASE("the names that are set are those of the list, and ranks inherit none of the list") {
  std::set<std::string> listed;
  for (const FrameworkVariables& one : framework_variables()) {
    for (const std::string_view name : one.set) {
      listed.emplace(name);
      CHECK(framework_of(name) == one.framework);
      CHECK(is_of_another_job(name, Framework::kAuto));
    }
    for (const std::string_view name : one.settings) {
      CHECK(framework_of(name) == one.framework);
      CHECK_FALSE(is_of_another_job(name, Framework::kAuto));
    }
    for (const std::string_view name : one.other) {
      CHECK(framework_of(name) == one.framework);
      CHECK_FALSE(is_told_by(name, Framework::kAuto));
      CHECK(is_of_another_job(name, Framework::kAuto));
    }
  }
  std::set<std::string> set;
  FrameworkJob tensorflow = job_for(Framework::kTensorflow);
  tensorflow.tensorflow_configs.resize(7);
  for (const FrameworkJob& job : {job_for(Framework::kAuto), job_for(Framework::kMxnet), tensorflow}) {
    for (const auto& [name, value] : of(job)) set.insert(name);
  }
  for (const auto& [name, value] : own_gpus_environment(Framework::kAuto, 1)) set.insert(name);
  CHECK(set == listed);
  CHECK(is_of_another_job("TF_CONFIG", Framework::kAuto));
  CHECK_FALSE(is_of_another_job("HOROVOD_CONTROLLER", Framework::kAuto));
  CHECK_FALSE(is_of_another_job("PATH", Framework::kAuto));
  CHECK_FALSE(is_of_another_job("TF_CONFIG", Framework::kNone));
  CHECK(is_of_another_job("PORT", Framework::kMxnet));
  CHECK_FALSE(is_of_another_job("PORT", Framework::kAuto));
}

TEST_CASE("rank 0's servers are at an address that all ranks reach, on ports that its agent holds") {
  const JobSpec any;
  JobSpec by_ib = any;
  by_ib.network_interfaces = {"ib0"};
  NodeFacts facts = facts_of("a", 4);
  facts.addresses = {{"eth0", "2001:db8::1", 6}, {"eth0", "10.0.0.4", 4}, {"ib0", "10.1.0.4", 4}};
  Placement one, two;
  one.nodes = {{"a", {0}, 0}};
  two.nodes = {{"a", {0}, 0}, {"b", {1}, 1}};

  CHECK(servers_of_rank_0(any, one, facts).address == facts.master_address);
  CHECK(servers_of_rank_0(any, two, facts).address == "10.0.0.4");
  CHECK(servers_of_rank_0(by_ib, two, facts).address == "10.1.0.4");
  CHECK(servers_of_rank_0(any, two, facts).port == 40004);
  CHECK(servers_of_rank_0(any, two, facts).jax_port == 50004);
  facts.addresses = {{"eth0", "2001:db8::1", 6}};
  CHECK(servers_of_rank_0(any, two, facts).address == "2001:db8::1");
  facts.addresses.clear();
  facts.held_ports.clear();
  CHECK(servers_of_rank_0(any, two, facts).address == "a");
  CHECK(servers_of_rank_0(any, two, facts).port == 29500);
}

TEST_CASE("gloo is told its interface where the hostname would lead it astray, or the user has named some") {
  JobSpec spec;
  NodeFacts facts = facts_of("a", 4);
  facts.addresses = {{"eth0", "10.0.0.4", 4}, {"ib0", "10.1.0.4", 4}};
  Placement one, two;
  one.nodes = {{"a", {0}, 0}};
  two.nodes = {{"a", {0}, 0}, {"b", {1}, 1}};

  CHECK(gloo_interface(spec, two, facts).empty());
  facts.hostname_is_loopback = true;
  CHECK(gloo_interface(spec, two, facts) == "eth0");
  CHECK(gloo_interface(spec, one, facts).empty());
  facts.hostname_is_loopback = false;
  spec.network_interfaces = {"ib0", "eth0"};
  CHECK(gloo_interface(spec, two, facts) == "eth0");
  spec.network_interfaces = {"ib0"};
  CHECK(gloo_interface(spec, two, facts) == "ib0");
}
