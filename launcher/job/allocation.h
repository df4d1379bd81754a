// Which nodes the job may use, and who said so.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddl::launcher {

struct AllocatedNode {
  std::string name;          ///< as the user or the resource manager calls it
  std::optional<int> slots;  ///< ranks it may hold; nullopt: as many as its agent finds
};

struct Allocation {
  std::vector<AllocatedNode> nodes;
  std::string origin;  ///< for messages: "this machine"
};

/// The machine that ddlrun runs on, under its own name.
Allocation local_allocation(const std::string& hostname);

}  // namespace ddl::launcher
