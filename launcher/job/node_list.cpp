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
  if (room() == 0) return refuse("hosts are named more than " + std::to_string(kMaxTimesNamed) + " times");
  ++named_;
  const auto [place, is_new] = index_.try_emplace(host_key(node.name), nodes_.size());
  if (is_new) {
    if (nodes_.size() == kMaxHosts) return refuse("more than " + std::to_string(kMaxHosts) + " hosts");
    nodes_.push_back(std::move(node));
    times_.push_back(1);
    return {};
  }
  AllocatedNode& known = nodes_[place->second];
  const bool is_slot = named_again_ == NamedAgain::kIsSlot && !known.slots && !node.slots;
  if (!is_slot && (!known.slots || !node.slots)) {
    return refuse(node.name + " is named twice, and not each time with its slots; name it once, as " +
                  node.name + ":2");
  }
  if (known.user != node.user) return refuse(node.name + " is named twice, with different users");
  if (known.port != node.port) return refuse(node.name + " is named twice, with different ports");
  if (known.max_slots.has_value() != node.max_slots.has_value()) {
    return refuse(node.name + " is named twice, and not each time with its max_slots");
  }
  ++times_[place->second];
  if (known.slots) DDL_TRY(add_slots(known.slots, node.slots, node.name));
  return add_slots(known.max_slots, node.max_slots, node.name);
}

std::vector<AllocatedNode> NodeList::take() && {
  bool times_are_slots = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    times_are_slots = times_are_slots || (!nodes_[i].slots && times_[i] > 1);
  for (std::size_t i = 0; times_are_slots && i < nodes_.size(); ++i) {
    if (!nodes_[i].slots) nodes_[i].slots = times_[i];
  }
  return std::move(nodes_);
}

}  // namespace ddl::launcher
