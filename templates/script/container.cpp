#include "templates/script/container.h"

#include <algorithm>

#include "base/text.h"
#include "templates/script/bash_words.h"

namespace ddl::templates {
namespace {

using WordList = std::vector<std::string>;

constexpr std::string_view kShifter = "shifter";
constexpr std::string_view kPodman = "podman-hpc";
constexpr std::string_view kPyxis = "pyxis";
constexpr std::string_view kContainerEngine = "container-engine";

/// A plugin of srun runs the container.
bool is_of_srun(std::string_view runtime) { return runtime == kPyxis || runtime == kContainerEngine; }

bool may_add_gpu_option(const BatchJob& job, const SiteProfile* site) {
  return job.has_gpus && (site == nullptr || site->setup.container_gpu_option);
}

/// "DIR:DIR" for "DIR", as the runtimes that come from Docker have it.
std::string mount_of(const std::string& bind) {
  return bind.find(':') == std::string::npos ? bind + ":" + bind : bind;
}

WordList binds_of(const ContainerRequest& request, const SiteProfile* site) {
  WordList binds = site != nullptr ? site->setup.container_binds : WordList();
  binds.insert(binds.end(), request.binds.begin(), request.binds.end());
  return binds;
}

WordList quoted(const WordList& words) {
  WordList all;
  for (const std::string& word : words) all.push_back(bash_quote(word));
  return all;
}

void append(WordList& words, const WordList& more) { words.insert(words.end(), more.begin(), more.end()); }

/// Intel's GPUs need no option: the container has the node's /dev.
WordList apptainer_words(const ContainerRequest& request, const BatchJob& job, const SiteProfile* site) {
  WordList words = {job.container_runtime.empty() ? "\"$(command -v apptainer || command -v singularity)\""
                                                  : job.container_runtime,
                    "exec"};
  const bool has_option = may_add_gpu_option(job, site);
  if (has_option && job.gpu_vendor == affinity::GpuVendor::kNvidia) words.emplace_back("--nv");
  if (has_option && job.gpu_vendor == affinity::GpuVendor::kAmd) words.emplace_back("--rocm");
  for (const std::string& bind : binds_of(request, site)) append(words, {"--bind", bash_quote(bind)});
  append(words, quoted(request.options));
  words.push_back(bash_quote(request.image));
  return words;
}

/// Its GPUs are those of a module that the site calls gpu.
WordList shifter_words(const ContainerRequest& request, const BatchJob& job, const SiteProfile* site) {
  WordList words = {std::string(kShifter), bash_quote("--image=" + request.image)};
  if (may_add_gpu_option(job, site)) words.emplace_back("--module=gpu");
  for (const std::string& bind : binds_of(request, site))
    words.push_back(bash_quote("--volume=" + mount_of(bind)));
  append(words, quoted(request.options));
  return words;
}

/// A container of Podman has an environment, a network and processes of its own, by which no rank finds another one,
/// unless it is told to take the node's. Of the folders it has those that are mounted.
WordList podman_words(const ContainerRequest& request, const BatchJob& job, const SiteProfile* site) {
  WordList words = {std::string(kPodman), "run",        "--rm",       "--env-host",
                    "--network=host",     "--ipc=host", "--pid=host", "--volume",
                    "\"$PWD:$PWD\"",      "--workdir",  "\"$PWD\""};
  if (may_add_gpu_option(job, site)) words.emplace_back("--gpu");
  for (const std::string& bind : binds_of(request, site))
    append(words, {"--volume", bash_quote(mount_of(bind))});
  append(words, quoted(request.options));
  words.push_back(bash_quote(request.image));
  return words;
}

WordList pyxis_options(const ContainerRequest& request, const SiteProfile* site) {
  WordList options = {"--container-image=" + request.image};
  WordList mounts;
  for (const std::string& bind : binds_of(request, site)) mounts.push_back(mount_of(bind));
  if (!mounts.empty()) options.push_back("--container-mounts=" + join(mounts, ","));
  append(options, request.options);
  return options;
}

}  // namespace

std::string runtime_of_container(const ScriptRequest& request, const SiteProfile* site) {
  if (request.container.image.empty()) return "";
  if (!request.container.runtime.empty() || site == nullptr) return request.container.runtime;
  return site->setup.container_runtime;
}

bool needs_gpu_vendor(const ScriptRequest& request, const BatchJob& job) {
  const std::string& runtime = job.container_runtime;
  return !request.container.image.empty() && !is_of_srun(runtime) && runtime != kShifter &&
         runtime != kPodman;
}

Status check_container(const ScriptRequest& request, const BatchJob& job) {
  const std::string& runtime = job.container_runtime;
  if (is_of_srun(runtime) && request.launcher != ScriptLauncher::kSrun)
    return refuse("containers of " + runtime +
                  " are an option of srun, and ddlrun's agents run outside of them: "
                  "add --launcher srun, or choose another --container-runtime");
  if (runtime == kContainerEngine && !request.container.binds.empty())
    return refuse("the container engine mounts what the file of the environment " + request.container.image +
                  " names: add " + request.container.binds.front() +
                  " to its mounts, and omit --container-bind");
  return {};
}

ContainerLaunch container_launch(const ScriptRequest& request, const BatchJob& job, const SiteProfile* site) {
  const ContainerRequest& container = request.container;
  if (container.image.empty()) return {};
  if (job.container_runtime == kPyxis) return {{}, pyxis_options(container, site)};
  if (job.container_runtime == kContainerEngine) {
    WordList options = {"--environment=" + container.image};
    append(options, container.options);
    return {{}, std::move(options)};
  }
  if (job.container_runtime == kShifter) return {shifter_words(container, job, site), {}};
  if (job.container_runtime == kPodman) return {podman_words(container, job, site), {}};
  return {apptainer_words(container, job, site), {}};
}

}  // namespace ddl::templates
