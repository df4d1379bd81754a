#include "launcher/elastic/host_pool.h"

#include <algorithm>
#include <utility>

#include "launcher/job/host_name.h"

namespace ddl::launcher {
HostPool::Host* HostPool::find(const std::string& name) {
  const auto found = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) {
    return host_key(host.node.name) == host_key(name);
  });
  return found == hosts_.end() ? nullptr : &*found;
}

void HostPool::update(const std::vector<AllocatedNode>& hosts, Time now) {
  const auto is_host = [](const std::string& name) {
    return [key = host_key(name)](const Host& host) { return host_key(host.node.name) == key; };
  };
  std::vector<Host> kept;
  for (Host& host : hosts_) {
    const auto listed = std::find_if(hosts.begin(), hosts.end(), [&](const AllocatedNode& node) {
      return host_key(node.name) == host_key(host.node.name);
    });
    if (listed != hosts.end()) {
      host.node = *listed;
      kept.push_back(std::move(host));
    } else {
      gone_.push_back(std::move(host));  // it may come back, and is not trusted more for that
    }
  }
  hosts_ = std::move(kept);
  for (const AllocatedNode& node : hosts) {
    if (find(node.name) != nullptr) continue;
    Host host;
    const auto before = std::find_if(gone_.begin(), gone_.end(), is_host(node.name));
    if (before != gone_.end()) {
      host = std::move(*before);
      gone_.erase(before);
      if (std::exchange(host.has_returned, true)) host.after_return.on_failed(cooldown_, now);
    }
    host.node = node;
    hosts_.push_back(std::move(host));
  }
}

void HostPool::on_failed(const std::string& name, Time now) {
  Host* const failed = find(name);
  if (failed == nullptr) return;
  Host host = std::move(*failed);
  hosts_.erase(hosts_.begin() + (failed - hosts_.data()));
  host.rest.on_failed(cooldown_, now);
  hosts_.push_back(std::move(host));
}

void HostPool::on_leaving(const std::string& name, Time now) {
  if (Host* const leaving = find(name)) leaving->rest.begin(cooldown_, now);
}

std::vector<AllocatedNode> HostPool::listed() const {
  std::vector<AllocatedNode> nodes;
  for (const Host& host : hosts_) nodes.push_back(host.node);
  return nodes;
}

std::vector<AllocatedNode> HostPool::usable(Time now) const {
  std::vector<AllocatedNode> nodes;
  for (const Host& host : hosts_) {
    if (host.usable_from() <= now) nodes.push_back(host.node);
  }
  return nodes;
}

std::optional<HostPool::Time> HostPool::next_return(Time now) const {
  std::optional<Time> next;
  for (const Host& host : hosts_) {
    const Time from = host.usable_from();
    if (from > now && (!next || from < *next)) next = from;
  }
  return next;
}

}  // namespace ddl::launcher
