#include "templates/script/container.h"

#include "templates/script/bash_words.h"

namespace ddl::templates {
namespace {

/// The options by which the container sees the node's GPUs. Intel's need none: the container has the node's /dev.
std::vector<std::string> gpu_options(const BatchJob& job, const SiteProfile* site) {
  if (!job.has_gpus || (site != nullptr && !site->setup.container_gpu_option)) return {};
  if (job.gpu_vendor == affinity::GpuVendor::kNvidia) return {"--nv"};
  if (job.gpu_vendor == affinity::GpuVendor::kAmd) return {"--rocm"};
  return {};
}

std::vector<std::string> binds_of(const ContainerRequest& request, const SiteProfile* site) {
  std::vector<std::string> binds = site != nullptr ? site->setup.container_binds : std::vector<std::string>();
  binds.insert(binds.end(), request.binds.begin(), request.binds.end());
  return binds;
}

}  // namespace

ContainerLaunch container_launch(const ScriptRequest& request, const BatchJob& job, const SiteProfile* site) {
  const ContainerRequest& container = request.container;
  std::string runtime = container.runtime;
  if (runtime.empty() && site != nullptr) runtime = site->setup.container_runtime;
  ContainerLaunch launch;
  launch.words = {runtime.empty() ? "\"$(command -v apptainer || command -v singularity)\"" : runtime,
                  "exec"};
  for (const std::string& option : gpu_options(job, site)) launch.words.push_back(option);
  for (const std::string& bind : binds_of(container, site))
    launch.words.insert(launch.words.end(), {"--bind", bash_quote(bind)});
  launch.words.push_back(bash_quote(container.image));
  return launch;
}

}  // namespace ddl::templates
