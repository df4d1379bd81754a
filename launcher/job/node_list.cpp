#include "launcher/job/node_list.h"

#include "launcher/job/host_list.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

Status add_slots(std::optional<int>& sum, std::optional<int> more, const std::string& name) {
  if (!sum) return {};
  if (*more > kMaxSlots - *sum) {
    return refuse(name + " has more than " + std::to_string(kMaxSlots) + " slots in all");
  }
  *sum += *more;
  return {};
}

}  // namespace

Status NodeList::add(AllocatedNode node) {
  if (room() == 0) return refuse("more than " + std::to_string(kMaxHosts) + " hosts");
  ++named_;
  const auto [place, is_new] = index_.try_emplace(host_key(node.name), nodes_.size());
  if (is_new) {
    nodes_.push_back(std::move(node));
    return {};
  }
  AllocatedNode& known = nodes_[place->second];
  if (!known.slots || !node.slots) {
    return refuse(node.name + " is named twice, and not each time with its slots; name it once, as " +
                  node.name + ":2");
  }
  if (known.user != node.user) return refuse(node.name + " is named twice, with different users");
  if (known.port != node.port) return refuse(node.name + " is named twice, with different ports");
  if (known.max_slots.has_value() != node.max_slots.has_value()) {
    return refuse(node.name + " is named twice, and not each time with its max_slots");
  }
  DDL_TRY(add_slots(known.slots, node.slots, node.name));
  return add_slots(known.max_slots, node.max_slots, node.name);
}

}  // namespace ddl::launcher
