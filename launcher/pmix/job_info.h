// What a PMIx server tells ranks about their job. Included only by launcher/pmix/*.cpp.
#pragma once

#include "base/error.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/pmix/info_list.h"

namespace ddl::launcher {

/// The pairs for PMIx_server_register_nspace. directory: where clients may keep files.
Result<InfoList> job_info(const NodeLaunch& node, const std::string& directory);

}  // namespace ddl::launcher
