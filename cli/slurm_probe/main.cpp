// SPDX-License-Identifier: GPL-3.0-or-later
// A program of its own because libslurm's licence is the GPL, and because libslurm may end the process that calls it.
//
//   slurm-probe [MILLISECONDS]
//
// Prints the facts about the cluster's Slurm as one line of JSON (docs/reference/slurm-probe.md) and exits with 0, or
// prints {"error": "..."} and exits with 1. It answers within the given time; the default is 10 s.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>

#include <sys/prctl.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <nlohmann/json.hpp>

#include "base/command_output.h"
#include "base/fd.h"
#include "base/text.h"
#include "templates/cluster/cluster_facts.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::cli {
namespace {

using templates::ClusterFacts;
using templates::NodeKind;
using templates::Partition;

constexpr char kChildOption[] = "--ask-here";

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

std::vector<std::string> list_of(const char* text) {
  std::vector<std::string> items;
  const std::string all = text_of(text);
  for (const std::string_view item : split(all, ',')) {
    if (!item.empty()) items.emplace_back(item);
  }
  return items;
}

std::optional<int> limit_of(std::uint32_t number) {
  if (number == INFINITE || number == NO_VAL) return std::nullopt;
  return static_cast<int>(std::min<std::uint32_t>(number, INT32_MAX));
}

Error slurm_error(const char* call) {
  return Error(ErrorCode::kUnavailable, text_of(::slurm_strerror(errno))).during(call);
}

/// The result of one of libslurm's slurm_load_* functions; its slurm_free_* function is the deleter.
template <class Message>
using Loaded = std::unique_ptr<Message, void (*)(Message*)>;

// Includes hidden partitions and nodes, because a job may name them; of a federation only this cluster.
constexpr std::uint16_t kShow = SHOW_ALL | SHOW_LOCAL;

Result<Loaded<slurm_conf_t>> load_configuration() {
  slurm_conf_t* message = nullptr;
  if (::slurm_load_ctl_conf(0, &message) != SLURM_SUCCESS) return fail(slurm_error("slurm_load_ctl_conf"));
  return Loaded<slurm_conf_t>(message, ::slurm_free_ctl_conf);
}

Result<Loaded<partition_info_msg_t>> load_partitions() {
  partition_info_msg_t* message = nullptr;
  if (::slurm_load_partitions(0, &message, kShow) != SLURM_SUCCESS)
    return fail(slurm_error("slurm_load_partitions"));
  return Loaded<partition_info_msg_t>(message, ::slurm_free_partition_info_msg);
}

Result<Loaded<node_info_msg_t>> load_nodes() {
  node_info_msg_t* message = nullptr;
  if (::slurm_load_node(0, &message, kShow) != SLURM_SUCCESS) return fail(slurm_error("slurm_load_node"));
  return Loaded<node_info_msg_t>(message, ::slurm_free_node_info_msg);
}

Partition partition_of(const partition_info_t& info) {
  Partition partition;
  partition.name = text_of(info.name);
  partition.is_default = (info.flags & PART_FLAG_DEFAULT) != 0;
  partition.is_up = info.state_up == PARTITION_UP;
  partition.max_nodes = limit_of(info.max_nodes);
  partition.max_minutes = limit_of(info.max_time);
  partition.default_minutes = limit_of(info.default_time);
  partition.nodes = static_cast<int>(info.total_nodes);
  partition.cpus = static_cast<int>(info.total_cpus);
  return partition;
}

NodeKind kind_of(const node_info_t& info) {
  NodeKind kind;
  kind.name = text_of(info.name);
  kind.partitions = list_of(info.partitions);
  kind.cpus = info.cpus;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0)
  // The number without CPUs that are reserved for the system; versions before 22.05 do not report it.
  if (info.cpus_efctv > 0 && info.cpus_efctv < info.cpus) kind.cpus = info.cpus_efctv;
#endif
  kind.gpus = templates::gpus_of_gres(text_of(info.gres));
  kind.memory_mb = static_cast<std::int64_t>(info.real_memory);
  kind.features = list_of(info.features);
  return kind;
}

Result<ClusterFacts> ask_slurm() {
  DDL_ASSIGN(configuration, load_configuration());
  DDL_ASSIGN(partitions, load_partitions());
  DDL_ASSIGN(nodes, load_nodes());
  // The controller's answer about a node does not contain its partitions.
  ::slurm_populate_node_partitions(nodes.get(), partitions.get());

  ClusterFacts facts;
  facts.name = text_of(configuration->cluster_name);
  facts.version = text_of(configuration->version);
  for (std::uint32_t i = 0; i < partitions->record_count; ++i)
    facts.partitions.push_back(partition_of(partitions->partition_array[i]));
  for (std::uint32_t i = 0; i < nodes->record_count; ++i) {
    const node_info_t& info = nodes->node_array[i];
    const bool is_future = (info.node_state & NODE_STATE_BASE) == NODE_STATE_FUTURE;
    if (info.name != nullptr && *info.name != '\0' && !is_future) facts.nodes.push_back(kind_of(info));
  }
  facts.nodes = templates::merged(facts.nodes);
  return facts;
}

/// Returns 0, or 1 after a message on standard error, so that the caller does not accept an incomplete answer.
int print(const std::string& text) {
  const Status written = write_all(STDOUT_FILENO, text.data(), text.size());
  if (written) return 0;
  std::fprintf(stderr, "slurm-probe: standard output: %s\n", written.error().message().c_str());
  return 1;
}

int print_error(const std::string& reason) {
  using Json = nlohmann::json;
  const Json json{{"error", reason}};
  (void)print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  return 1;
}

/// Runs in a process that libslurm may end.
int ask_here() {
  // The parent may be killed while it waits for the answer, and this process is in a group of its own.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::slurm_init(nullptr);
  const auto facts = ask_slurm();
  if (!facts) return print_error(facts.error().message());
  return print(templates::cluster_facts_json(*facts));
}

/// "Unable to process configuration file": the last line that libslurm logged, without the prefix that names the
/// program.
std::string last_message(const std::string& log) {
  constexpr std::string_view kLevel = "fatal: ";
  std::string_view line = trim(log);
  line = line.substr(line.rfind('\n') + 1);
  const std::size_t level = line.find(kLevel);
  return std::string(level == std::string_view::npos ? line : line.substr(level + kLevel.size()));
}

int ask_in_child(std::chrono::milliseconds timeout) {
  // slurm_init() would retry for a minute to read it.
  const std::string configured = text_of(std::getenv("SLURM_CONF"));
  if (!configured.empty() && ::access(configured.c_str(), R_OK) != 0)
    return print_error("SLURM_CONF names " + configured + ", which cannot be read");

  const auto answer = command_output({"/proc/self/exe", kChildOption}, {}, timeout);
  if (!answer) {
    const bool is_late = answer.error().code() == ErrorCode::kTimeout;
    return print_error(is_late ? "Slurm does not answer within " + std::to_string(timeout.count()) + " ms"
                               : answer.error().message());
  }
  if (!answer->out.empty()) {
    const int printed = print(answer->out);
    return answer->wait_status == 0 ? printed : 1;
  }
  const std::string reason = last_message(answer->err);
  return print_error(reason.empty() ? "libslurm ended without a message" : "libslurm ended: " + reason);
}

int run(int argc, char** argv) {
  constexpr std::chrono::milliseconds kTimeout{10'000};
  constexpr std::int64_t kMaxTimeout = 3'600'000;
  if (argc == 1) return ask_in_child(kTimeout);
  if (argc == 2 && std::string_view(argv[1]) == kChildOption) return ask_here();
  const auto timeout = argc == 2 ? parse_integer(argv[1]) : std::nullopt;
  if (!timeout || *timeout < 1 || *timeout > kMaxTimeout)
    return print_error("slurm-probe takes one argument: its timeout in milliseconds, from 1 to 3600000");
  return ask_in_child(std::chrono::milliseconds(*timeout));
}

}  // namespace
}  // namespace ddl::cli

int main(int argc, char** argv) {
  try {
    return ddl::cli::run(argc, argv);
  } catch (const std::exception& error) {
    return ddl::cli::print_error(error.what());
  }
}
