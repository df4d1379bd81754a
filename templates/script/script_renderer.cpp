#include "templates/script/script_renderer.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kainjow/mustache.hpp>

#include "base/environment.h"
#include "base/error.h"
#include "base/text.h"
#include "contract/environment.h"
#include "contract/version.h"
#include "templates/cluster/slurm_values.h"
#include "templates/profile/site_environment.h"
#include "templates/profile/site_profile.h"
#include "templates/script/bash_words.h"
#include "templates/script/batch_system.h"
#include "templates/script/container.h"
#include "templates/shipped_files.h"

namespace ddl::templates {

namespace {

constexpr std::string_view kTemplateFolder = "slurm/";
constexpr std::string_view kTemplateSuffix = ".mustache";
constexpr std::string_view kFrame = "job.sh";

Result<TemplateText> text_of(const EmbeddedFile& shipped, const std::vector<std::string>& folders,
                             const ReadTemplate& read_file) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + std::string(shipped.path.substr(kTemplateFolder.size()));
    if (::access(path.c_str(), F_OK) != 0) continue;
    DDL_ASSIGN(text, read_file(path));
    return TemplateText{path, std::move(text)};
  }
  return TemplateText{std::string(shipped.path), std::string(shipped.text)};
}

}  // namespace

Result<ScriptTemplates> find_templates(const std::string& frame_file, const std::vector<std::string>& folders,
                                       const ReadTemplate& read_file) {
  ScriptTemplates templates;
  for (const EmbeddedFile& shipped : shipped_files()) {
    if (!shipped.path.starts_with(kTemplateFolder) || !shipped.path.ends_with(kTemplateSuffix)) continue;
    DDL_ASSIGN(text, text_of(shipped, folders, read_file));
    const std::string_view name = shipped.path.substr(
        kTemplateFolder.size(), shipped.path.size() - kTemplateFolder.size() - kTemplateSuffix.size());
    (name == kFrame ? templates.frame : templates.partials[std::string(name)]) = std::move(text);
  }
  if (frame_file.empty()) return templates;
  DDL_ASSIGN(text, read_file(frame_file));
  templates.frame = {frame_file, std::move(text)};
  return templates;
}

namespace {

using kainjow::mustache::data;
using kainjow::mustache::mustache;
using kainjow::mustache::partial;

/// [{key: text}, ...]
data items(const char* key, const std::vector<std::string>& texts) {
  data list{data::type::list};
  for (const std::string& text : texts) list.push_back(data{key, text});
  return list;
}

const char* visible_variable(affinity::GpuVendor vendor) {
  switch (vendor) {
    case affinity::GpuVendor::kNvidia: return contract::env::kCudaVisibleDevices;
    case affinity::GpuVendor::kAmd: return contract::env::kRocrVisibleDevices;
    case affinity::GpuVendor::kIntel: return contract::env::kZeAffinityMask;
  }
  return "";
}

/// The data over which the templates are rendered.
class ScriptData {
 public:
  ScriptData(const ScriptRequest& request, const BatchJob& job, const SiteProfile* site)
      : request_(request), job_(job), site_(site) {}

  Result<data> make(const std::vector<std::string>& warnings) {
    DDL_ASSIGN(directives, sbatch().directives(request_, job_, site_));
    set("ddlrun-version", std::string(contract::kVersion));
    if (site_ != nullptr) set("site-title", site_->title.empty() ? site_->name : site_->title);
    if (site_ != nullptr) set("site-name", site_->name);
    set("warning", items("sentence", warnings));
    set("directive", items("option", directives));
    if (job_.num_ranks > 0 && !request_.has_sizes) set("num-proc", std::to_string(job_.num_ranks));
    if (job_.nodes > 0) set("nodes", std::to_string(job_.nodes));
    if (job_.tasks_per_node > 0) set("tasks-per-node", std::to_string(job_.tasks_per_node));
    if (job_.gpus_per_node > 0) set("gpus-per-node", std::to_string(job_.gpus_per_node));
    if (job_.cpus_per_task > 0) set("cpus-per-task", std::to_string(job_.cpus_per_task));
    modules();
    environment();
    container();
    torch_variables();
    binding();
    launch();
    return std::move(data_);
  }

 private:
  bool by_srun() const { return request_.launcher == ScriptLauncher::kSrun; }

  void set(const char* key, const data& value) { data_.set(key, value); }
  void set(const char* key, const std::string& text) {
    if (!text.empty()) data_.set(key, text);
  }
  /// The lines as a list of "line", and "has-KEY" if there are any.
  void set_lines(const std::string& key, const std::vector<std::string>& lines) {
    data_.set("has-" + key, lines.empty() ? data::type::bool_false : data::type::bool_true);
    data_.set(key, items("line", lines));
  }
  void set(const char* key, bool value) {
    data_.set(key, value ? data::type::bool_true : data::type::bool_false);
  }

  void modules() {
    std::vector<std::string> names = site_ != nullptr ? site_->setup.modules : std::vector<std::string>();
    names.insert(names.end(), request_.modules.begin(), request_.modules.end());
    for (std::string& name : names) name = bash_quote(name);
    set("has-modules", !names.empty());
    set("module", items("name", names));
    set("easybuild-prefix", quote_if_any(request_.easybuild_prefix));
    set("eessi-version", quote_if_any(request_.eessi_version));
    set_lines("line-before-modules", request_.lines_before_modules);
    if (!in_container()) {
      set("conda", quote_if_any(request_.conda));
      set("venv", quote_if_any(request_.venv));
    }
    // The functions module and conda come from the files that a login shell reads.
    set("login-shell", !names.empty() || !request_.lines_before_modules.empty() ||
                           (!request_.conda.empty() && !in_container()));
  }

  bool in_container() const { return !request_.container.image.empty(); }

  static std::string quote_if_any(const std::string& text) { return text.empty() ? "" : bash_quote(text); }

  void environment() {
    std::vector<SiteVariable> variables =
        site_ != nullptr ? site_->setup.variables : std::vector<SiteVariable>();
    const auto sets = [&variables](std::string_view name) {
      return std::any_of(variables.begin(), variables.end(),
                         [&](const SiteVariable& v) { return v.name == name; });
    };
    for (const SiteVariable& own : request_.variables) {
      if (!is_variable_name(own.name)) continue;  // env sets it: words_of_env()
      std::erase_if(variables, [&](const SiteVariable& v) { return v.name == own.name; });
      variables.push_back(own);
    }
    if (by_srun() && job_.threads_per_rank > 0 && !sets(contract::env::kOmpNumThreads))
      variables.push_back({contract::env::kOmpNumThreads, std::to_string(job_.threads_per_rank)});
    data list{data::type::list};
    for (const auto& [name, value] : variables) {
      data one;
      one.set("name", name);
      one.set("value", bash_quote(value));
      list.push_back(one);
    }
    std::vector<std::string> lines;
    if (site_ != nullptr) {
      lines = site_lines(site_->setup, request_.variables);
      lines.insert(lines.end(), site_->setup.lines.begin(), site_->setup.lines.end());
    }
    lines.insert(lines.end(), request_.setup_lines.begin(), request_.setup_lines.end());
    set("has-environment", !variables.empty() || !lines.empty());
    set("variable", list);
    set("setup-line", items("line", lines));
  }

  void container() {
    container_ = container_launch(request_, job_, site_);
    set("container-words", join(container_.words, " "));
    if (!in_container()) return;
    // A Python environment of the image; the host's would be another Python's.
    std::vector<std::string> commands;
    if (!request_.venv.empty()) commands.push_back(". " + bash_quote(request_.venv) + "/bin/activate");
    if (!request_.conda.empty())
      commands.push_back("eval \"$(conda shell.bash hook)\"; conda activate " + bash_quote(request_.conda));
    if (commands.empty()) return;
    commands.emplace_back("exec \"$@\"");
    set("in-container", bash_quote(join(commands, "; ")));
  }

  /// A launcher that runs once on each node may be told in the command where it meets the others.
  void torch_variables() {
    const bool has_variables = by_srun() && request_.torch_variables;
    set("torch-variables", has_variables);
    const bool names_master =
        std::any_of(request_.command.begin(), request_.command.end(),
                    [](const std::string& word) { return word.find("$MASTER_") != std::string::npos; });
    set("master-for-launchers",
        !has_variables && request_.starts_own_ranks && request_.expands_command && names_master);
  }

  bool chooses_gpus() const { return by_srun() && job_.has_gpus && !job_.gpus_of_ranks.empty(); }

  void binding() {
    if (job_.binding) {
      data binding;
      binding.set("map-cpu", job_.binding->map_cpu);
      binding.set("mask-cpu", job_.binding->mask_cpu);
      set("node-binding", binding);
    }
    const bool by_variable =
        chooses_gpus() && job_.gpu_choice == GpuChoice::kVisibleDevices && job_.gpu_vendor;
    set("choose-gpu", by_variable);
    if (!by_variable) return;
    set("visible-variable", std::string(visible_variable(*job_.gpu_vendor)));
    set("gpus-of-ranks", join(job_.gpus_of_ranks, " "));
    if (job_.has_whole_nodes) return;
    // On a shared node the job's first GPU need not be the node's first.
    std::vector<std::string> all;
    for (int gpu = 0; gpu < std::max(job_.gpus_per_node, 1); ++gpu) all.push_back(std::to_string(gpu));
    set("given-gpus", join(all, ","));
  }

  void launch() {
    set_lines("line-after", request_.lines_after);
    // What the user's lines have started, or are to do at the exit, needs the shell that ran them.
    set("stays", request_.requeue_on > 0 || !request_.lines_after.empty() || !request_.setup_lines.empty());
    if (request_.requeue_on > 0) set("requeue-on", std::to_string(request_.requeue_on));
    if (const std::string_view signal = shells_signal(request_.signal); !signal.empty())
      set("shell-signal", std::string(signal));
    set("by-ddlrun", !by_srun());
    set("by-srun", by_srun());
    set("ddlrun", bash_quote(request_.ddlrun));
    set("ddlrun-by-name", request_.ddlrun.find('/') == std::string::npos);
    std::vector<std::string> command = words_of_env();
    command.insert(command.end(), request_.command.begin(), request_.command.end());
    set("command", bash_words(command, request_.expands_command));
    std::vector<std::string> groups;
    const auto& options = by_srun() ? srun_options() : request_.ddlrun_options;
    for (const auto& words : options) groups.push_back(bash_words(words, request_.expands_command));
    set("has-launch-options", !groups.empty());
    set("launch-option", items("words", groups));
  }

  /// Before the command: variables that no shell can export.
  std::vector<std::string> words_of_env() const {
    std::vector<std::string> words;
    for (const SiteVariable& one : request_.variables)
      if (!is_variable_name(one.name)) words.push_back(one.name + "=" + one.value);
    if (!words.empty()) words.insert(words.begin(), "env");
    return words;
  }

  std::vector<std::vector<std::string>> srun_options() const {
    std::vector<std::vector<std::string>> options;
    if (!job_.mpi_type.empty()) options.push_back({"--mpi=" + job_.mpi_type});
    if (job_.cpus_per_task > 0) options.push_back({"--cpus-per-task=" + std::to_string(job_.cpus_per_task)});
    options.push_back({"--cpu-bind=" + (job_.binding ? job_.binding->mask_cpu : job_.cpu_bind)});
    if (site_ != nullptr && !site_->slurm.distribution.empty())
      options.push_back({"--distribution=" + site_->slurm.distribution});
    if (chooses_gpus() && job_.gpu_choice == GpuChoice::kGpuBind)
      options.push_back({"--gpu-bind=" + job_.gpu_bind, "--gres-flags=allow-task-sharing"});
    for (const std::string& option : container_.srun_options) options.push_back({option});
    for (const std::string& option : request_.srun_options) options.push_back({option});
    return options;
  }

  const ScriptRequest& request_;
  const BatchJob& job_;
  const SiteProfile* site_;
  ContainerLaunch container_;
  data data_;
};

/// Empty sections and partials leave empty lines: of several in a row it keeps one.
std::string with_single_blanks(const std::string& text) {
  std::string kept;
  bool was_blank = false;
  for (const std::string_view line : split(trim(text), '\n')) {
    if (!(line.empty() && was_blank)) kept += std::string(line) + "\n";
    was_blank = line.empty();
  }
  return kept;
}

Status check_template(const TemplateText& one) {
  const mustache parsed{one.text};
  if (!parsed.is_valid()) return refuse(one.file + ": " + parsed.error_message());
  return {};
}

}  // namespace

Result<std::string> render_script(const ScriptTemplates& templates, const ScriptRequest& request,
                                  const BatchJob& job, const SiteProfile* site,
                                  const std::vector<std::string>& warnings) {
  DDL_TRY(check_template(templates.frame));
  for (const auto& [name, text] : templates.partials) DDL_TRY(check_template(text));
  DDL_ASSIGN(values, ScriptData(request, job, site).make(warnings));
  for (const auto& [name, text] : templates.partials)
    values.set(name, partial{[&text = text.text] { return text; }});
  mustache frame{templates.frame.text};
  // Words are already quoted for the shell, and nothing is escaped for HTML.
  frame.set_custom_escape([](const std::string& text) { return text; });
  std::string text = frame.render(values);
  if (!frame.is_valid()) return refuse(templates.frame.file + ": " + frame.error_message());
  return with_single_blanks(text);
}

}  // namespace ddl::templates
