#include "launcher/elastic/discovery_script.h"

#include <unordered_set>
#include <utility>

#include "base/command_output.h"
#include "base/text.h"
#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

constexpr auto kPause = std::chrono::seconds(1);
constexpr auto kLimit = std::chrono::seconds(10);
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

Result<std::vector<AllocatedNode>> hosts_of(const Result<CommandOutput>& output, const std::string& path,
                                            std::optional<int> slots) {
  if (!output)
    return refuse(
        "--host-discovery-script: " + output.error().message(),
        output.error().code() == ErrorCode::kPermissionDenied ? "make it executable: chmod +x " + path : "");
  if (output->wait_status != 0) return refuse(path + " (--host-discovery-script) " + how_it_failed(*output));
  return parse_discovered_hosts(output->out, path, slots);
}

}  // namespace

Result<std::vector<AllocatedNode>> parse_discovered_hosts(std::string_view text, const std::string& script,
                                                          std::optional<int> slots) {
  std::vector<AllocatedNode> hosts;
  std::unordered_set<std::string> keys;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line.substr(0, line.find('#'))).empty()) continue;
    auto nodes = parse_hostfile(line, script);
    // Once more, behind as many empty lines: then the message has the right number.
    if (!nodes) return parse_hostfile(std::string(number - 1, '\n') + std::string(line), script);
    for (AllocatedNode& node : *nodes) {
      const std::string where = script + ":" + std::to_string(number) + ": " + node.name;
      if (!keys.insert(host_key(node.name)).second) return refuse(where + " is there twice");
      if (!node.slots) node.slots = slots;
      if (!node.slots)
        return refuse(where + " has no slots",
                      "let the script print " + node.name + ":N, or give --slots-per-host N");
      hosts.push_back(std::move(node));
    }
    if (hosts.size() > kMaxHosts)
      return refuse(script + " prints more than " + std::to_string(kMaxHosts) + " hosts");
  }
  return hosts;
}

DiscoveryScript::DiscoveryScript(EventLoop& loop, const JobSpec& spec, Handlers handlers)
    : loop_(loop),
      path_(spec.elastic.discovery),
      slots_(spec.ranks_per_node > 0 ? spec.ranks_per_node : spec.elastic.slots_per_host),
      handlers_(std::move(handlers)) {
  start();
}

void DiscoveryScript::start() {
  Command command;
  command.argv = {path_};
  run_.emplace(loop_, command, kLimit, kMaxBytes,
               [this](const Result<CommandOutput>& output) { on_end(output); });
}

void DiscoveryScript::on_end(const Result<CommandOutput>& output) {
  const auto hosts = hosts_of(output, path_, slots_);
  run_.reset();
  timer_ = loop_.after(kPause, [this] { start(); });
  hosts ? handlers_.on_hosts(*hosts) : handlers_.on_failure(hosts.error());
}

}  // namespace ddl::launcher
