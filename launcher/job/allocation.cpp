#include "launcher/job/allocation.h"

namespace ddl::launcher {

Allocation local_allocation(const std::string& hostname) {
  return Allocation{{AllocatedNode{hostname, std::nullopt}}, "this machine"};
}

}  // namespace ddl::launcher
