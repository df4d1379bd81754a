// Generic resources, as Slurm writes them.
#pragma once

#include <string_view>

namespace ddl::templates {

/// GPUs, of all types together, in a node's list such as "gpu:a100:4(S:0-1),gpu:v100:2,nvme:1". What is not understood
/// counts as none; never more than 65536.
int gpus_of_gres(std::string_view gres);

}  // namespace ddl::templates
